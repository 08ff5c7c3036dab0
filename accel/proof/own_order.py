"""What the store unit's instructions are sure of about those before them in the same unit.

The other units either read DRAM or write it, so that their own order is all they need. The store unit does
both: it reads operands while what earlier STOREs write is on its way, and writes while earlier LOADs are
still reading. Instructions start in program order, and that is all that their order says. An earlier STORE is
surely in memory

- where a token has come back from it through the compute unit, or
- where a SET is in between, which starts when the unit is empty.

An earlier LOAD has surely been read, besides,

- where a STORE that is not behind the one at hand takes residuals that it, or a LOAD behind it, has loaded,
or - where such a STORE uses elements of PAR that it, or a LOAD behind it, has loaded;

for these wait until they are written, and the data of one unit's LOADs comes in their order.
"""

from bisect import bisect_left

import numpy as np

from accel.core.config import Config
from accel.core.faults import residual_change
from accel.core.isa import Instruction, LoadPar, LoadRes, Set, StoreAdd, StoreReq


class OwnOrder:
    """The store unit's instructions by their position in its sequence; give it them in order.

    Attributes:
        retired: those before this position have retired when the one at hand starts.
        read: LOADs before this position have been read by then.
    """

    def __init__(self, config: Config) -> None:
        self.retired = 0
        self.read = 0
        self._filler = np.full(config.par_depth if config.post else 0, -1, dtype=np.int64)
        """Position of the LOAD that has filled each element of PAR."""
        self._loaded = 0
        self._taken = 0
        self._ends: list[int] = []
        """Elements of RES loaded in all, behind each LOAD of some."""
        self._loads: list[int] = []
        """Positions of these LOADs."""

    def start(self, instruction: Instruction, position: int, retired: int) -> None:
        """The next instruction, which is not at fault.

        Args:
            instruction: of the store unit.
            position: its place in the unit's sequence.
            retired: how many of the unit's instructions have retired, by its tokens.
        """
        self.retired = max(self.retired, position + 1 if isinstance(instruction, Set) else retired)
        self.read = max(self.read, self.retired)
        if isinstance(instruction, LoadPar) and instruction.sram_elements:
            begin = instruction.sram_base
            self._filler[begin : begin + instruction.sram_elements] = position
        elif isinstance(instruction, StoreReq) and instruction.par_elements:
            begin = instruction.par
            last = int(self._filler[begin : begin + instruction.par_elements].max())
            self.read = max(self.read, last + 1)
        change = residual_change(instruction)
        if isinstance(instruction, LoadRes) and change:
            self._loaded += change
            self._ends.append(self._loaded)
            self._loads.append(position)
        elif isinstance(instruction, StoreAdd) and change:
            self._taken -= change
            self.read = max(self.read, self._loads[bisect_left(self._ends, self._taken)] + 1)
