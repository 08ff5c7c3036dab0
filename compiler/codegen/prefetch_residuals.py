"""Load residuals before the STORE that needs them, while earlier STOREs run.

On a machine with ``post=1``, if residuals take as long to arrive as one STORE takes::

    before          after
    LOAD.RES 0      LOAD.RES 0
    STORE.ADD 0     STORE.ADD 0
    LOAD.RES 1      LOAD.RES 1
    STORE.ADD 1     LOAD.RES 2
    LOAD.RES 2      STORE.ADD 1
    STORE.ADD 2     LOAD.RES 3
    LOAD.RES 3      STORE.ADD 2
    STORE.ADD 3     STORE.ADD 3

Before, each STORE waits until its residuals have arrived. After, they are in the residual queue already. The
first STORE gets only its own residuals, so that LOADs of the first operands have the bus.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from accel.compiler.codegen.reorder_pass import EmittedProgram, ReorderPass
from accel.compiler.target.emitter_registry import Emitted
from accel.core.config import Config
from accel.core.isa import LoadRes, Store, StoreAdd
from accel.core.timing_rules import REQUEST_STARTUP, WRITE_DELAY

BUS_MARGIN_CYCLES = 16
"""Cycles in which other units may use the bus before a LOAD of residuals gets it."""


@dataclass(frozen=True)
class PrefetchResiduals(ReorderPass):
    """Move LOADs of residuals before earlier STOREs."""

    name = "prefetch-residuals"
    reason = "STOREs do not wait for residuals, because these were requested one DRAM latency earlier."

    def run(self, program: EmittedProgram) -> EmittedProgram:
        """Return the program with LOADs of residuals moved, unless it also writes the tensors they read."""
        residuals = {one.part for one in program.emitted if isinstance(one.instruction, LoadRes)}
        if any(isinstance(one.instruction, Store) and one.part in residuals for one in program.emitted):
            return program
        return program.with_order(_prefetched(program.emitted, program.config))


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
            taken = one.instruction.taken_residuals
            wanted = added + taken + (distance if added else 0)
            while waiting and loaded < wanted:
                size = _elements(waiting[0])
                if loaded + size - added > config.res_depth:
                    break
                loaded += size
                found.append(waiting.popleft())
            added += taken
        found.append(one)
    return found


def _elements(load: Emitted) -> int:
    assert isinstance(load.instruction, LoadRes)
    return load.instruction.sram_elements
