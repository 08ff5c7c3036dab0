"""What repeats itself in time: state whose future only depends on differences of cycles.

A part of the timing model keeps numbers, and lists that only grow. Where a stretch of the program has the
shapes of the stretch before it, and all that matters of the model's state at its end is what it was at its
beginning, so many cycles later, then the next stretch of that kind goes the same way. It need not be gone
through: the lists get what they got in the stretch before, moved on.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np

NEVER: Final = 1 << 62
"""A cycle that never comes, or is not known yet."""

CYCLE, INSTRUCTION, PLACE, PLAIN = "cycle", "instruction", "place", "plain"
"""What the numbers in a list are: cycles (0 stands for none and stays), places in the program, places among a
unit's instructions, and anything that repeats as it is."""

Mark = dict[str, int]
"""The numbers of a part, and the lengths of its lists, by name, at one time."""


class Recurring:
    """A part of the timing model.

    Attributes:
        CYCLES: names of attributes that are cycles, or :data:`NEVER`.
        COUNTS: names of those that go on by the same number from one stretch to the next.
        LISTS: names of lists that only grow, with what the numbers in them are.
    """

    CYCLES: ClassVar[tuple[str, ...]] = ()
    COUNTS: ClassVar[tuple[str, ...]] = ()
    LISTS: ClassVar[Mapping[str, str]] = {}

    def mark(self) -> Mark:
        """Where the part is now."""
        return {name: getattr(self, name) for name in self.COUNTS} | {
            name: len(getattr(self, name)) for name in self.LISTS
        }

    def repeat(self, since: Mark, times: int, by: Mapping[str, int]) -> None:
        """Do ``times`` more what was done since a mark.

        Args:
            since: the mark.
            times: how often.
            by: how much the numbers of each kind go on each time.
        """
        for name in self.CYCLES:
            cycle = getattr(self, name)
            setattr(self, name, cycle if cycle >= NEVER else cycle + times * by[CYCLE])
        for name in self.COUNTS:
            now = getattr(self, name)
            setattr(self, name, now + times * (now - since[name]))
        for name, kind in self.LISTS.items():
            extend(getattr(self, name), since[name], times, by[kind], zero_stays=kind == CYCLE)


def extend(numbers: list[int], begin: int, times: int, by: int, *, zero_stays: bool = False) -> None:
    """Append the numbers from ``begin`` on ``times`` more, each time ``by`` more than before."""
    part: np.ndarray[Any, Any] = np.array(numbers[begin:], dtype=np.int64)
    moves = np.arange(1, times + 1, dtype=np.int64)[:, None] * by
    moved = part + moves
    if zero_stays:
        moved[:, part == 0] = 0
    numbers.extend(moved.ravel().tolist())


def later(cycle: int, floor: int, base: int) -> int:
    """A cycle as state: from ``base`` on, where it is behind ``floor``, which is as good as all before it."""
    return NEVER if cycle >= NEVER else max(cycle, floor) - base
