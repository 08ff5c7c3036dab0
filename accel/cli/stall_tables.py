"""Tables of stalls, critical paths and advice."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from accel.cli.terminal_output import text_table
from accel.core.unit_states import State
from accel.run.critical_path import Segment, longest_segments, shares
from accel.run.result import Result

if TYPE_CHECKING:
    from rich.table import Table

    from accel.run.machine_advice import AdviceReport

_LONGEST = 3
_CAUSES = 8
_LEAST_SHARE = 0.01
"""Causes in text: maximum number, and minimum share of cycles."""


def critical_table(path: Sequence[Segment]) -> "Table":
    table = _table("critical path", ("unit", "cause", "cycles", "share"), words=2)
    cycles = sum(one.cycles for one in path) or 1
    every = shares(path)
    listed = [one for one in every if one.cycles >= _LEAST_SHARE * cycles][:_CAUSES]
    for one in listed:
        table.add_row(one.unit, one.cause, f"{one.cycles:,}", f"{one.cycles / cycles:.1%}")
    rest = sum(one.cycles for one in every[len(listed) :])
    if rest:
        table.add_row("", f"{len(every) - len(listed)} others", f"{rest:,}", f"{rest / cycles:.1%}")
    return table


def instruction_name(one: Segment, result: Result) -> str:
    index = one.instruction
    return "" if index is None else f"{index} {result.instructions[index].mnemonic}"


def segments_table(path: Sequence[Segment], where: Callable[[Segment], str]) -> "Table":
    """``where`` returns the instruction of a segment."""
    headings = ("unit", "cause", "instruction", "tensor", "from cycle", "cycles")
    table = _table("its longest segments", headings, words=4)
    for one in longest_segments(path, _LONGEST):
        table.add_row(one.unit, one.cause, where(one), one.tensor or "", f"{one.start:,}", f"{one.cycles:,}")
    return table


def advice_table(found: "AdviceReport") -> "Table":
    table = _table(
        "what would help", ("change", "why", "price", "how it is known", "cycles", "speedup"), words=4
    )
    for schedule in found.software:
        figures = (f"{schedule.cycles:,}", f"{schedule.speedup:.2f}")
        table.add_row(schedule.command, schedule.reason, "none: a schedule", "simulated", *figures)
    for one in found.advice:
        table.add_row(one.change, one.reason, one.price, one.how, f"{one.cycles:,}", f"{one.speedup:.2f}")
    if not found.advice:
        table.add_row("none", f"of {', '.join(found.tried) or 'no field'} gains a percent", "", "", "", "")
    if found.left_out:
        table.add_row("", found.left_out, "", "", "", "")
    return table


def stall_table(result: Result) -> "Table":
    """Return a table of each unit's states in percent."""
    table = _table("where the cycles went", ("unit", *(state.label for state in State)), words=1)
    assert result.stalls is not None
    for unit, cycles in result.stalls.items():
        shares = (n / (result.cycles or 1) for n in cycles.to_dict().values())
        table.add_row(unit, *(f"{share:.1%}" for share in shares))
    return table


def _table(title: str, headings: Sequence[str], *, words: int) -> "Table":
    """The first ``words`` columns are text, others numbers."""
    table = text_table(title)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number < words else "right")
    return table
