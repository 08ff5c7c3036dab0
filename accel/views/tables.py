"""Tables of a page: numbers to the right, and no wider than the page."""

import re
from collections.abc import Iterable, Sequence
from html import escape

LEAST_SHARE = 0.0005
"""Of the cycles, that a reason or a cause must have to be listed."""
_NUMBER = re.compile(r"[-+]?\d[\d,.]*(%| [KMG]?i?B)?")


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as HTML; columns of numbers are aligned to the right.

    Args:
        headings: as text.
        rows: a cell for each heading, as HTML; empty ones are no words.
    """
    body = [tuple(row) for row in rows]
    numbers = [
        any(cells) and all(not cell or _NUMBER.fullmatch(cell) for cell in cells)
        for cells in zip(*body, strict=True)
    ] or [False] * len(headings)
    sides = [' class="number"' if number else "" for number in numbers]
    head = "".join(f"<th{side}>{escape(text)}</th>" for side, text in zip(sides, headings, strict=True))
    lines = (
        "<tr>" + "".join(f"<td{side}>{cell}</td>" for side, cell in zip(sides, row, strict=True)) + "</tr>\n"
        for row in body
    )
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{''.join(lines)}</tbody></table></div>"
    )


def verdicts(rows: Iterable[tuple[str, str, bool]]) -> str:
    """What was found as a table: of each finding its name, what it says, and whether it is good."""
    body = "".join(
        f'<tr><th>{escape(name)}</th><td class="{"good" if good else "bad"}">{escape(text)}</td></tr>'
        for name, text, good in rows
    )
    return f"<table><tbody>{body}</tbody></table>"


def tiles(figures: Iterable[tuple[str, str, str]]) -> str:
    """Figures side by side: of each its name, its value, and a note, which may be empty."""
    return '<div class="tiles">' + "".join(
        f'<div class="tile"><div class="name">{escape(name)}</div><div class="value">{escape(value)}</div>'
        f'<div class="faint">{escape(note)}</div></div>'
        for name, value, note in figures
    ) + "</div>"  # fmt: skip


def size_text(count: int) -> str:
    """Bytes in three or four digits."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            value = count / size
            return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{count:,} B"
