"""Pictures of a run, as users handle them: in a file, in a terminal, in a notebook."""

from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from accel.base.errors import AccelError
from accel.base.files import write_atomically
from accel.run.result import Result
from accel.views.chart import height
from accel.views.report import report_html
from accel.views.scene import Scene, scene
from accel.views.text import timeline_text
from accel.views.timeline import timeline_html, timeline_svg
from accel.views.trace import trace_bytes

if TYPE_CHECKING:
    from accel.run.advice import Advised

_NOTEBOOK = 800
"""Height of a report within a notebook."""
_HEADER = 130
"""Pixels of a page above the chart."""


class _Picture:
    """A run, looked at.

    Args:
        result: of a run in which time was simulated; of one that ended early, what led up to that.
        name: of the program, for the title; that of its workload goes first.

    Raises:
        AccelError: it was not, or on the hardware nothing was recorded.
    """

    suffixes: tuple[str, ...] = ()
    what = ""

    def __init__(self, result: Result, *, name: str | None = None) -> None:
        self._result = result
        self._name = name
        self.check_backend(result.backend)

    @classmethod
    def check_backend(cls, backend: str) -> None:
        """Refuse a backend that simulates no time.

        Raises:
            AccelError: it does not.
        """
        if backend == "functional":
            raise AccelError(
                f"a {cls.what} is wanted of the backend {backend!r}, which has no time; take 'sim' or 'rtl'"
            )

    @classmethod
    def check_path(cls, path: str | Path) -> None:
        """Refuse a file whose name does not say what to write.

        Raises:
            AccelError: it ends otherwise.
        """
        if Path(path).suffix.lower() not in cls.suffixes:
            wanted = " or ".join(cls.suffixes)
            raise AccelError(
                f"the {cls.what} is to be written to {str(path)!r}; the name must end in {wanted}"
            )

    @cached_property
    def _scene(self) -> Scene:
        return scene(self._result, self._name)

    def _content(self, suffix: str) -> bytes:
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write a file; its name says in which format.

        Raises:
            AccelError: the name ends otherwise.
            ProgramError: it cannot be written.
        """
        self.check_path(path)
        write_atomically(Path(path), self._content(Path(path).suffix.lower()))


class Trace(_Picture):
    """Everything that happened, for Perfetto and chrome://tracing: ``.json``, or ``.gz`` compressed."""

    suffixes = (".json", ".gz")
    what = "trace"

    def _content(self, suffix: str) -> bytes:
        return trace_bytes(self._scene, compress=suffix == ".gz")


class Timeline(_Picture):
    """The pipeline chart: load, compute and store side by side, with the tokens between them.

    ``print`` shows it as text, a notebook as a chart to zoom into; ``save`` writes ``.svg`` or ``.html``.
    """

    suffixes = (".svg", ".html")
    what = "timeline"

    def _content(self, suffix: str) -> bytes:
        return (timeline_svg if suffix == ".svg" else timeline_html)(self._scene).encode()

    def text(self, *, columns: int = 100, ascii_only: bool = False) -> str:
        """The chart in at most ``columns`` columns."""
        return timeline_text(self._scene, columns=columns, ascii_only=ascii_only)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return _framed(timeline_html(self._scene), height(self._scene.seen) + _HEADER)


class Report(_Picture):
    """A page with all there is: figures, stalls, chart, roofline, traffic, loops, instructions.

    Args:
        result, name: as of every picture.
        advised: what would help, as :func:`~accel.run.advice.advise` finds it.
    """

    suffixes = (".html",)
    what = "report"

    def __init__(self, result: Result, *, name: str | None = None, advised: "Advised | None" = None) -> None:
        super().__init__(result, name=name)
        self._advised = advised

    @cached_property
    def _scene(self) -> Scene:
        return scene(self._result, self._name, advised=self._advised)

    def _content(self, suffix: str) -> bytes:
        return report_html(self._scene).encode()

    def _repr_html_(self) -> str:
        return _framed(report_html(self._scene), _NOTEBOOK)


def _framed(page: str, pixels: int) -> str:
    """A page within another."""
    return f'<iframe srcdoc="{escape(page)}" style="width:100%;height:{pixels}px;border:0"></iframe>'
