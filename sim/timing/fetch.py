"""Fetch: reads the program in bursts, as far as its buffer has room, and hands out one instruction a cycle.

An instruction is handed out in the first cycle in which it has arrived, the one before it has gone, its
unit's queue has room, and, in serial mode, the one before it has retired. What is wrong with it is found
in the first cycle in which it has arrived and the one before it has gone, whether there is room or not.
"""

from collections.abc import Sequence

from accel.core.faults import EMPTY_PROGRAM
from accel.core.isa import Unit
from accel.core.timing_rules import FETCH_STARTUP, WRITE_DELAY, fetch_bursts
from accel.core.token_rules import WORKERS, queue_depth
from accel.sim.timing.engine import NEVER, Engine
from accel.sim.timing.plan import Step
from accel.sim.timing.port import BurstLog, Requester


class Fetch(Requester):
    """The fetch unit.

    Attributes:
        queues: by the number of the unit, the steps handed out so far, in order.
    """

    def __init__(self, engine: Engine, steps: list[Step], address: int) -> None:
        self._engine = engine
        self._steps = steps
        self.log = BurstLog(Unit.FETCH)
        self._bursts = fetch_bursts(address, len(steps), engine.config)
        self._asked = 0
        """Bursts granted so far."""
        self._arrived = 0
        """Instructions whose arrival is known."""
        self._next = 0
        self._free = 0
        """First cycle in which the next instruction may be handed out, as far as the one before goes."""
        self._last_grant = FETCH_STARTUP - 1
        self.queues: list[list[Step]] = [[] for _ in Unit]
        self._depths = [queue_depth(unit, engine.config) if unit in WORKERS else 0 for unit in Unit]
        engine.on(Unit.FETCH, self._advance)
        self._ask()
        if not steps:
            engine.fail(FETCH_STARTUP, Unit.FETCH, 0, EMPTY_PROGRAM)

    def waiting(self) -> tuple[int, Sequence[int]]:
        return self._arrived, (self._bursts[self._asked].burst.beats,)

    def granted(self, count: int) -> None:
        before = self.log.lasts[-1] - self.log.beats[-1] + WRITE_DELAY
        for beat in self._bursts[self._asked].arrival:
            self._steps[self._arrived].arrival = before + 1 + beat
            self._arrived += 1
        self._asked += 1
        self._last_grant = self.log.grants[-1]
        self._ask()
        self._engine.wake(Unit.FETCH)

    def _ask(self) -> None:
        """Set the request for the next burst, if it is known when the buffer will have room for it."""
        self.request = NEVER
        if self._asked == len(self._bursts):
            return
        arriving = len(self._bursts[self._asked].arrival)
        leaves = self._arrived + arriving - self._engine.config.fetch_buffer - 1
        cycle = self._last_grant + 1
        if leaves >= 0:
            left = self._steps[leaves].dispatch
            if left is None:
                return
            cycle = max(cycle, left + 1)
        self.request = cycle

    def _advance(self) -> None:
        engine = self._engine
        engine.room = None
        while self._next < self._arrived:
            step = self._steps[self._next]
            assert step.arrival is not None
            cycle = max(step.arrival, self._free)
            if not engine.reaches(cycle):
                break
            if step.fetch_fault is not None:
                engine.fail(cycle, Unit.FETCH, step.index, step.fetch_fault)
                break
            if engine.config.serial and self._next:
                retired = self._steps[self._next - 1].retire
                if retired is None:
                    break
                cycle = max(cycle, retired + 1)
            queue, depth = self.queues[step.unit], self._depths[step.unit]
            if len(queue) >= depth:
                left = queue[-depth].start
                if left is None:
                    engine.room = step.unit
                    break
                cycle = max(cycle, left + 1)
            if not engine.reaches(cycle):
                break
            step.dispatch = cycle
            queue.append(step)
            self._next += 1
            self._free = cycle + 1
            engine.wake(step.unit)
        if self.request == NEVER:
            self._ask()
