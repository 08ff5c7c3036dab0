"""The token check of a program without findings, on arrays over the whole program.

If a program can run in program order, the k-th pop of a counter comes after the push of its token, and brings
the pusher's clock. Each instruction must come after the last conflicting access of every other unit
(:mod:`accel.core.program_conflicts`). Otherwise the check of single instructions finds the error.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accel.base.fast_unique import distinct
from accel.base.interned_sequence import Distinct
from accel.core.config import Config
from accel.core.instruction_access import MAX_CACHED_INDICES, element_classes
from accel.core.isa import Instruction, Load, Memory, Unit
from accel.core.program_conflicts import (
    Accesses,
    Conflicts,
    Ints,
    Order,
    row_count,
    rows_of,
    scratchpad_touches,
)
from accel.core.scratchpad_specs import scratchpads_of
from accel.core.token_rules import WORKERS, Counter, TokenFlow
from accel.image.dram import Dram
from accel.image.test_scenario import Contents
from accel.proof.shared_dram import SharedDram
from accel.proof.store_unit_order import OwnOrder
from accel.proof.uop_memory import UopMemory

_MOST_ROWS = 1 << 24
"""Programs with more accesses to classes of a memory are checked one by one."""


class Proof(NamedTuple):
    left_over: tuple[int, ...]
    peak: tuple[int, ...]
    """Over all legal orders."""


def prove(
    program: Distinct[Instruction],
    config: Config,
    memory: Dram,
    program_span: tuple[int, int] | None,
    tokens: Sequence[int],
    contents: Sequence[Contents],
) -> Proof | None:
    """Prove that a program neither deadlocks nor races, and reads only written scratchpad elements, or return
    None."""
    flow = TokenFlow(program, tokens)
    if not flow.in_order:
        return None
    order = Order(program)
    clocks = _Clocks(order, flow)
    peak = clocks.peak(tokens)
    if max(peak) > config.token_limit:
        return None
    shared = SharedDram(program.every, config, program_span)
    if any(shared.elements(n) is not None for n, one in enumerate(program.every) if _loads_uops(one)):
        return None  # a STORE may have written there
    uops = UopMemory(config, memory, contents)
    touches = scratchpad_touches(program, config, uops, MAX_CACHED_INDICES)
    if not touches.complete:
        return None
    known = {name: np.zeros(pad.depth(config), dtype=bool) for name, pad in scratchpads_of(config).items()}
    for one in contents:
        count = len(one.data) // scratchpads_of(config)[one.scratchpad].held_bytes(config)
        known[one.scratchpad][one.element : one.element + count] = True
    conflicts = Conflicts(order)
    if not all(_written_first(touches.of(name), written, conflicts) for name, written in known.items()):
        return None
    if shared.segments and not _add_dram(program, shared, conflicts):
        return None
    if any((conflicts.needed[unit] > clocks.done[unit]).any() for unit in WORKERS):
        return None
    if config.post and shared.segments and not _own_ordered(program, config, conflicts, clocks):
        return None
    return Proof(left_over=flow.left_over, peak=peak)


def _loads_uops(instruction: Instruction) -> bool:
    return isinstance(instruction, Load) and instruction.memory == Memory.UOP and instruction.x_size > 0


class _Clocks:
    """The clock of each instruction of a program that can run in program order.

    Attributes:
        done: by unit, the number of surely retired instructions at each start, int64[n]. Undefined for the
            own unit.
        stored: for each instruction of the store unit, the earlier ones that its tokens prove retired.
    """

    def __init__(self, order: Order, flow: TokenFlow) -> None:
        self.order = order
        self._flow = flow
        self.done = {unit: np.zeros(len(order.units), dtype=np.int64) for unit in WORKERS}
        direct = {counter: self._learned(counter, order.positions + np.int64(1)) for counter in Counter}
        for counter, learned in direct.items():
            self.done[counter.source][order.members[counter.target]] = learned
        for counter, far in ((Counter.COMPUTE_TO_LOAD, Unit.STORE), (Counter.COMPUTE_TO_STORE, Unit.LOAD)):
            self.done[far][order.members[counter.target]] = self._learned(counter, self.done[far])
        self.stored = self._learned(Counter.COMPUTE_TO_STORE, self.done[Unit.STORE])

    def _learned(self, counter: Counter, values: Ints) -> Ints:
        """Return the entry of the pusher of the last token of each target instruction, or 0.

        Clocks never decrease.
        """
        pops, pushers = self._flow.pops[counter], self._flow.pushers(counter)
        brought = np.where(pushers >= 0, values[pushers], 0)
        members = self.order.members[counter.target]
        return np.concatenate([[0], brought])[np.searchsorted(pops, members, side="right")]

    def peak(self, tokens: Sequence[int]) -> tuple[int, ...]:
        found = []
        for counter in Counter:
            pushes, before = self._flow.pushes[counter], tokens[counter]
            popped = np.searchsorted(
                self.order.positions[self._flow.pops[counter]], self.done[counter.target][pushes]
            )
            held = before + np.arange(1, len(pushes) + 1) - popped
            found.append(max(before, int(held.max(initial=0))))
        return tuple(found)


def _written_first(accesses: Accesses, known: npt.NDArray[np.bool_], conflicts: Conflicts) -> bool:
    """Add a scratchpad's conflicts if all elements are written before they are read, or ``known`` at the
    start."""
    if not accesses.sets:
        return True
    classes, sets = element_classes(accesses.sets, known.astype(np.int64))
    if row_count(accesses, sets) > _MOST_ROWS:
        return False
    first = np.full(int(classes.max()) + 1, np.iinfo(np.int64).max, dtype=np.int64)
    first[classes[known]] = -1
    for rows in rows_of(accesses, sets):
        written, read = rows.writes, ~rows.writes
        np.minimum.at(first, rows.classes[written], rows.instructions[written].astype(np.int64))
        if (first[rows.classes[read]] >= rows.instructions[read]).any():
            return False
        conflicts.add(rows)
    return True


def _add_dram(program: Distinct[Instruction], shared: SharedDram, conflicts: Conflicts) -> bool:
    """Add conflicts in shared DRAM. Return False if unknown, or if the program may be overwritten."""
    accesses, segments = shared.accesses(program.places)
    if shared.program is not None and accesses.sets:
        written = [segments[number] for number in distinct(accesses.which[accesses.writes]).tolist()]
        if np.isin(np.concatenate([shared.program[:0], *written]), shared.program).any():
            return False
    if row_count(accesses, segments) > _MOST_ROWS:
        return False
    for rows in rows_of(accesses, segments):
        conflicts.add(rows, own=True)
    return True


def _own_ordered(
    program: Distinct[Instruction], config: Config, conflicts: Conflicts, clocks: _Clocks
) -> bool:
    own = OwnOrder(config)
    members = clocks.order.members[Unit.STORE]
    for position, (index, stored) in enumerate(zip(members.tolist(), clocks.stored.tolist(), strict=True)):
        own.start(program.every[program.places[index]], position, stored)
        if conflicts.written[index] > own.retired or conflicts.read[index] > own.read:
            return False
    return True
