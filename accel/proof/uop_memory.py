"""The content of the micro-op memory at each instruction, as far as known before the run.

The compute unit loads and executes micro-ops in program order. So they follow from DRAM, except where an
earlier STORE may have written.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from accel.core.config import Config
from accel.core.instruction_access import dram_rows
from accel.core.isa import Instruction, Load, Loops, Memory
from accel.image.dram import Dram
from accel.image.test_scenario import Contents


class UopMemory:
    """The micro-op memory, for instructions in order."""

    def __init__(self, config: Config, memory: Dram, contents: Iterable[Contents] = ()) -> None:
        self._config = config
        self._memory = memory
        self._words = np.zeros(config.uop_depth, dtype=np.uint32)
        self._known = np.zeros(config.uop_depth, dtype=bool)
        for one in contents:
            if one.scratchpad == "uop":
                words = np.frombuffer(one.data, dtype="<u4")
                self._words[one.element : one.element + len(words)] = words
                self._known[one.element : one.element + len(words)] = True

    def load(self, instruction: Instruction, *, overwritten: bool = False) -> None:
        """Record a valid LOAD of micro-ops. With ``overwritten``, a STORE may have changed the source."""
        if not (isinstance(instruction, Load) and instruction.memory == Memory.UOP and instruction.x_size):
            return
        begin = instruction.sram_base
        box = np.zeros((instruction.height, instruction.width), dtype=np.uint32)
        known = np.ones(box.shape, dtype=bool)
        rows = dram_rows(instruction, self._config)
        if rows is not None:
            inner = (
                slice(instruction.y_pad_0, instruction.y_pad_0 + instruction.y_size),
                slice(instruction.x_pad_0, instruction.x_pad_0 + instruction.x_size),
            )
            box[inner] = self._memory.read_rows(rows).view("<u4")
            known[inner] = not overwritten
        self._words[begin : begin + box.size] = box.ravel()
        self._known[begin : begin + box.size] = known.ravel()

    def words(self, instruction: Loops) -> npt.NDArray[np.uint32] | None:
        """Return encoded micro-ops, or None if one is unknown."""
        begin, end = instruction.uop_begin, instruction.uop_end
        return self._words[begin:end] if self._known[begin:end].all() else None
