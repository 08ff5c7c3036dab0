"""The store unit: STOREs, whose accumulators are read while earlier ones await their write responses.

A STORE starts when the one before has had its last burst granted and ``stores_in_flight`` allows it; it
retires with its last write response.
"""

from accel.isa import Unit
from accel.sim.timing.engine import Engine, Wake
from accel.sim.timing.plan import Step
from accel.sim.timing.port import BurstLog, WritePort
from accel.timing import EMPTY_DURATION, REQUEST_STARTUP


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
        engine.on(Wake.STORE, self._wake)

    def _wake(self, cycle: int) -> None:
        if self._next >= len(self._queue):
            return
        step = self._queue[self._next]
        assert step.dispatch is not None
        ready = max(step.dispatch + 1, self._free)
        limit = self._engine.config.stores_in_flight
        if self._next >= limit:
            leaver = self._queue[self._next - limit].retire
            assert leaver is not None
            ready = max(ready, leaver + 1)
        step.ready = ready
        if cycle < ready:
            self._engine.schedule(ready, Wake.STORE)
        elif self._engine.has_tokens(step, cycle):
            if step.start_fault is not None:
                self._engine.fail(cycle, Unit.STORE, step.index, step.start_fault)
            else:
                self._start(step, cycle)

    def _start(self, step: Step, cycle: int) -> None:
        """Start and, since nobody competes for the write channels, grant all bursts at once."""
        self._engine.start(step, cycle)
        request = cycle + REQUEST_STARTUP
        retire = cycle + EMPTY_DURATION
        if step.bursts:
            self._port.grant(request, step.index, step.bursts, self.log)
            request = self.log.grants[-1] + 1
            retire = self.log.responses[-1]
        self._free = request if step.bursts else cycle + 1
        if self._next:
            previous = self._queue[self._next - 1].retire
            assert previous is not None
            retire = max(retire, previous + 1)
        self._next += 1
        self._engine.retire(step, retire)
        self._engine.schedule(self._free, Wake.STORE)
