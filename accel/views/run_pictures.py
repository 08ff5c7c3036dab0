"""Timeline, trace and report of a run."""

from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from accel.base.atomic_files import write_atomically
from accel.base.errors import AccelError
from accel.run.result import Result
from accel.views.analyzed_run import AnalyzedRun, analyze_run
from accel.views.perfetto_trace import trace_bytes
from accel.views.pipeline_chart import chart_height
from accel.views.run_report import report_html
from accel.views.text_timeline import middle_window, timeline_text
from accel.views.timeline_page import timeline_html, timeline_svg

if TYPE_CHECKING:
    from accel.run.machine_advice import AdviceReport

_NOTEBOOK_PIXELS = 800
_HEADER_PIXELS = 130
"""Height above the chart."""


class _Picture:
    """A picture of a run.

    Args:
        result: with simulated time, even if it ended early.
        name: title, instead of the workload.

    Raises:
        AccelError: time was not simulated, or events were not recorded.
    """

    suffixes: tuple[str, ...] = ()
    what = ""

    def __init__(self, result: Result, *, name: str | None = None) -> None:
        self._result = result
        self._name = name
        self.check_backend(result.backend)

    @classmethod
    def check_backend(cls, backend: str) -> None:
        """Raise an AccelError for ``functional``."""
        if backend == "functional":
            raise AccelError(
                f"the backend of a {cls.what} is {backend!r}, which does not simulate time; "
                f"use 'sim' or 'rtl'"
            )

    @classmethod
    def check_path(cls, path: str | Path) -> None:
        """Raise an AccelError for another suffix than :attr:`suffixes`."""
        if Path(path).suffix.lower() not in cls.suffixes:
            expected = " or ".join(cls.suffixes)
            raise AccelError(
                f"the {cls.what} is to be written to {str(path)!r}; the name must end in {expected}"
            )

    @cached_property
    def _run(self) -> AnalyzedRun:
        return analyze_run(self._result, self._name)

    def _content(self, suffix: str) -> bytes:
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write a file in the format of its suffix.

        Raises:
            AccelError: the suffix is none of :attr:`suffixes`.
            ProgramError: the file cannot be written.
        """
        self.check_path(path)
        write_atomically(Path(path), self._content(Path(path).suffix.lower()))


class Trace(_Picture):
    """Events for Perfetto and chrome://tracing, as ``.json`` or compressed ``.gz``."""

    suffixes = (".json", ".gz")
    what = "trace"

    def _content(self, suffix: str) -> bytes:
        return trace_bytes(self._run, compress=suffix == ".gz")


class Timeline(_Picture):
    """The pipeline chart: instructions and tokens over time.

    ``print`` shows it as text, a notebook with zoom. ``save`` writes ``.svg`` or ``.html``.
    """

    suffixes = (".svg", ".html")
    what = "timeline"

    def _content(self, suffix: str) -> bytes:
        return (timeline_svg if suffix == ".svg" else timeline_html)(self._run).encode()

    def text(self, *, columns: int = 100, ascii_only: bool = False, cycles: int | None = None) -> str:
        """Return the chart as text.

        Args:
            columns: width of a line in characters.
            cycles: number of cycles, around the store unit's transfer nearest to the middle, or None for all.
        """
        window = None if cycles is None else middle_window(self._run, cycles)
        return timeline_text(self._run, columns=columns, ascii_only=ascii_only, window=window)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return _framed(timeline_html(self._run), chart_height(self._run.activity) + _HEADER_PIXELS)


class Report(_Picture):
    """A page with figures, critical path, timeline, roofline, traffic, loops and instructions.

    Args:
        result, name: see :class:`Timeline`.
        advised: from :func:`~accel.run.machine_advice.advise`.
    """

    suffixes = (".html",)
    what = "report"

    def __init__(
        self, result: Result, *, name: str | None = None, advised: "AdviceReport | None" = None
    ) -> None:
        super().__init__(result, name=name)
        self._advised = advised

    @cached_property
    def _run(self) -> AnalyzedRun:
        return analyze_run(self._result, self._name, advised=self._advised)

    def _content(self, suffix: str) -> bytes:
        return report_html(self._run).encode()

    def _repr_html_(self) -> str:
        return _framed(report_html(self._run), _NOTEBOOK_PIXELS)


def _framed(page: str, pixels: int) -> str:
    return f'<iframe srcdoc="{escape(page)}" style="width:100%;height:{pixels}px;border:0"></iframe>'
