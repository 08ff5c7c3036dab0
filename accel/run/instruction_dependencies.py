"""Instructions that an instruction may wait for."""

from array import array
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from accel.core.config import Config
from accel.core.isa import Unit
from accel.core.scratchpad_specs import RES
from accel.core.token_rules import WORKERS, Counter, queue_depth
from accel.run.run_record import NONE
from accel.sim.timing.timed_program import InstructionTiming, TimedProgram


def fast_column(numbers: npt.NDArray[np.int64] | npt.NDArray[np.intp]) -> "array[int]":
    """Copy a column for quick access in a fifth of a list's memory."""
    return array("q", numbers.astype(np.int64).tobytes())


class InstructionDependencies:
    """Indices by waiting instruction, or ``NONE``.

    Attributes:
        queue_leaver: its start makes room in the unit's queue.
        previous_transfer: the store unit's previous LOAD or STORE.
        transfer_leaver: its retirement allows one more transfer in flight.
        senders: by counter, the instruction that pushes the popped token.
        operand_waits: the last user of an operand's elements before a LOAD, or LOAD before a STORE.
        residual_waits: the STORE that makes room in RES, or the last LOAD of residuals.
    """

    def __init__(self, program: TimedProgram, config: Config, tokens: Sequence[int]) -> None:
        self.timings: list[InstructionTiming] = list(
            map(program.timings.__getitem__, program.numbers.tolist())
        )
        self.members: dict[Unit, list[int]] = {unit: program.members[unit].tolist() for unit in WORKERS}
        previous, queue_leaver, positions = np.full((3, len(program)), NONE, dtype=np.int64)
        for unit in WORKERS:
            members = program.members[unit]
            previous[members[1:]] = members[:-1]
            depth = queue_depth(unit, config)
            queue_leaver[members[depth:]] = members[:-depth]
            positions[members] = np.arange(len(members))
        self.positions = fast_column(positions)
        self.previous = fast_column(previous)
        self.queue_leaver = fast_column(queue_leaver)
        self.previous_transfer, self.transfer_leaver = _store_unit_streams(program, config)
        self.senders = {counter: _senders(program, counter, tokens[counter]) for counter in Counter}
        self.operand_waits: dict[int, int] = {}
        self.residual_waits: dict[int, int] = {}
        self._find_store_unit_waits(RES.depth(config))

    def _find_store_unit_waits(self, res_depth: int) -> None:
        users = [
            (index, use)
            for index in self.members[Unit.STORE]
            if (use := self.timings[index].store_unit_use) is not None
        ]
        if not users:
            return
        ranges = [one for _, use in users for one in use.ranges]
        depth = max((end for _, _, end in ranges), default=0)
        last_user, last_filler = (
            {pad: np.full(depth, NONE, dtype=np.int64) for pad, _, _ in ranges} for _ in range(2)
        )
        """By element, the last instruction that used or filled it."""
        loaded, consumed = _ResidualMoves(), _ResidualMoves()
        for index, use in users:
            is_load = self.timings[index].is_load
            awaited = last_user if is_load else last_filler
            if use.ranges:
                waits = (int(awaited[pad][begin:end].max()) for pad, begin, end in use.ranges)
                self.operand_waits[index] = max(waits)
            for pad, begin, end in use.ranges:
                last_user[pad][begin:end] = index
                if is_load:
                    last_filler[pad][begin:end] = index
            if use.residuals and is_load:
                excess = loaded.total + use.residuals - res_depth
                self.residual_waits[index] = consumed.mover_of(excess) if excess > 0 else NONE
                loaded.add(use.residuals, index)
            elif use.residuals:
                self.residual_waits[index] = loaded.mover_of(consumed.total + use.residuals)
                consumed.add(use.residuals, index)


def _store_unit_streams(program: TimedProgram, config: Config) -> tuple["array[int]", "array[int]"]:
    previous, leaver = np.full((2, len(program)), NONE, dtype=np.int64)
    members = program.members[Unit.STORE]
    numbers = program.numbers[members]
    is_load = np.array([one.is_load for one in program.timings], dtype=bool)[numbers]
    is_set = np.array([one.runs_alone for one in program.timings], dtype=bool)[numbers]
    for loads, limit in ((True, config.loads_in_flight), (False, config.stores_in_flight)):
        stream = members[(is_load == loads) & ~is_set]
        previous[stream[1:]] = stream[:-1]
        leaver[stream[limit:]] = stream[:-limit]
    return fast_column(previous), fast_column(leaver)


def _senders(program: TimedProgram, counter: Counter, initial: int) -> "array[int]":
    pops = np.array([counter in one.pops for one in program.timings], dtype=bool)[program.numbers]
    pushes = np.array([counter in one.pushes for one in program.timings], dtype=bool)[program.numbers]
    receivers, senders = np.flatnonzero(pops), np.flatnonzero(pushes)
    found = np.full(len(program), NONE, dtype=np.int64)
    count = min(max(0, len(receivers) - initial), len(senders))
    found[receivers[initial : initial + count]] = senders[:count]
    return fast_column(found)


class _ResidualMoves:
    """Loaded or consumed RES elements, numbered from 1."""

    def __init__(self) -> None:
        self._sums: list[int] = []
        self._indices: list[int] = []

    @property
    def total(self) -> int:
        return self._sums[-1] if self._sums else 0

    def add(self, count: int, index: int) -> None:
        self._sums.append(self.total + count)
        self._indices.append(index)

    def mover_of(self, element: int) -> int:
        number = bisect_left(self._sums, element)
        return self._indices[number] if number < len(self._indices) else NONE
