"""Residuals are asked for before the STOREs that add them, so far ahead that these need not wait.

    LOAD.RES 0      STORE.ADD 0     LOAD.RES 1      LOAD.RES 2      STORE.ADD 1     LOAD.RES 3

In front of the first one no more is loaded than it needs: the operands of the first products go before.
"""

from collections import deque
from collections.abc import Sequence

from accel.compiler.target.registry import Emitted
from accel.core.config import Config
from accel.core.isa import LoadRes, Store, StoreAdd
from accel.core.timing_rules import REQUEST_STARTUP, WRITE_DELAY

_MARGIN = 16
"""Cycles in which others may have the port."""


def residuals_ahead(emitted: Sequence[Emitted], config: Config) -> list[Emitted]:
    """The same program with LOADs of residuals moved among the instructions of the store unit; as it is if it
    stores residuals itself."""
    residuals = {one.part for one in emitted if isinstance(one.instruction, LoadRes)}
    if any(isinstance(one.instruction, Store) and one.part in residuals for one in emitted):
        return list(emitted)
    waiting = deque(one for one in emitted if isinstance(one.instruction, LoadRes))
    cycles = REQUEST_STARTUP + config.read_latency + WRITE_DELAY + _MARGIN
    ahead = -(-cycles * config.bus_bytes // config.res_element_bytes)
    found: list[Emitted] = []
    loaded = taken = 0
    for one in emitted:
        if isinstance(one.instruction, LoadRes):
            continue
        if isinstance(one.instruction, StoreAdd):
            wanted = taken + one.instruction.sram_elements + (ahead if taken else 0)
            while waiting and loaded < wanted:
                size = _elements(waiting[0])
                if loaded + size - taken > config.res_depth:
                    break
                loaded += size
                found.append(waiting.popleft())
            taken += one.instruction.sram_elements
        found.append(one)
    return found


def _elements(load: Emitted) -> int:
    assert isinstance(load.instruction, LoadRes)
    return load.instruction.sram_elements
