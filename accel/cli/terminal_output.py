"""Text, tables, JSON and progress, on a terminal or in a pipe."""

import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from accel.cli.stdout import write

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress
    from rich.table import Table

_PIPE_WIDTH = 10_000
"""Larger than any line."""
_TEXT: dict[str, Any] = {"highlight": False, "soft_wrap": True, "emoji": False, "markup": False}
"""Options of consoles that print text as it is."""


class FiguresTable(Struct, frozen=True):
    """Names and values. In a pipe, it needs no rich, which takes 20 ms to import."""

    rows: Sequence[tuple[str, str]]

    def __rich__(self) -> "Table":
        table = text_table(show_header=False)
        table.add_column(style="dim")
        table.add_column()
        for name, value in self.rows:
            table.add_row(name, value)
        return table

    def plain_text(self) -> str:
        width = max((len(name) for name, _ in self.rows), default=0)
        lines = []
        for name, value in self.rows:
            first, *others = value.splitlines() or [""]
            lines += [f"{name:{width}}  {first}", *(f"{'':{width}}  {line}" for line in others)]
        return "\n".join(lines)


def text_table(title: str | None = None, **options: Any) -> "Table":
    """Return a table of rich without lines."""
    from rich.table import Table

    return Table(box=None, pad_edge=False, title=title, title_justify="left", **options)


def print_json(data: dict[str, Any]) -> None:
    write(json.dumps(data, indent=2) + "\n")


def show(*parts: "RenderableType", wide: bool = False) -> None:
    """Print on stdout, in a pipe as plain text without wrapping and trailing blanks. ``wide`` keeps tables at
    full width on a narrow terminal."""
    if sys.stdout.isatty():
        _console(**_TEXT, width=_PIPE_WIDTH if wide else None).print(*parts, sep="\n")
        return
    texts = [part.plain_text() if isinstance(part, FiguresTable) else part for part in parts]
    if all(isinstance(text, str) for text in texts):
        printed = "".join(f"{text}\n" for text in texts)
    else:
        file = io.StringIO()
        _console(**_TEXT, file=file, width=_PIPE_WIDTH, color_system=None).print(*texts, sep="\n")
        printed = file.getvalue()
    write("".join(line.rstrip() + "\n" for line in printed.splitlines()))


def _console(**options: Any) -> "Console":
    from rich.console import Console

    return Console(**options)


def terminal_width() -> int | None:
    """Return the width of the terminal, or None in a pipe."""
    return _console().width if sys.stdout.isatty() else None


@contextmanager
def busy(what: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner on a terminal. The yielded function shows the current progress."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with _console(stderr=True).status(what) as status:
        yield lambda text: status.update(f"{what}: {text}")


class ProgressBar:
    """A bar on the terminal. Call it with the completed and the total amount."""

    def __init__(self, bar: "Progress", title: str) -> None:
        self._bar = bar
        self._title = title
        self._task = bar.add_task(title, total=None)

    def __call__(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)

    def describe(self, stage: str) -> None:
        """Show the current stage after the title."""
        self._bar.update(self._task, description=f"{self._title}: {stage}" if stage else self._title)


@contextmanager
def progress_bar(title: str) -> Iterator[ProgressBar | None]:
    """Show a progress bar, but only on a terminal. Yields None in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=_console(stderr=True), transient=True) as bar:
        yield ProgressBar(bar, title)
