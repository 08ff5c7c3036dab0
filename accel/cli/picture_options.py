"""Pictures of a command's run."""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accel.base.errors import AccelError, MachineError
from accel.cli.stdout import write
from accel.cli.terminal_output import busy
from accel.hw.engines.wave_files import save_path
from accel.run.result import Result

if TYPE_CHECKING:
    from accel.run.machine_advice import AdviceReport
    from accel.views import Report, Timeline, Trace

STDOUT = "-"
_PIPE_COLUMNS = 100


class Pictures:
    """Requested pictures, checked before the run."""

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
        from accel.views import Report, Timeline, Trace  # slow to import

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
        """Whether the run must be recorded."""
        return self._text or bool(self._files)

    @property
    def targets(self) -> dict[str, Path]:
        return {f"--{picture.what}": Path(path) for picture, path in self._files.items()}

    def draw(self, result: Result, advised: "AdviceReport | None" = None) -> None:
        for picture, path in self._files.items():
            more = {"advised": advised} if picture.what == "report" and advised is not None else {}
            with busy(f"drawing {path}"):
                picture(result, name=self._name, **more).save(path)

    def show(self, result: Result) -> None:
        if self._text:
            write("\n" + terminal_timeline(result))

    def draw_stopped(self, error: AccelError) -> list[Path]:
        """Draw the cycles before an error, or report that nothing can be drawn. Return the written files."""
        result = error.result if isinstance(error, MachineError) else None
        if isinstance(result, Result) and result.cycles is not None:
            self.draw(result)
            self.show(result)
            return list(self.targets.values())
        if self.wanted:
            wanted = ", ".join([*self._files.values(), *(["the timeline"] if self._text else [])])
            click.echo(f"accel: not drawn: {wanted}; the run ended before its time was known", err=True)
        return []


def terminal_timeline(result: Result, cycles: int | None = None) -> str:
    """Return the chart in the terminal's width and character set. ``cycles`` limits it to the middle of
    the run."""
    from accel.views import Timeline

    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_COLUMNS
    timeline = Timeline(result)
    text = timeline.text(columns=columns, cycles=cycles)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return timeline.text(columns=columns, ascii_only=True, cycles=cycles)
    return text


def written_at(wave: Path | None) -> dict[Path, int]:
    """Return times in nanoseconds of a wave file and its save file."""
    paths = () if wave is None else (wave, save_path(wave))
    return {path: path.stat().st_mtime_ns for path in paths if path.exists()}


def new_waves(wave: Path | None, before: Mapping[Path, int]) -> list[Path]:
    """A save file of the user is not new."""
    return [path for path, when in written_at(wave).items() if before.get(path) != when]
