"""Why a run took as many cycles, and what would help, as parts of a page."""

from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING

from accel.run.critical import Segment, longest, shares
from accel.views.tables import LEAST_SHARE, table

if TYPE_CHECKING:
    from accel.run.advice import Advised

_LONGEST = 12
"""Segments of the critical path that are listed."""


def critical_html(path: Sequence[Segment], where: Callable[[Segment], str]) -> str:
    """What a critical path went to, and its longest segments.

    Args:
        path: the segments.
        where: tells, as HTML, the instruction of a segment that has one.
    """
    cycles = sum(one.cycles for one in path) or 1
    causes = [
        (
            f"<b>{one.unit}</b>",
            f'<span title="{escape(one.cause.label)}">{escape(one.cause)}</span>',
            f"{one.cycles:,}",
            f"{one.cycles / cycles:.1%}",
            f"{one.segments:,}",
        )
        for one in shares(path)
        if one.cycles >= LEAST_SHARE * cycles
    ]
    segments = [
        (
            f"<b>{one.unit}</b>",
            f'<span title="{escape(one.cause.label)}">{escape(one.cause)}</span>',
            f"{one.cycles:,}",
            f"{one.start:,}",
            "" if one.instruction is None else where(one),
        )
        for one in longest(path, _LONGEST)
    ]
    note = (
        "From the last event back through whatever each event waited for: the segments adjoin and sum up to "
        "the cycles of the run. Only what is on this path makes the run longer."
    )
    return (
        f'<p class="faint">{note}</p><div class="columns fitted"><div>'
        + table(("unit", "cause", "cycles", "share", "segments"), causes)
        + "</div><div><p>The longest segments:</p>"
        + table(("unit", "cause", "cycles", "from cycle", "instruction"), segments)
        + "</div></div>"
    )


def advice_html(found: "Advised") -> str:
    """Changes of the machine that make a run faster, the best first."""
    rows = [
        (
            f"<b>{escape(one.change)}</b>",
            f"{one.speedup:.2f}",
            f"{one.cycles:,}",
            escape(one.how),
            escape(one.reason),
        )
        for one in found.advice
    ]
    tried = f"Tried: {', '.join(found.tried) or 'nothing'}."
    left = f" {escape(found.left_out)}" if found.left_out else ""
    told = table(("change of the machine", "times as fast", "cycles", "how it is known", "why"), rows)
    return f'<p>The critical path is mostly {escape(found.bound)}.</p><p class="faint">{tried}{left}</p>' + (
        told if rows else "<p>No single change of a field makes it a percent faster.</p>"
    )
