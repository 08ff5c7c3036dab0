"""The compute unit, by ``docs/reference/timing.md``."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from accel.core.isa import Unit
from accel.core.timing_rules import EMPTY_DURATION, INDEX_CHECK, REQUEST_STARTUP, WRITE_DELAY, compute_depth
from accel.sim.timing.pad_writer import PadWriter
from accel.sim.timing.periodic_state import NEVER, relative_cycle
from accel.sim.timing.queued_unit import QueuedUnit
from accel.sim.timing.timed_program import InstructionTiming, TimedProgram
from accel.sim.timing.timing_kernel import TimingKernel


class ComputeUnit(QueuedUnit):
    """The compute unit."""

    UNIT = Unit.COMPUTE
    CYCLES: ClassVar[tuple[str, ...]] = (*QueuedUnit.CYCLES, "_next_slot", "_drained", "_data_written")
    COUNTERS: ClassVar[tuple[str, ...]] = ("_retired_loads",)
    COLUMNS: ClassVar[Mapping[str, str]] = {**QueuedUnit.COLUMNS}

    def __init__(self, kernel: TimingKernel, program: TimedProgram) -> None:
        super().__init__(kernel, program)
        self._uop_faults = program.uop_faults
        self._depth = compute_depth(kernel.config)
        self._next_slot = 0
        """First cycle in which the sequencer can issue the next instruction."""
        self._drained = 0
        """First cycle after all started instructions have retired."""
        self._loading: InstructionTiming | None = None
        self._granted_bursts = 0
        self._retired_loads = 0
        self._data_written = 0
        """Cycle in which the last granted beat of ``_loading`` is written."""
        self.pads = PadWriter(self.log, self._retire_load)

    def pending_bursts(self) -> tuple[int, Sequence[int]]:
        assert self._loading is not None
        return self.indices[len(self.starts) - 1], self._loading.bursts[self._granted_bursts :]

    def on_granted(self, count: int) -> None:
        assert self._loading is not None
        self._granted_bursts += count
        self._data_written = self.log.lasts[-1] + WRITE_DELAY
        is_last = self._granted_bursts == len(self._loading.bursts)
        self.request = NEVER if is_last else self.log.grants[-1] + 1
        if self.pads.completion < NEVER:
            self.pads.fill_gaps()
        self._retire_load()

    def _start_instructions(self) -> None:
        kernel, starts, dispatches = self._kernel, self.starts, self.dispatches
        while self._loading is None and len(starts) < len(dispatches):
            position = len(starts)
            timing = self.timings[position]
            self.ready = max(
                dispatches[position] + self._dispatch_depth,
                self._next_slot if timing.is_pipelined else self._drained,
            )
            cycle = kernel.tokens_ready(timing, self.ready) if timing.pops else self.ready
            if cycle > kernel.horizon:
                kernel.reaches(cycle)
                return
            if self._has_fault(position, cycle):
                return
            self._start(position, timing, cycle)

    def _start(self, position: int, timing: InstructionTiming, cycle: int) -> None:
        self.starts.append(cycle)
        self.readies.append(self.ready)
        self.ready = NEVER
        self._kernel.start(timing, cycle)
        if timing.is_pipelined:
            slots = max(1, timing.slots)
            self._next_slot = cycle + slots
            if self._uop_faults and self.indices[position] in self._uop_faults:
                uop, fault = self._uop_faults[self.indices[position]]
                slot = cycle + (uop + 1) * (timing.slots // timing.uops) - 1
                self._kernel.fail(slot + INDEX_CHECK, Unit.COMPUTE, self.indices[position], fault)
            self._retire(timing, cycle + slots - 1 + self._depth)
        elif timing.bursts or timing.pad_words:
            self._loading = timing
            self._granted_bursts = 0
            self._data_written = 0
            if timing.bursts:
                self.request = cycle + REQUEST_STARTUP
            self.pads.add(timing.pad_words, cycle + REQUEST_STARTUP)
            self._retire_load()
        else:
            self._retire(timing, cycle + EMPTY_DURATION)
            self._next_slot = self._drained

    def _retire_load(self) -> None:
        timing = self._loading
        if timing is None or self._granted_bursts < len(timing.bursts):
            return
        pads_written = self.pads.last_write(self._retired_loads)
        if pads_written is None:
            return
        self._loading = None
        self._retired_loads += 1
        self._retire(timing, max(self._data_written, pads_written))
        self._next_slot = self._drained
        self._kernel.wake(Unit.COMPUTE)

    def _retire(self, timing: InstructionTiming, cycle: int) -> None:
        self.retires.append(cycle)
        self._kernel.retire(timing, cycle)
        self._drained = cycle + 1

    def state(self, next_dispatch: int, base: int) -> tuple[object, ...]:
        floor = self.earliest_start(next_dispatch)
        is_loading = self._loading is not None
        has_data = is_loading and self._data_written
        return (
            self.queue_state(next_dispatch, base),
            relative_cycle(self._next_slot, floor, base),
            relative_cycle(self._drained, floor, base),
            self._granted_bursts if is_loading else -1,
            relative_cycle(self._data_written, 0, base) if has_data else 0,
            self.pads.state(self._retired_loads, floor + REQUEST_STARTUP, base),
        )
