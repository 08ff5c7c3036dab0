"""The fetch unit, by ``docs/reference/timing.md``."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from accel.core.fault_causes import EMPTY_PROGRAM
from accel.core.isa import Unit
from accel.core.timing_rules import FETCH_STARTUP, WRITE_DELAY, fetch_bursts
from accel.core.token_rules import queue_depth
from accel.sim.timing.bus_ports import BurstLog, Requester
from accel.sim.timing.periodic_state import CYCLE, NEVER, relative_cycle
from accel.sim.timing.queued_unit import QueuedUnit
from accel.sim.timing.timed_program import TimedProgram
from accel.sim.timing.timing_kernel import TimingKernel


class FetchUnit(Requester):
    """The fetch unit.

    Attributes:
        arrivals, dispatches: by instruction, the first possible and the actual cycle of its dispatch.
    """

    CYCLES: ClassVar[tuple[str, ...]] = ("request", "next_dispatch", "_last_grant")
    COUNTERS: ClassVar[tuple[str, ...]] = ("granted",)
    COLUMNS: ClassVar[Mapping[str, str]] = {"arrivals": CYCLE, "dispatches": CYCLE}

    def __init__(
        self, kernel: TimingKernel, program: TimedProgram, address: int, units: Sequence[QueuedUnit]
    ) -> None:
        self._kernel = kernel
        self._faults = program.fetch_faults
        self._unit_numbers: list[int] = program.units.tolist()
        self.log = BurstLog(Unit.FETCH)
        self.bursts = fetch_bursts(address, len(program), kernel.config)
        self.granted = 0
        self.arrivals: list[int] = []
        self.dispatches: list[int] = []
        self.next_dispatch = 0
        self._last_grant = FETCH_STARTUP - 1
        self._units: list[QueuedUnit | None] = [None] * len(Unit)
        self._queue_depths = [0] * len(Unit)
        for unit in units:
            self._units[unit.UNIT] = unit
            self._queue_depths[unit.UNIT] = queue_depth(unit.UNIT, kernel.config)
        kernel.register(Unit.FETCH, self._dispatch_instructions)
        self._request_next()
        if not len(program):
            kernel.fail(FETCH_STARTUP, Unit.FETCH, 0, EMPTY_PROGRAM)

    def pending_bursts(self) -> tuple[int, Sequence[int]]:
        return len(self.arrivals), (self.bursts[self.granted].burst.beats,)

    def on_granted(self, count: int) -> None:
        before = self.log.lasts[-1] - self.log.beats[-1] + WRITE_DELAY
        self.arrivals.extend([before + 1 + beat for beat in self.bursts[self.granted].arrival])
        self.granted += 1
        self._last_grant = self.log.grants[-1]
        self._request_next()
        self._kernel.wake(Unit.FETCH)

    def _request_next(self) -> None:
        self.request = NEVER
        if self.granted == len(self.bursts):
            return
        arriving = len(self.bursts[self.granted].arrival)
        oldest = len(self.arrivals) + arriving - self._kernel.config.fetch_buffer - 1
        cycle = self._last_grant + 1
        if oldest >= 0:
            if oldest >= len(self.dispatches):
                return
            cycle = max(cycle, self.dispatches[oldest] + 1)
        self.request = cycle

    def _dispatch_instructions(self) -> None:
        kernel, arrivals, dispatches = self._kernel, self.arrivals, self.dispatches
        kernel.full_queue = None
        horizon = kernel.horizon
        for index in range(len(dispatches), len(arrivals)):
            cycle = max(arrivals[index], self.next_dispatch)
            if cycle > horizon:
                kernel.reaches(cycle)
                break
            if self._faults and index in self._faults:
                kernel.fail(cycle, Unit.FETCH, index, self._faults[index])
                break
            if kernel.serial and index:
                previous = self._units[self._unit_numbers[index - 1]]
                assert previous is not None
                if len(previous.retires) < len(previous.dispatches):
                    break
                cycle = max(cycle, previous.retires[-1] + 1)
            unit = self._units[self._unit_numbers[index]]
            assert unit is not None
            queued = unit.dispatches
            oldest = len(queued) - self._queue_depths[unit.UNIT]
            if oldest >= 0:
                if oldest >= len(unit.starts):
                    kernel.full_queue = unit.UNIT
                    break
                cycle = max(cycle, unit.starts[oldest] + 1)
            if cycle > horizon:
                kernel.reaches(cycle)
                break
            dispatches.append(cycle)
            queued.append(cycle)
            self.next_dispatch = cycle + 1
            kernel.wake(unit.UNIT)
        if self.request == NEVER:
            self._request_next()

    def state(self, base: int) -> tuple[int, ...]:
        dispatched, buffer = len(self.dispatches), self._kernel.config.fetch_buffer
        full = self._kernel.full_queue
        recent = self.dispatches[max(0, dispatched - buffer) :]
        return (
            -1 if full is None else full,
            len(self.arrivals) - dispatched,
            relative_cycle(self.request, 0, base),
            self.next_dispatch - base,
            self._last_grant - base,
            *(cycle - base for cycle in self.arrivals[dispatched:]),
            *(relative_cycle(cycle, self._last_grant, base) for cycle in recent),
        )
