"""Tables that fit the terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from accel.base.records import replace
from accel.cli.terminal_output import text_table

if TYPE_CHECKING:
    from rich.console import JustifyMethod, RenderableType

_GAP = 2
_MIN_NAME = 12


class Column(Struct, frozen=True, kw_only=True):
    """A column. A narrow terminal drops the largest ``least`` first, and never one of 0."""

    heading: str
    cells: list[str]
    least: int = 0
    is_text: bool = False
    is_name: bool = False

    def width(self, *, folded: bool) -> int:
        words = self.heading.split(" ") if folded else [self.heading]
        return max(map(len, (*words, *self.cells)))

    def shortened(self, excess: int) -> "Column":
        if not self.is_name:
            return self
        width = max(_MIN_NAME, max(map(len, self.cells), default=0) - excess)
        return replace(self, cells=[shorten(cell, width) for cell in self.cells])


def shorten(text: str, width: int) -> str:
    """For example, ``image_QuantizeLinear`` becomes ``image_…Linear`` at 13 characters."""
    if len(text) <= width:
        return text
    head = width // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def adaptive_table(columns: Sequence[Column], width: int | None) -> "RenderableType":
    """Shorten names in the middle, drop less important columns with a note, but never cut numbers."""
    folded = width is not None and _width(columns, folded=False) > width
    kept, dropped = list(columns), list[str]()
    fitting = kept
    while folded and width is not None:
        excess = _width(kept, folded=True) - width
        fitting = kept if excess <= 0 else [column.shortened(excess) for column in kept]
        last = max(kept, key=lambda column: column.least)
        if _width(fitting, folded=True) <= width or not last.least:
            break
        kept.remove(last)
        dropped.append(last.heading)
    table = text_table(header_style="bold")
    for column in fitting:
        heading = column.heading.replace(" ", "\n") if folded else column.heading
        justify: JustifyMethod = "left" if column.is_text else "right"
        table.add_column(heading, justify=justify, no_wrap=True, vertical="bottom")
    for row in zip(*(column.cells for column in fitting), strict=True):
        table.add_row(*row)
    if not dropped:
        return table
    from rich.console import Group

    return Group(table, f"left out for want of width: {', '.join(dropped[::-1])}")


def _width(columns: Sequence[Column], *, folded: bool) -> int:
    return sum(column.width(folded=folded) + _GAP for column in columns) - _GAP
