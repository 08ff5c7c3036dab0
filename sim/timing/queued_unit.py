"""The common part of the load, compute and store units."""

from collections.abc import Mapping
from typing import ClassVar

from accel.core.fault_causes import Fault
from accel.core.isa import Unit
from accel.core.timing_rules import dispatch_depth
from accel.core.token_rules import queue_depth
from accel.sim.timing.bus_ports import BurstLog, Requester
from accel.sim.timing.periodic_state import CYCLE, NEVER, relative_cycle
from accel.sim.timing.timed_program import InstructionTiming, TimedProgram
from accel.sim.timing.timing_kernel import TimingKernel


class QueuedUnit(Requester):
    """A unit that executes instructions from a queue. A *position* is an instruction's number among the
    unit's, from 0.

    Attributes:
        indices, timings: by position, the instruction's index in the program, and its timing.
        dispatches, readies, starts, retires: by position, the known cycles.
        ready: when the unit could accept the next instruction, or NEVER.
    """

    UNIT: ClassVar[Unit]
    CYCLES: ClassVar[tuple[str, ...]] = ("request", "ready")
    COLUMNS: ClassVar[Mapping[str, str]] = {
        "dispatches": CYCLE,
        "readies": CYCLE,
        "starts": CYCLE,
        "retires": CYCLE,
    }

    def __init__(self, kernel: TimingKernel, program: TimedProgram) -> None:
        members = program.members[self.UNIT]
        self._kernel = kernel
        self.indices: list[int] = members.tolist()
        numbers: list[int] = program.numbers[members].tolist()
        self.timings: list[InstructionTiming] = list(map(program.timings.__getitem__, numbers))
        self._faults: Mapping[int, Fault] = program.start_faults
        self.log = BurstLog(self.UNIT)
        self.dispatches: list[int] = []
        self.readies: list[int] = []
        self.starts: list[int] = []
        self.retires: list[int] = []
        self.ready = NEVER
        self._dispatch_depth = dispatch_depth(kernel.config)
        self._history = queue_depth(self.UNIT, kernel.config)
        """Latest retired instructions whose cycles may affect later events."""
        kernel.register(self.UNIT, self._start_instructions)

    def _start_instructions(self) -> None:
        raise NotImplementedError

    def _has_fault(self, position: int, cycle: int) -> bool:
        """Report the instruction's fault, if any."""
        if not self._faults:
            return False
        fault = self._faults.get(self.indices[position])
        if fault is not None:
            self._kernel.fail(cycle, self.UNIT, self.indices[position], fault)
        return fault is not None

    @property
    def last_cycle(self) -> int:
        return max([*self.starts[-1:], *self.retires[-1:], *self.dispatches[-1:], 0])

    def earliest_start(self, next_dispatch: int) -> int:
        """Return a cycle before which no more instructions start."""
        position = len(self.starts)
        dispatch = self.dispatches[position] if position < len(self.dispatches) else next_dispatch
        return max(dispatch + self._dispatch_depth, self.starts[-1] if position else 0)

    def oldest_relevant(self, next_dispatch: int) -> int:
        """Return the oldest position whose cycles may affect later events."""
        return max(0, min(len(self.retires), len(self.starts) - self._history))

    def queue_state(self, next_dispatch: int, base: int) -> tuple[int, ...]:
        floor, started, retired = self.earliest_start(next_dispatch), len(self.starts), len(self.retires)
        first = self.oldest_relevant(next_dispatch)
        return (
            len(self.dispatches) - started,
            started - retired,
            started - first,
            relative_cycle(self.request, 0, base),
            *(cycle - base for cycle in self.dispatches[started:]),
            *(relative_cycle(cycle, next_dispatch - 1, base) for cycle in self.starts[first:retired]),
            *(cycle - base for cycle in self.starts[max(first, retired) :]),
            *(relative_cycle(cycle, floor - 1, base) for cycle in self.retires[first:]),
        )
