"""Tables with bars for notebooks."""

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

_MOST_ROWS = 16
"""The last row counts those that are left out."""


class Bar(NamedTuple):
    """A row of a bar chart. Its ``share`` is 0 to 1."""

    label: str
    share: float
    text: str


def html_summary(title: str, rows: Iterable[tuple[str, str]], bars: Iterable[Bar] = ()) -> str:
    """Return names and values, and a bar chart below, as HTML. Shares above 1 are drawn as 1."""
    shown = list(rows)
    if len(shown) > _MOST_ROWS:
        left_out = len(shown) - _MOST_ROWS + 1
        shown = [*shown[: _MOST_ROWS - 1], ("", f"and {left_out} more")]
    cell = 'style="text-align:left;padding:1px 12px 1px 0"'
    lines = [f"<tr><th {cell}>{escape(name)}</th><td {cell}>{escape(text)}</td></tr>" for name, text in shown]
    for label, share, text in bars:
        width = round(160 * min(max(share, 0), 1))
        block = f"display:inline-block;height:0.7em;width:{width}px;background:#4477aa;margin-right:6px"
        bar = f'<span style="{block}"></span>{share:.0%}, {escape(text)}'
        lines.append(f"<tr><th {cell}>{escape(label)}</th><td {cell}>{bar}</td></tr>")
    return f"<table><caption {cell}><b>{escape(title)}</b></caption>{''.join(lines)}</table>"
