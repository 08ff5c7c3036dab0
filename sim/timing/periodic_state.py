"""State of the timing model that can advance by whole periods of a loop.

Every part has a few numbers, and columns that only grow, such as start cycles. If the state recurs after a
period, each column repeats the last period's entries, shifted. For example, cycles 100, 140 of a period of 80
become 180, 220, then 260, 300.
"""

from array import array
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

NEVER: Final = 1 << 62
"""A cycle later than all others, or unknown."""

CYCLE, INSTRUCTION, POSITION, CONSTANT = "cycle", "instruction", "position", "constant"
"""Meanings of a column's numbers, which decide how far a period shifts them: cycles (0, for none, stays),
instruction indices in the program, positions among a unit's instructions, and constants."""

Column: TypeAlias = "array[int]"
"""Takes 8 bytes for each number, a list 40."""

Checkpoint = dict[str, int]
"""A part's counters and column lengths, by name."""


def column(numbers: Iterable[int] = ()) -> Column:
    return array("q", numbers)


class PeriodicState:
    """A part of the timing model.

    Attributes:
        CYCLES: names of attributes that hold a cycle or NEVER.
        COUNTERS: attributes that grow equally in every period.
        COLUMNS: columns, with the meaning of their numbers.
    """

    CYCLES: ClassVar[tuple[str, ...]] = ()
    COUNTERS: ClassVar[tuple[str, ...]] = ()
    COLUMNS: ClassVar[Mapping[str, str]] = {}

    def checkpoint(self) -> Checkpoint:
        return {name: getattr(self, name) for name in self.COUNTERS} | {
            name: len(getattr(self, name)) for name in self.COLUMNS
        }

    def advance(self, since: Checkpoint, periods: int, shifts: Mapping[str, int]) -> None:
        """Repeat ``periods`` times the events since a checkpoint. ``shifts`` are one period's, by meaning."""
        for name in self.CYCLES:
            cycle = getattr(self, name)
            setattr(self, name, cycle if cycle >= NEVER else cycle + periods * shifts[CYCLE])
        for name in self.COUNTERS:
            count = getattr(self, name)
            setattr(self, name, count + periods * (count - since[name]))
        for name, meaning in self.COLUMNS.items():
            repeat_tail(
                getattr(self, name), since[name], periods, shifts[meaning], keep_zeros=meaning == CYCLE
            )


def repeat_tail(
    numbers: "list[int] | Column", begin: int, periods: int, shift: int, *, keep_zeros: bool = False
) -> None:
    """Append ``numbers[begin:]`` ``periods`` times, each time shifted by ``shift`` more."""
    tail: np.ndarray[Any, Any] = np.array(numbers[begin:], dtype=np.int64)
    shifted = tail + np.arange(1, periods + 1, dtype=np.int64)[:, None] * shift
    if keep_zeros:
        shifted[:, tail == 0] = 0
    if isinstance(numbers, list):
        numbers.extend(shifted.ravel().tolist())
    else:
        numbers.frombytes(shifted.tobytes())


def relative_cycle(cycle: int, floor: int, base: int) -> int:
    """Return a cycle as part of a state, counted from ``base``. Earlier cycles than ``floor`` have its
    effect."""
    return NEVER if cycle >= NEVER else max(cycle, floor) - base
