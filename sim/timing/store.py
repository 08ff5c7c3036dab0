"""The store unit, by ``docs/reference/timing.md``. LOADs and STOREs form two streams."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import ClassVar

from accel.core.isa import Unit
from accel.core.scratchpad_specs import RES
from accel.core.timing_rules import EMPTY_DURATION, REQUEST_STARTUP, WRITE_DELAY
from accel.sim.timing.bus_ports import BurstLog, WritePort
from accel.sim.timing.periodic_state import (
    CYCLE,
    NEVER,
    POSITION,
    Checkpoint,
    PeriodicState,
    relative_cycle,
    repeat_tail,
)
from accel.sim.timing.queued_unit import QueuedUnit
from accel.sim.timing.timed_program import InstructionTiming, StoreUnitUse, TimedProgram
from accel.sim.timing.timing_kernel import TimingKernel


class _TransferStream(PeriodicState):
    CYCLES: ClassVar[tuple[str, ...]] = ("next_start",)
    COLUMNS: ClassVar[Mapping[str, str]] = {"positions": POSITION}

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.positions: list[int] = []
        self.next_start = 0
        """First cycle after the previous one's grants, or NEVER if unknown."""


class _ResidualSums(PeriodicState):
    """Running sums of the RES elements loaded or consumed.

    For example, LOADs of 3 and 5 elements at positions 2 and 4 give ``sums`` 3, 8 and ``positions`` 2, 4.
    """

    COLUMNS: ClassVar[Mapping[str, str]] = {"positions": POSITION}

    def __init__(self) -> None:
        self.sums: list[int] = []
        self.positions: list[int] = []

    @property
    def total(self) -> int:
        return self.sums[-1] if self.sums else 0

    def add(self, count: int, position: int) -> None:
        self.sums.append(self.total + count)
        self.positions.append(position)

    def mover_of(self, element: int) -> int:
        return self.positions[bisect_left(self.sums, element)]

    def first_after(self, count: int) -> int:
        return bisect_right(self.sums, count)

    def advance(self, since: Checkpoint, periods: int, shifts: Mapping[str, int]) -> None:
        begin = since["positions"]
        moved = self.total - (self.sums[begin - 1] if begin else 0)
        repeat_tail(self.sums, begin, periods, moved)
        super().advance(since, periods, shifts)


