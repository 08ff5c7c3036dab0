"""The instructions of a program, each object once.

A decoded program has one object for equal words, and many of its instructions are equal. What depends on
an instruction alone is found once for each object; for the whole program it is then an array.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.core.isa import Instruction


class Distinct:
    """A program by its distinct instructions.

    Args:
        instructions: the decoded program.

    Attributes:
        every: each instruction object once, in the order in which they first appear.
        places: which of them each instruction of the program is, intp[instructions].
    """

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        keys = list(map(id, instructions))
        once = dict(zip(keys, instructions, strict=True))
        numbers = {key: number for number, key in enumerate(once)}
        self.every: list[Instruction] = list(once.values())
        self.places: npt.NDArray[np.intp] = np.fromiter(map(numbers.__getitem__, keys), np.intp, len(keys))

    def __len__(self) -> int:
        """Instructions of the program."""
        return len(self.places)

    def column(self, value: Callable[[Any], Any], dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
        """``value(instruction)`` for every instruction of the program, dtype[instructions]."""
        return np.array([value(one) for one in self.every], dtype=dtype)[self.places]

    def where(self, holds: Callable[[Any], bool]) -> npt.NDArray[np.intp]:
        """Places in the program of the instructions for which ``holds(instruction)``, in order."""
        return np.flatnonzero(self.column(holds, np.bool_))
