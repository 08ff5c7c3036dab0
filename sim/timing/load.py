"""The load unit, by ``docs/reference/timing.md``."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from accel.core.isa import Unit
from accel.core.timing_rules import EMPTY_DURATION, REQUEST_STARTUP, WRITE_DELAY
from accel.sim.timing.pad_writer import PadWriter
from accel.sim.timing.periodic_state import CYCLE, NEVER, relative_cycle
from accel.sim.timing.queued_unit import QueuedUnit
from accel.sim.timing.timed_program import InstructionTiming, TimedProgram, ranges_overlap
from accel.sim.timing.timing_kernel import TimingKernel


class LoadUnit(QueuedUnit):
    """The load unit."""

    UNIT = Unit.LOAD
    CYCLES: ClassVar[tuple[str, ...]] = (*QueuedUnit.CYCLES, "_next_start")
    COLUMNS: ClassVar[Mapping[str, str]] = {**QueuedUnit.COLUMNS, "_data_written": CYCLE}

    def __init__(self, kernel: TimingKernel, program: TimedProgram) -> None:
        super().__init__(kernel, program)
        self._in_flight_limit = kernel.config.loads_in_flight
        self._history = max(self._history, self._in_flight_limit)
        self._next_start = 0
        """First cycle after all grants of the started instructions."""
        self._granted_bursts = 0
        self._requesting: InstructionTiming | None = None
        """The LOAD with ungranted bursts."""
        self._data_written: list[int] = []
        """By position, the last beat's cycle, once all bursts are granted. 0 without bursts."""
        self.pads = PadWriter(self.log, self._retire_completed)

    def pending_bursts(self) -> tuple[int, Sequence[int]]:
        assert self._requesting is not None
        return self.indices[len(self.starts) - 1], self._requesting.bursts[self._granted_bursts :]

    def on_granted(self, count: int) -> None:
        assert self._requesting is not None
        self._granted_bursts += count
        self.request = self.log.grants[-1] + 1
        if self.pads.completion < NEVER:
            self.pads.fill_gaps()
        if self._granted_bursts == len(self._requesting.bursts):
            self._next_start = self.request
            self.request = NEVER
            self._requesting = None
            self._data_written.append(self.log.lasts[-1] + WRITE_DELAY)
        self._retire_completed()

    def _start_instructions(self) -> None:
        kernel, starts, dispatches = self._kernel, self.starts, self.dispatches
        while self._requesting is None and len(starts) < len(dispatches):
            position = len(starts)
            timing = self.timings[position]
            ready = self._ready_cycle(position, timing)
            if ready == NEVER:
                return
            self.ready = ready
            cycle = kernel.tokens_ready(timing, ready) if timing.pops else ready
            if cycle > kernel.horizon:
                kernel.reaches(cycle)
                return
            if self._has_fault(position, cycle):
                return
            self._start(timing, cycle)

    def _ready_cycle(self, position: int, timing: InstructionTiming) -> int:
        ready = max(self.dispatches[position] + self._dispatch_depth, self._next_start)
        timings, retires = self.timings, self.retires
        retired = len(retires)
        if position and (timing.runs_alone or timings[position - 1].runs_alone):
            if retired < position:
                return NEVER
            ready = max(ready, retires[-1] + 1)
        oldest = position - self._in_flight_limit
        for earlier in range(max(0, oldest), position):
            if earlier < retired:
                retire = retires[earlier]
                if retire < ready:
                    continue
                if earlier == oldest or ranges_overlap(timing, timings[earlier]):
                    ready = retire + 1
            elif earlier == oldest or ranges_overlap(timing, timings[earlier]):
                return NEVER
        return ready

    def _start(self, timing: InstructionTiming, cycle: int) -> None:
        self.starts.append(cycle)
        self.readies.append(self.ready)
        self.ready = NEVER
        self._kernel.start(timing, cycle)
        self.pads.add(timing.pad_words, cycle + REQUEST_STARTUP)
        if timing.bursts:
            self._requesting = timing
            self._granted_bursts = 0
            self.request = cycle + REQUEST_STARTUP
        else:
            self._data_written.append(0)
            self._next_start = cycle + 1
            self._retire_completed()

    def _retire_completed(self) -> None:
        retires, data_written = self.retires, self._data_written
        while len(retires) < len(data_written):
            position = len(retires)
            pads_written = self.pads.last_write(position)
            if pads_written is None:
                break
            retire = max(self.starts[position] + EMPTY_DURATION, data_written[position], pads_written)
            if position:
                retire = max(retire, retires[-1] + 1)
            retires.append(retire)
            self._kernel.retire(self.timings[position], retire)
        self._kernel.wake(Unit.LOAD)

    def state(self, next_dispatch: int, base: int) -> tuple[object, ...]:
        floor, retired = self.earliest_start(next_dispatch), len(self.retires)
        is_requesting = self._requesting is not None
        return (
            self.queue_state(next_dispatch, base),
            relative_cycle(self._next_start, floor, base),
            self._granted_bursts if is_requesting else -1,
            tuple(cycle and cycle - base for cycle in self._data_written[retired:]),
            self.pads.state(retired, floor + REQUEST_STARTUP, base),
        )
