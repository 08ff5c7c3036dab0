"""Options of commands that run a program and draw what happened."""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accel.base.errors import AccelError, MachineError
from accel.cli.common import F, busy
from accel.cli.output import write
from accel.hw.engines.waves import save_path
from accel.run.result import Result

if TYPE_CHECKING:
    from accel.run.advice import Advised
    from accel.views import Report, Timeline, Trace

STDOUT = "-"
"""In place of a file's name."""
_PIPE_COLUMNS = 100


def picture_options(command: F) -> F:
    """``--report``, ``--trace`` and ``--timeline``."""
    report = click.option(
        "--report",
        metavar="FILE.html",
        help="Write a page with figures, stalls, the chart, roofline, traffic and code.",
    )
    timeline = click.option(
        "--timeline",
        metavar="FILE.svg|FILE.html|-",
        help="Write the pipeline chart, zoomable and with tokens as arrows; - prints it as text.",
    )
    trace = click.option(
        "--trace", metavar="FILE.json[.gz]", help="Write a trace for Perfetto or chrome://tracing."
    )
    return report(timeline(trace(command)))


class Pictures:
    """The pictures that were asked for; whatever is wrong with that is found before the run."""

    _files: "dict[type[Report | Timeline | Trace], str]"

    def __init__(
        self,
        *,
        report: str | None,
        timeline: str | None,
        trace: str | None,
        backend: str,
        as_json: bool,
        name: str,
    ) -> None:
        self._name = name
        self._text = timeline == STDOUT
        if self._text and as_json:
            raise click.UsageError("--timeline - and --json are given; both would be on standard output")
        self._files = {}
        if report is None and timeline is None and trace is None:
            return
        from accel.views import Report, Timeline, Trace  # noqa: PLC0415  # slow to import

        asked: dict[type[Report | Timeline | Trace], str | None] = {
            Report: report,
            Timeline: None if self._text else timeline,
            Trace: trace,
        }
        self._files.update((picture, path) for picture, path in asked.items() if path is not None)
        for picture, path in self._files.items():
            picture.check_backend(backend)
            picture.check_path(path)
        if self._text:
            Timeline.check_backend(backend)

    @property
    def wanted(self) -> bool:
        """Whether there is anything to draw, so that the run must be recorded."""
        return self._text or bool(self._files)

    @property
    def targets(self) -> dict[str, Path]:
        """The files to write, by option."""
        return {f"--{picture.what}": Path(path) for picture, path in self._files.items()}

    def draw(self, result: Result, advised: "Advised | None" = None) -> None:
        """Write the files; the report says what would help, if that is known."""
        for picture, path in self._files.items():
            more = {"advised": advised} if picture.what == "report" and advised is not None else {}
            with busy(f"drawing {path}"):
                picture(result, name=self._name, **more).save(path)

    def show(self, result: Result) -> None:
        """Print what goes to standard output."""
        if self._text:
            write("\n" + terminal_timeline(result))

    def draw_stopped(self, error: AccelError) -> list[Path]:
        """Draw what led up to an error that ended the run, or say that nothing can be drawn of it.

        Returns:
            The files written.
        """
        result = error.result if isinstance(error, MachineError) else None
        if isinstance(result, Result) and result.cycles is not None:
            self.draw(result)
            self.show(result)
            return list(self.targets.values())
        if self.wanted:
            wanted = ", ".join([*self._files.values(), *(["the timeline"] if self._text else [])])
            click.echo(f"accel: not drawn: {wanted}; the run ended before its time was known", err=True)
        return []


def terminal_timeline(result: Result) -> str:
    """The pipeline chart as wide as the terminal, in signs that it can show."""
    from accel.views import Timeline  # noqa: PLC0415  # slow to import

    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_COLUMNS
    timeline = Timeline(result)
    text = timeline.text(columns=columns)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return timeline.text(columns=columns, ascii_only=True)
    return text


def written_at(wave: Path | None) -> dict[Path, int]:
    """When a wave file and the save file beside it were written, in nanoseconds, of those that are there."""
    paths = () if wave is None else (wave, save_path(wave))
    return {path: path.stat().st_mtime_ns for path in paths if path.exists()}


def new_waves(wave: Path | None, before: Mapping[Path, int]) -> list[Path]:
    """What a run has written of them; a save file of the user's own is left as it is."""
    return [path for path, when in written_at(wave).items() if before.get(path) != when]
