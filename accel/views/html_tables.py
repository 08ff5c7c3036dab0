"""Tables and figure tiles."""

import re
from collections.abc import Iterable, Sequence
from html import escape

MIN_LISTED_SHARE = 0.0005
"""Smallest listed share of the cycles."""
_NUMBER = re.compile(r"[-+]?\d[\d,.]*(%| [KMG]?i?B)?")


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with numbers aligned to the right. Headings are plain text, cells HTML."""
    body = [tuple(row) for row in rows]
    is_number = [
        any(cells) and all(not cell or _NUMBER.fullmatch(cell) for cell in cells)
        for cells in zip(*body, strict=True)
    ] or [False] * len(headings)
    classes = [' class="number"' if number else "" for number in is_number]
    head = "".join(f"<th{css}>{escape(text)}</th>" for css, text in zip(classes, headings, strict=True))
    lines = (
        "<tr>" + "".join(f"<td{css}>{cell}</td>" for css, cell in zip(classes, row, strict=True)) + "</tr>\n"
        for row in body
    )
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{''.join(lines)}</tbody></table></div>"
    )


def verdict_table(rows: Iterable[tuple[str, str, bool]]) -> str:
    """Return a table of name, text, and whether it is good."""
    body = "".join(
        f'<tr><th>{escape(name)}</th><td class="{"good" if is_good else "bad"}">{escape(text)}</td></tr>'
        for name, text, is_good in rows
    )
    return f"<table><tbody>{body}</tbody></table>"


def figure_tiles(figures: Iterable[tuple[str, str, str]]) -> str:
    """Return tiles of name, value and note."""
    return '<div class="tiles">' + "".join(
        f'<div class="tile"><div class="name">{escape(name)}</div><div class="value">{escape(value)}</div>'
        f'<div class="faint">{escape(note)}</div></div>'
        for name, value, note in figures
    ) + "</div>"  # fmt: skip


def size_text(count: int) -> str:
    """For example, 1536 is ``1.50 KiB``."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            value = count / size
            return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{count:,} B"
