"""Load residuals before the STORE that needs them, while earlier STOREs run.

If residuals take as long to arrive as one STORE takes::

    before          after
    LOAD.RES 0      LOAD.RES 0
    STORE.ADD 0     STORE.ADD 0
    LOAD.RES 1      LOAD.RES 1
    STORE.ADD 1     LOAD.RES 2
    LOAD.RES 2      STORE.ADD 1
    STORE.ADD 2     STORE.ADD 2

The first STORE gets only its own residuals, so that LOADs of the first operands have the bus.

STOREs that hold a residual take one element each, so their LOADs need little of the bus. These LOADs come
first, before SETs that wait for LOADs of parameters. Those of one element, or of elements in a row, are
merged.
"""

from collections import deque
from collections.abc import Sequence

from accel.base.records import replace
from accel.compiler.codegen.reorder_pass import EmittedProgram, ReorderPass
from accel.compiler.target.emitter_registry import Emitted
from accel.core.config import Config
from accel.core.isa import SIZE_BITS, LoadRes, Store, StoreAdd, Transfer, Unit
from accel.core.timing_rules import REQUEST_STARTUP, WRITE_DELAY

MAX_SIZE = (1 << SIZE_BITS) - 1
"""Largest x_size and y_size."""
BUS_MARGIN_CYCLES = 16
"""Cycles in which other units may use the bus before a LOAD of residuals gets it."""


class PrefetchResiduals(ReorderPass, frozen=True):
    name = "prefetch-residuals"
    reason = "STOREs do not wait for residuals, because these were requested one DRAM latency earlier."

    def run(self, program: EmittedProgram) -> EmittedProgram:
        """Change nothing if the program also writes the tensors that the LOADs read."""
        residuals = {one.part for one in program.emitted if isinstance(one.instruction, LoadRes)}
        if any(isinstance(one.instruction, Store) and one.part in residuals for one in program.emitted):
            return program
        found = _prefetched(program.emitted, program.config)
        return program.with_order(_merged(found) if program.config.res_mul else found)


def _prefetched(emitted: Sequence[Emitted], config: Config) -> list[Emitted]:
    waiting = deque(one for one in emitted if isinstance(one.instruction, LoadRes))
    cycles = REQUEST_STARTUP + config.read_latency + WRITE_DELAY + BUS_MARGIN_CYCLES
    distance = -(-cycles * config.bus_bytes // config.res_element_bytes)
    """Elements that the bus can transfer between a residual's request and its arrival."""
    found: list[Emitted] = []
    loaded = added = 0
    for one in emitted:
        if isinstance(one.instruction, LoadRes):
            continue
        if isinstance(one.instruction, StoreAdd):
            at = _after_last_transfer(found) if one.instruction.hold and not added else len(found)
            ready: list[Emitted] = []
            taken = one.instruction.taken_residuals
            wanted = added + taken + (distance if added or one.instruction.hold else 0)
            while waiting and loaded < wanted:
                size = _elements(waiting[0])
                if loaded + size - added > config.res_depth:
                    break
                loaded += size
                ready.append(waiting.popleft())
            found[at:at] = ready
            added += taken
        found.append(one)
    return found


def _after_last_transfer(emitted: Sequence[Emitted]) -> int:
    """Return the position after the store unit's last LOAD or STORE, for which its SETs wait."""
    for at in range(len(emitted), 0, -1):
        instruction = emitted[at - 1].instruction
        if isinstance(instruction, Transfer) and instruction.unit is Unit.STORE:
            return at
    return 0


def _merged(emitted: Sequence[Emitted]) -> list[Emitted]:
    found: list[Emitted] = []
    for one in emitted:
        joined = _joined(found[-1], one) if found else None
        if joined is None:
            found.append(one)
        else:
            found[-1] = joined
    return found


def _joined(first: Emitted, second: Emitted) -> Emitted | None:
    load, other = first.instruction, second.instruction
    if not isinstance(load, LoadRes) or not isinstance(other, LoadRes) or first.part != second.part:
        return None
    if other.sram_elements != 1 or MAX_SIZE in (load.x_size, load.y_size):
        return None
    repeats = load.x_size == 1 and (load.y_size == 1 or load.x_stride == 0)
    if repeats and other.dram_base == load.dram_base:
        return replace(first, instruction=replace(load, y_size=load.y_size + 1, x_stride=0))
    if load.y_size == 1 and other.dram_base == load.dram_base + load.x_size:
        size = load.x_size + 1
        return replace(first, instruction=replace(load, x_size=size, x_stride=size))
    return None


def _elements(load: Emitted) -> int:
    assert isinstance(load.instruction, LoadRes)
    return load.instruction.sram_elements
