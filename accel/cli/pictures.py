"""Options of commands that run a program and draw what happened."""

import shutil
import sys
from pathlib import Path

import click

from accel.cli.common import F, busy, write
from accel.files import check_writable
from accel.result import Result
from accel.views import Timeline, Trace

_STDOUT = "-"
_PIPE_COLUMNS = 100


def picture_options(command: F) -> F:
    """``--trace`` and ``--timeline``."""
    timeline = click.option(
        "--timeline",
        metavar="FILE.svg|FILE.html|-",
        help="Write the pipeline chart, with tokens as arrows, to zoom into; - prints it as text.",
    )
    trace = click.option(
        "--trace", metavar="FILE.json[.gz]", help="Write a trace for Perfetto or chrome://tracing."
    )
    return trace(timeline(command))


class Pictures:
    """The pictures that were asked for; whatever is wrong with that is found before the run."""

    def __init__(self, *, trace: str | None, timeline: str | None, backend: str, as_json: bool) -> None:
        self._text = timeline == _STDOUT
        if self._text and as_json:
            raise click.UsageError("--timeline - and --json are given; both would be on standard output")
        self._files: list[tuple[type[Trace | Timeline], str]] = []
        if trace is not None:
            self._files.append((Trace, trace))
        if timeline is not None and not self._text:
            self._files.append((Timeline, timeline))
        for picture, path in self._files:
            picture.check_backend(backend)
            picture.check_path(path)
            check_writable(Path(path))
        if self._text:
            Timeline.check_backend(backend)

    def draw(self, result: Result) -> None:
        """Write the files."""
        for picture, path in self._files:
            with busy(f"drawing {path}"):
                picture(result).save(path)

    def show(self, result: Result) -> None:
        """Print what goes to standard output."""
        if self._text:
            write("\n" + terminal_timeline(result))


def terminal_timeline(result: Result) -> str:
    """The pipeline chart as wide as the terminal, in signs that it can show."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_COLUMNS
    timeline = Timeline(result)
    text = timeline.text(columns=columns)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return timeline.text(columns=columns, ascii_only=True)
    return text
