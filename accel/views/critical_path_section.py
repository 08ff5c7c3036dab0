"""Sections of a page: critical path and advice."""

from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING

from accel.run.critical_path import Segment, longest_segments, shares
from accel.views.html_tables import MIN_LISTED_SHARE, table

if TYPE_CHECKING:
    from accel.run.machine_advice import AdviceReport

_LISTED_SEGMENTS = 12


def critical_path_html(path: Sequence[Segment], instruction_html: Callable[[Segment], str]) -> str:
    """Return tables of causes and longest segments."""
    cycles = sum(one.cycles for one in path) or 1
    causes = [
        (
            f"<b>{escape(one.unit)}</b>",
            f'<span title="{escape(one.cause.label)}">{escape(one.cause)}</span>',
            f"{one.cycles:,}",
            f"{one.cycles / cycles:.1%}",
            f"{one.segments:,}",
        )
        for one in shares(path)
        if one.cycles >= MIN_LISTED_SHARE * cycles
    ]
    segments = [
        (
            f"<b>{escape(one.unit)}</b>",
            f'<span title="{escape(one.cause.label)}">{escape(one.cause)}</span>',
            f"{one.cycles:,}",
            f"{one.start:,}",
            "" if one.instruction is None else instruction_html(one),
        )
        for one in longest_segments(path, _LISTED_SEGMENTS)
    ]
    note = (
        "The critical path follows each event back to the one that it waited for, from the end of the run to "
        "its start. Its segments sum up to the cycles of the run, so only a change that shortens this path "
        "makes the run shorter."
    )
    return (
        f'<p class="faint">{note}</p><div class="columns fitted"><div>'
        + table(("unit", "cause", "cycles", "share", "segments"), causes)
        + "</div><div><p>The longest segments:</p>"
        + table(("unit", "cause", "cycles", "from cycle", "instruction"), segments)
        + "</div></div>"
    )


def advice_html(advised: "AdviceReport") -> str:
    """Return a table of changes."""
    rows = [
        (
            f"<b>{escape(one.command)}</b>",
            f"{one.speedup:.2f}",
            f"{one.cycles:,}",
            "simulated",
            escape(one.reason),
            "none: a schedule",
        )
        for one in advised.software
    ]
    rows += [
        (
            f"<b>{escape(one.change)}</b>",
            f"{one.speedup:.2f}",
            f"{one.cycles:,}",
            escape(one.how),
            escape(one.reason),
            escape(one.price),
        )
        for one in advised.advice
    ]
    tried = f"Tried: {escape(', '.join(advised.tried) or 'nothing')}. {escape(advised.left_out)}".rstrip()
    headings = ("change", "speedup", "cycles", "method", "reason", "price")
    return f'<p>The critical path is mostly {escape(advised.bound)}.</p><p class="faint">{tried}</p>' + (
        table(headings, rows) if rows else "<p>No change of a single field saves 1 % of the cycles.</p>"
    )
