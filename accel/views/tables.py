"""Tables of a page: numbers to the right, and no wider than the page."""

import re
from collections.abc import Iterable, Sequence
from html import escape

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
