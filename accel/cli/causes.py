"""Tables of why a run took as many cycles, and of what would help."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from accel.core.states import State
from accel.run.critical import Segment, longest, shares
from accel.run.result import Result

if TYPE_CHECKING:
    from accel.run.advice import Advised

_LONGEST = 3
"""Segments of a critical path that the text tells."""
_CAUSES = 8
_LEAST_SHARE = 0.01
"""Of the causes in the text: how many, and what share of the cycles each must have."""


def critical_table(path: Sequence[Segment]) -> Table:
    """What the cycles of a critical path went to."""
    table = _table("critical path", ("unit", "cause", "cycles", "share"), words=2)
    cycles = sum(one.cycles for one in path) or 1
    every = shares(path)
    told = [one for one in every if one.cycles >= _LEAST_SHARE * cycles][:_CAUSES]
    for one in told:
        table.add_row(one.unit, one.cause, f"{one.cycles:,}", f"{one.cycles / cycles:.1%}")
    rest = sum(one.cycles for one in every[len(told) :])
    if rest:
        table.add_row("", f"{len(every) - len(told)} others", f"{rest:,}", f"{rest / cycles:.1%}")
    return table


def instruction_name(one: Segment, result: Result) -> str:
    """The number of a segment's instruction, and what it is; empty if it has none."""
    index = one.instruction
    return "" if index is None else f"{index} {result.instructions[index].mnemonic}"


def segments_table(path: Sequence[Segment], where: Callable[[Segment], str]) -> Table:
    """The longest segments of a critical path.

    Args:
        path: the segments.
        where: tells the instruction of one.
    """
    headings = ("unit", "cause", "instruction", "tensor", "from cycle", "cycles")
    table = _table("its longest segments", headings, words=4)
    for one in longest(path, _LONGEST):
        table.add_row(one.unit, one.cause, where(one), one.tensor or "", f"{one.start:,}", f"{one.cycles:,}")
    return table


def advice_table(found: "Advised") -> Table:
    """Changes of the machine that make a run faster, the best first."""
    table = _table(
        "what would help", ("change", "why", "how it is known", "cycles", "times as fast"), words=3
    )
    for one in found.advice:
        table.add_row(one.change, one.reason, one.how, f"{one.cycles:,}", f"{one.speedup:.2f}")
    if not found.advice:
        table.add_row("none", f"of {', '.join(found.tried) or 'no field'} gains a percent", "", "", "")
    if found.left_out:
        table.add_row("", found.left_out, "", "", "")
    return table


def stall_table(result: Result) -> Table:
    """Where each unit's cycles went, in percent."""
    table = _table("where the cycles went", ("unit", *(state.label for state in State)), words=1)
    assert result.stalls is not None
    for unit, cycles in result.stalls.items():
        shares = (n / (result.cycles or 1) for n in cycles.to_dict().values())
        table.add_row(unit, *(f"{share:.1%}" for share in shares))
    return table


def _table(title: str, headings: Sequence[str], *, words: int) -> Table:
    """A table whose first ``words`` columns are words, the others numbers."""
    table = Table(box=None, pad_edge=False, title=title, title_justify="left")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number < words else "right")
    return table
