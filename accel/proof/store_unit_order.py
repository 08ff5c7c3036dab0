"""The order of the store unit's instructions among themselves.

The store unit reads operands from DRAM while the data of earlier STOREs are in flight, and writes while
earlier LOADs are still reading. An earlier STORE is surely in memory

- after a token has come back from it through the compute unit, or
- after a SET, which starts when the unit is empty.

An earlier LOAD has surely finished reading if a STORE up to the current one uses residuals or operands that
this LOAD or a later one has loaded. Such STOREs wait for them, and the data of one unit's LOADs arrive in
order.
"""

from bisect import bisect_left

import numpy as np

from accel.core.config import Config
from accel.core.fault_causes import operand_ranges, residual_change
from accel.core.isa import Instruction, Load, LoadRes, Set, StoreAdd, Unit
from accel.core.scratchpad_specs import scratchpads_of


class OwnOrder:
    """The store unit's instructions by position, processed in order.

    Attributes:
        retired: those before this position have retired when the current one starts.
        read: LOADs before this position have finished by then.
    """

    def __init__(self, config: Config) -> None:
        self.retired = 0
        self.read = 0
        self._fillers = {
            pad.name: np.full(pad.depth(config), -1, dtype=np.int64)
            for pad in scratchpads_of(config).values()
            if pad.filled_by is Unit.STORE and not pad.is_queue
        }
        """Position of the LOAD of each element of an operand."""
        self._loaded = 0
        self._taken = 0
        self._ends: list[int] = []
        """Elements of RES loaded up to each LOAD.RES."""
        self._loads: list[int] = []

    def start(self, instruction: Instruction, position: int, retired: int) -> None:
        """Process the next valid instruction. Its tokens prove that ``retired`` ones have retired."""
        self.retired = max(self.retired, position + 1 if isinstance(instruction, Set) else retired)
        self.read = max(self.read, self.retired)
        for pad, begin, end in operand_ranges(instruction):
            if isinstance(instruction, Load):
                self._fillers[pad.name][begin:end] = position
            else:
                self.read = max(self.read, int(self._fillers[pad.name][begin:end].max()) + 1)
        change = residual_change(instruction)
        if isinstance(instruction, LoadRes) and change:
            self._loaded += change
            self._ends.append(self._loaded)
            self._loads.append(position)
        elif isinstance(instruction, StoreAdd) and change:
            self._taken -= change
            self.read = max(self.read, self._loads[bisect_left(self._ends, self._taken)] + 1)
