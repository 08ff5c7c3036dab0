"""The store unit: STOREs, whose accumulators are read while earlier ones await their write responses.

A STORE starts when the one before has had its last burst granted and ``stores_in_flight`` allows it; it
retires with its last write response.
"""

from accel.core.isa import Unit
from accel.core.timing_rules import EMPTY_DURATION, REQUEST_STARTUP
from accel.sim.timing.engine import Engine
from accel.sim.timing.plan import Step
from accel.sim.timing.port import BurstLog, WritePort


class StoreUnit:
    """The store unit; ``queue`` is filled by fetch."""

    def __init__(self, engine: Engine, queue: list[Step]) -> None:
        self._engine = engine
        self._queue = queue
        self.log = BurstLog(Unit.STORE)
        self._port = WritePort(engine.config)
        self._next = 0
        self._free = 0
        """First cycle in which the next instruction may start, as far as bursts are concerned."""
        engine.on(Unit.STORE, self._advance)

    def _advance(self) -> None:
        engine = self._engine
        limit = engine.config.stores_in_flight
        while self._next < len(self._queue):
            step = self._queue[self._next]
            assert step.dispatch is not None
            step.ready = max(step.dispatch + 1, self._free)
            if self._next >= limit:
                step.ready = max(step.ready, self._retired(self._next - limit) + 1)
            cycle = engine.with_tokens(step, step.ready)
            if not engine.reaches(cycle):
                return
            if step.start_fault is not None:
                engine.fail(cycle, Unit.STORE, step.index, step.start_fault)
                return
            self._start(step, cycle)

    def _start(self, step: Step, cycle: int) -> None:
        """Start and, since nobody competes for the write channels, grant all bursts at once."""
        self._engine.start(step, cycle)
        self._free = cycle + 1
        retire = cycle + EMPTY_DURATION
        if step.bursts:
            self._port.grant(cycle + REQUEST_STARTUP, step.index, step.bursts, self.log)
            self._free = self.log.grants[-1] + 1
            retire = self.log.responses[-1]
        if self._next:
            retire = max(retire, self._retired(self._next - 1) + 1)
        self._next += 1
        self._engine.retire(step, retire)

    def _retired(self, number: int) -> int:
        """When STORE ``number``, which has started, retires."""
        cycle = self._queue[number].retire
        assert cycle is not None
        return cycle
