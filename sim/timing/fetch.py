"""Fetch: reads the program in bursts, as far as its buffer has room, and hands out one instruction a cycle.

An instruction is handed out in the first cycle in which it has arrived, the one before it has gone, its
unit's queue has room, and, in serial mode, the one before it has retired. What is wrong with it is found
in the first cycle in which it has arrived and the one before it has gone, whether there is room or not.
"""

from collections.abc import Sequence

from accel.faults import EMPTY_PROGRAM
from accel.isa import Unit
from accel.order import WORKERS, queue_depth
from accel.sim.timing.engine import NEVER, Engine, Wake
from accel.sim.timing.plan import Step
from accel.sim.timing.port import BurstLog, Granted, ReadPort, Requester
from accel.timing import FETCH_STARTUP, WRITE_DELAY, fetch_bursts

_WAKES = {Unit.LOAD: Wake.LOAD, Unit.COMPUTE: Wake.COMPUTE, Unit.STORE: Wake.STORE}


class Fetch(Requester):
    """The fetch unit.

    Attributes:
        queues: per unit, the steps handed out so far, in order.
    """

    def __init__(self, engine: Engine, steps: list[Step], address: int) -> None:
        self._engine = engine
        self._steps = steps
        self.log = BurstLog(Unit.FETCH)
        self._bursts = fetch_bursts(address, len(steps), engine.config)
        self._asked = 0
        """Bursts granted so far."""
        self._arrival: list[int] = []
        """Cycle from which each instruction can be handed out, as far as known."""
        self._next = 0
        self._last_grant = FETCH_STARTUP - 1
        self._depth = {unit: queue_depth(unit, engine.config) for unit in WORKERS}
        self.queues: dict[Unit, list[Step]] = {unit: [] for unit in WORKERS}
        engine.on(Wake.FETCH, self._wake)

    def attach(self, port: ReadPort) -> None:
        self._port = port
        self._ask()
        if not self._steps:
            self._engine.fail(FETCH_STARTUP, Unit.FETCH, 0, EMPTY_PROGRAM)

    def waiting(self) -> tuple[Sequence[int], int]:
        return (self._bursts[self._asked].burst.beats,), 0

    def granted(self, granted: Granted) -> None:
        (grant,), (first,), _ = granted
        arrival = self._bursts[self._asked].arrival
        self.log.extend(len(self._arrival), granted)
        for beat in arrival:
            self._steps[len(self._arrival)].arrival = first + beat + WRITE_DELAY
            self._arrival.append(first + beat + WRITE_DELAY)
        self._asked += 1
        self._last_grant = grant
        self._ask()
        self._engine.schedule(self._arrival[-len(arrival)], Wake.FETCH)

    @property
    def finished(self) -> bool:
        return self._next == len(self._steps)

    def _ask(self) -> None:
        """Set the request for the next burst, if the buffer will have room for it by a known cycle."""
        self.request = NEVER
        if self._asked == len(self._bursts):
            return
        arriving = len(self._bursts[self._asked].arrival)
        leaves = len(self._arrival) + arriving - self._engine.config.fetch_buffer - 1
        cycle = self._last_grant + 1
        if leaves >= 0:
            left = self._steps[leaves].dispatch
            if left is None:
                return
            cycle = max(cycle, left + 1)
        self.request = cycle
        self._port.ask(cycle)

    def _wake(self, cycle: int) -> None:
        if self.finished or self._next >= len(self._arrival):
            return
        if cycle < self._arrival[self._next]:
            self._engine.schedule(self._arrival[self._next], Wake.FETCH)
            return
        step = self._steps[self._next]
        previous = self._steps[self._next - 1] if self._next else None
        if previous is not None and previous.dispatch is not None and previous.dispatch >= cycle:
            return
        if step.fetch_fault is not None:
            self._engine.fail(cycle, Unit.FETCH, step.index, step.fetch_fault)
            return
        if self._engine.config.serial and not _retired(previous, cycle):
            return
        queue, depth = self.queues[step.unit], self._depth[step.unit]
        if len(queue) >= depth:
            leaver = queue[len(queue) - depth].start
            if leaver is None or leaver >= cycle:
                return
        step.dispatch = cycle
        queue.append(step)
        self._next += 1
        self._engine.happens(cycle)
        self._engine.schedule(cycle + 1, _WAKES[step.unit])
        self._engine.schedule(cycle + 1, Wake.FETCH)
        if self.request == NEVER:
            self._ask()


def _retired(step: Step | None, cycle: int) -> bool:
    """Whether ``step``, if there is one, has retired before ``cycle``."""
    return step is None or (step.retire is not None and step.retire < cycle)