class StoreUnit(QueuedUnit):
    """The store unit."""

    UNIT = Unit.STORE
    CYCLES: ClassVar[tuple[str, ...]] = (*QueuedUnit.CYCLES, "_next_start")
    COUNTERS: ClassVar[tuple[str, ...]] = ("_loading_position",)
    COLUMNS: ClassVar[Mapping[str, str]] = {
        **QueuedUnit.COLUMNS,
        "_completions": CYCLE,
        "_operand_users": POSITION,
    }

    def __init__(self, kernel: TimingKernel, program: TimedProgram) -> None:
        super().__init__(kernel, program)
        self.writes = BurstLog(Unit.STORE, writes=True)
        self.port = WritePort(kernel.config)
        self._res_depth = RES.depth(kernel.config) if kernel.config.post else 0
        self.loads = _TransferStream(kernel.config.loads_in_flight)
        self.stores = _TransferStream(kernel.config.stores_in_flight)
        self._history += 1
        self._next_start = 0
        """First cycle after the previous start."""
        self._loading_position = 0
        """The LOAD with ungranted bursts."""
        self._granted_bursts = 0
        self._completions: list[int] = []
        """By position, the last write or response, or NEVER if unknown."""
        self._operand_users: list[int] = []
        """Positions of the instructions that use operand ranges."""
        self.loaded, self.consumed = _ResidualSums(), _ResidualSums()

    @property
    def parts(self) -> tuple[PeriodicState, ...]:
        return self, self.writes, self.port, self.loads, self.stores, self.loaded, self.consumed

    def pending_bursts(self) -> tuple[int, Sequence[int]]:
        position = self._loading_position
        return self.indices[position], self.timings[position].bursts[self._granted_bursts :]

    def on_granted(self, count: int) -> None:
        self._granted_bursts += count
        self.request = self.log.grants[-1] + 1
        if self._granted_bursts < len(self.timings[self._loading_position].bursts):
            return
        self.loads.next_start = self.request
        self.request = NEVER
        self._completions[self._loading_position] = self.log.lasts[-1] + WRITE_DELAY
        self._retire_completed()
        self._kernel.wake(Unit.STORE)

    def _start_instructions(self) -> None:
        kernel = self._kernel
        while len(self.starts) < len(self.dispatches):
            position = len(self.starts)
            timing = self.timings[position]
            ready = self._ready_cycle(position, timing)
            if ready == NEVER:
                return
            self.ready = ready
            cycle = kernel.tokens_ready(timing, ready)
            if not kernel.reaches(cycle):
                return
            if self._has_fault(position, cycle):
                return
            self._start(position, timing, cycle)

    def _retire_cycle(self, position: int) -> int:
        return self.retires[position] if position < len(self.retires) else NEVER

    def _ready_cycle(self, position: int, timing: InstructionTiming) -> int:
        ready = max(self.dispatches[position] + self._dispatch_depth, self._next_start)
        if position and (timing.runs_alone or self.timings[position - 1].runs_alone):
            return _after(self._retire_cycle(position - 1), ready)
        stream = self.loads if timing.is_load else self.stores
        ready = max(ready, stream.next_start)
        if len(stream.positions) >= stream.limit:
            ready = _after(self._retire_cycle(stream.positions[-stream.limit]), ready)
        if timing.store_unit_use is not None and ready < NEVER:
            ready = self._operands_ready(timing, timing.store_unit_use, ready)
            ready = self._residuals_ready(timing, timing.store_unit_use, ready)
        return ready

    def _operands_ready(self, timing: InstructionTiming, use: StoreUnitUse, ready: int) -> int:
        """Return the first cycle, at least ``ready``, in which the ranges can be filled or read. LOADs
        complete and instructions retire in order, so the last overlapping one decides."""
        if not use.ranges:
            return ready
        for position in reversed(self._operand_users):
            if self._retire_cycle(position) < ready:
                break
            earlier = self.timings[position]
            other = earlier.store_unit_use
            assert other is not None
            if not _overlap(use, other):
                continue
            if timing.is_load:
                return _after(self._retire_cycle(position), ready)
            if earlier.is_load:
                return _after(self._completions[position], ready)
        return ready

    def _residuals_ready(self, timing: InstructionTiming, use: StoreUnitUse, ready: int) -> int:
        if not use.residuals:
            return ready
        if not timing.is_load:
            last = self.loaded.mover_of(self.consumed.total + use.residuals)
            return _after(self._completions[last], ready)
        excess = self.loaded.total + use.residuals - self._res_depth
        return _after(self._retire_cycle(self.consumed.mover_of(excess)), ready) if excess > 0 else ready

    def _start(self, position: int, timing: InstructionTiming, cycle: int) -> None:
        self.starts.append(cycle)
        self.readies.append(self.ready)
        self.ready = NEVER
        self._kernel.start(timing, cycle)
        self._next_start = cycle + 1
        completion = cycle + EMPTY_DURATION
        if not timing.runs_alone:
            stream = self.loads if timing.is_load else self.stores
            stream.positions.append(position)
            stream.next_start = self._next_start
            request = cycle + REQUEST_STARTUP
            if timing.bursts and timing.is_load:
                stream.next_start = completion = NEVER
                self._loading_position, self._granted_bursts = position, 0
                self.request = request
            elif timing.bursts:
                index = self.indices[position]
                self.port.grant(request, index, timing.bursts, timing.beat_cycles, self.writes)
                stream.next_start = self.writes.grants[-1] + 1
                completion = self.writes.responses[-1]
            if timing.store_unit_use is not None:
                self._record_use(position, timing, timing.store_unit_use)
        self._completions.append(completion)
        self._retire_completed()

    def _record_use(self, position: int, timing: InstructionTiming, use: StoreUnitUse) -> None:
        if use.ranges:
            self._operand_users.append(position)
        if use.residuals:
            (self.loaded if timing.is_load else self.consumed).add(use.residuals, position)

    def _retire_completed(self) -> None:
        retires, completions = self.retires, self._completions
        while len(retires) < len(completions) and completions[len(retires)] < NEVER:
            position = len(retires)
            retire = completions[position]
            if position:
                retire = max(retire, retires[-1] + 1)
            retires.append(retire)
            self._kernel.retire(self.timings[position], retire)

    def advance(self, since: Checkpoint, periods: int, shifts: Mapping[str, int]) -> None:
        completions, count = self._completions, len(self._completions) - since["_completions"]
        is_pending = range(len(self.retires), len(completions))
        pending = [position for position in is_pending if completions[position] >= NEVER]
        for position in pending:  # known after the skipped periods, as those one period ago are now
            completions[position] = completions[position - count] + shifts[CYCLE]
        super().advance(since, periods, shifts)
        for position in pending:
            completions[position + periods * count] = NEVER

    def _unretired(self, positions: Sequence[int], floor: int) -> list[int]:
        found = []
        for position in reversed(positions):
            if self._retire_cycle(position) < floor:
                break
            found.append(position)
        return found[::-1]

    def _dependencies(self, floor: int) -> tuple[list[int], ...]:
        """Return the positions that later instructions may wait for."""
        in_flight = [self._unretired(one.positions[-one.limit :], floor) for one in (self.loads, self.stores)]
        making_room = self.consumed.first_after(self.loaded.total - self._res_depth)
        present = self.loaded.first_after(self.consumed.total)
        consumed, loaded = self.consumed.positions[making_room:], self.loaded.positions[present:]
        return (
            *in_flight,
            self._unretired(self._operand_users, floor),
            self._unretired(consumed, floor),
            loaded,
        )

    def oldest_relevant(self, next_dispatch: int) -> int:
        floor = self.earliest_start(next_dispatch)
        oldest = super().oldest_relevant(next_dispatch)
        return min([oldest, *(positions[0] for positions in self._dependencies(floor) if positions)])

    def state(self, next_dispatch: int, base: int) -> tuple[object, ...]:
        floor, started = self.earliest_start(next_dispatch), len(self.starts)
        dependencies = self._dependencies(floor)
        consumed, loaded = dependencies[3:]
        consumed_sums = self.consumed.sums[-len(consumed) :] if consumed else []
        loaded_sums = self.loaded.sums[-len(loaded) :] if loaded else []
        is_loading = self.request < NEVER
        recent = self._completions[self.oldest_relevant(next_dispatch) :]
        return (
            self.queue_state(next_dispatch, base),
            relative_cycle(self._next_start, floor, base),
            tuple(relative_cycle(one.next_start, floor, base) for one in (self.loads, self.stores)),
            tuple(tuple(position - started for position in positions) for positions in dependencies),
            tuple(total - self.consumed.total for total in consumed_sums),
            tuple(total - self.loaded.total for total in loaded_sums),
            (self._loading_position - started, self._granted_bursts) if is_loading else (),
            tuple(relative_cycle(completion, floor - 1, base) for completion in recent),
            self.loaded.total - self.consumed.total,
            self.port.state(self.writes, floor + REQUEST_STARTUP, base),
        )


def _after(cycle: int, ready: int) -> int:
    return NEVER if cycle >= NEVER else max(ready, cycle + 1)


def _overlap(one: StoreUnitUse, other: StoreUnitUse) -> bool:
    return any(
        pad == other_pad and begin < other_end and other_begin < end
        for pad, begin, end in one.ranges
        for other_pad, other_begin, other_end in other.ranges
    )
