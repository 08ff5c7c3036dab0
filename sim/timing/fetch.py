"""Fetch: reads the program in bursts, as far as its buffer has room, and hands out one instruction a cycle.

An instruction is handed out in the first cycle in which it has arrived, the one before it has gone, its
unit's queue has room, and, in serial mode, the one before it has retired. What is wrong with it is found
in the first cycle in which it has arrived and the one before it has gone, whether there is room or not.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from accel.core.faults import EMPTY_PROGRAM
from accel.core.isa import Unit
from accel.core.timing_rules import FETCH_STARTUP, WRITE_DELAY, fetch_bursts
from accel.core.token_rules import queue_depth
from accel.sim.timing.engine import Engine
from accel.sim.timing.plan import Plan
from accel.sim.timing.port import BurstLog, Requester
from accel.sim.timing.recurring import CYCLE, NEVER, later
from accel.sim.timing.unit import Worker


class Fetch(Requester):
    """The fetch unit.

    Attributes:
        bursts: those in which it reads the program.
        asked: how many of them are granted.
        arrivals, dispatches: by instruction, the cycle in which it could be handed out, were it alone, and in
            which it is; as far as they are known.
        free: first cycle in which the next instruction may be handed out, as far as the one before goes.
    """

    CYCLES: ClassVar[tuple[str, ...]] = ("request", "free", "_last_grant")
    COUNTS: ClassVar[tuple[str, ...]] = ("asked",)
    LISTS: ClassVar[Mapping[str, str]] = {"arrivals": CYCLE, "dispatches": CYCLE}

    def __init__(self, engine: Engine, plan: Plan, address: int, workers: Sequence[Worker]) -> None:
        self._engine = engine
        self._faults = plan.fetch_faults
        self._units: list[int] = plan.units.tolist()
        self.log = BurstLog(Unit.FETCH)
        self.bursts = fetch_bursts(address, len(plan), engine.config)
        self.asked = 0
        self.arrivals: list[int] = []
        self.dispatches: list[int] = []
        self.free = 0
        self._last_grant = FETCH_STARTUP - 1
        self._workers: list[Worker | None] = [None] * len(Unit)
        self._depths = [0] * len(Unit)
        for worker in workers:
            self._workers[worker.UNIT] = worker
            self._depths[worker.UNIT] = queue_depth(worker.UNIT, engine.config)
        engine.on(Unit.FETCH, self._advance)
        self._ask()
        if not len(plan):
            engine.fail(FETCH_STARTUP, Unit.FETCH, 0, EMPTY_PROGRAM)

    def waiting(self) -> tuple[int, Sequence[int]]:
        return len(self.arrivals), (self.bursts[self.asked].burst.beats,)

    def granted(self, count: int) -> None:
        before = self.log.lasts[-1] - self.log.beats[-1] + WRITE_DELAY
        self.arrivals.extend([before + 1 + beat for beat in self.bursts[self.asked].arrival])
        self.asked += 1
        self._last_grant = self.log.grants[-1]
        self._ask()
        self._engine.wake(Unit.FETCH)

    def _ask(self) -> None:
        """Set the request for the next burst, if it is known when the buffer will have room for it."""
        self.request = NEVER
        if self.asked == len(self.bursts):
            return
        arriving = len(self.bursts[self.asked].arrival)
        leaves = len(self.arrivals) + arriving - self._engine.config.fetch_buffer - 1
        cycle = self._last_grant + 1
        if leaves >= 0:
            if leaves >= len(self.dispatches):
                return
            cycle = max(cycle, self.dispatches[leaves] + 1)
        self.request = cycle

    def _advance(self) -> None:
        engine, arrivals, dispatches = self._engine, self.arrivals, self.dispatches
        engine.room = None
        horizon = engine.horizon
        for index in range(len(dispatches), len(arrivals)):
            cycle = max(arrivals[index], self.free)
            if cycle > horizon:
                engine.reaches(cycle)
                break
            if self._faults and index in self._faults:
                engine.fail(cycle, Unit.FETCH, index, self._faults[index])
                break
            if engine.serial and index:
                last = self._workers[self._units[index - 1]]
                assert last is not None
                if len(last.retires) < len(last.dispatches):
                    break
                cycle = max(cycle, last.retires[-1] + 1)
            worker = self._workers[self._units[index]]
            assert worker is not None
            handed = worker.dispatches
            leaver = len(handed) - self._depths[worker.UNIT]
            if leaver >= 0:
                if leaver >= len(worker.starts):
                    engine.room = worker.UNIT
                    break
                cycle = max(cycle, worker.starts[leaver] + 1)
            if cycle > horizon:
                engine.reaches(cycle)
                break
            dispatches.append(cycle)
            handed.append(cycle)
            self.free = cycle + 1
            engine.wake(worker.UNIT)
        if self.request == NEVER:
            self._ask()

    def state(self, base: int) -> tuple[int, ...]:
        """What matters of it, and of its next bursts."""
        handed, buffer = len(self.dispatches), self._engine.config.fetch_buffer
        room = self._engine.room
        return (
            -1 if room is None else room,
            len(self.arrivals) - handed,
            later(self.request, 0, base),
            self.free - base,
            self._last_grant - base,
            *(cycle - base for cycle in self.arrivals[handed:]),
            *(later(cycle, self._last_grant, base) for cycle in self.dispatches[max(0, handed - buffer) :]),
        )
