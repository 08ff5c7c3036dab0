"""Text, tables, JSON and progress, on a terminal or in a pipe."""

import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.table import Table

from accel.cli.stdout import write

if TYPE_CHECKING:
    from rich.progress import Progress

_PIPE_WIDTH = 10_000
"""Larger than any line."""


def figures_table(rows: Sequence[tuple[str, str]]) -> Table:
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for name, value in rows:
        table.add_row(name, value)
    return table


def print_json(data: dict[str, Any]) -> None:
    write(json.dumps(data, indent=2) + "\n")


def show(*renderables: RenderableType, wide: bool = False) -> None:
    """Print on stdout, in a pipe as plain text without wrapping and trailing blanks. ``wide`` keeps tables at
    full width on a narrow terminal."""
    plain = not sys.stdout.isatty()
    text = io.StringIO()
    console = Console(
        file=text if plain else None,
        color_system=None if plain else "auto",
        width=_PIPE_WIDTH if plain or wide else None,
        highlight=False,
        soft_wrap=True,
        emoji=False,
        markup=False,
    )
    console.print(*renderables, sep="\n")
    if plain:
        write("".join(line.rstrip() + "\n" for line in text.getvalue().splitlines()))


def terminal_width() -> int | None:
    """Return the width of the terminal, or None in a pipe."""
    return Console().width if sys.stdout.isatty() else None


@contextmanager
def busy(what: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner on a terminal. The yielded function shows the current progress."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with Console(stderr=True).status(what) as status:
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
    from rich.progress import (  # noqa: PLC0415  # most commands have none
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
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield ProgressBar(bar, title)
