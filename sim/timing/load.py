"""The load unit: LOADs of inp and wgt, several in flight.

A LOAD starts when the one before has had its last burst granted, ``loads_in_flight`` allows it, and no
LOAD that has not retired fills an overlapping range; one at fault waits for no range. Beats are written
as they come; pad words are written one a cycle in cycles without a beat, those of earlier instructions
first.
"""

from collections.abc import Sequence

from accel.isa import Unit
from accel.sim.timing.engine import NEVER, Engine, Wake
from accel.sim.timing.pads import PadWriter
from accel.sim.timing.plan import Step
from accel.sim.timing.port import BurstLog, Granted, ReadPort, Requester
from accel.timing import EMPTY_DURATION, REQUEST_STARTUP, WRITE_DELAY


class LoadUnit(Requester):
    """The load unit; ``queue`` is filled by fetch."""

    def __init__(self, engine: Engine, queue: list[Step]) -> None:
        self._engine = engine
        self._queue = queue
        self.log = BurstLog(Unit.LOAD)
        self._next = 0
        self._free = 0
        """First cycle in which the next instruction may start, as far as bursts are concerned."""
        self._burst = 0
        self._requesting: Step | None = None
        self._written: list[int] = []
        """Per started instruction, the cycle of its last beat's write, once all bursts are granted."""
        self.pads = PadWriter(engine, Wake.LOAD_PADS, self.log, self._settle)
        self._settled = 0
        engine.on(Wake.LOAD, self._wake)

    def attach(self, port: ReadPort) -> None:
        self._port = port

    def waiting(self) -> tuple[Sequence[int], int]:
        assert self._requesting is not None
        return self._requesting.bursts, self._burst

    def granted(self, granted: Granted) -> None:
        step = self._requesting
        assert step is not None
        self.log.extend(step.index, granted)
        self._burst += len(granted.grants)
        grant = granted.grants[-1]
        if self._burst < len(step.bursts):
            self.request = grant + 1
            return
        self.request = NEVER
        self._requesting = None
        self._written.append(granted.lasts[-1] + WRITE_DELAY)
        self._free = grant + 1
        self._engine.schedule(grant + 1, Wake.LOAD)
        self._settle()

    def _wake(self, cycle: int) -> None:
        if self._next >= len(self._queue) or self._requesting is not None:
            return
        step = self._queue[self._next]
        assert step.dispatch is not None
        ready = max(step.dispatch + 1, self._free)
        for earlier in self._blockers(step):
            if earlier.retire is None:
                return  # its retirement wakes us
            ready = max(ready, earlier.retire + 1)
        step.ready = ready
        if cycle < ready:
            self._engine.schedule(ready, Wake.LOAD)
        elif self._engine.has_tokens(step, cycle):
            if step.start_fault is not None:
                self._engine.fail(cycle, Unit.LOAD, step.index, step.start_fault)
            else:
                self._start(step, cycle)

    def _blockers(self, step: Step) -> list[Step]:
        """Started instructions that must have retired before ``step`` may start."""
        limit = self._engine.config.loads_in_flight
        recent = self._queue[max(0, self._next - limit) : self._next]
        blockers = recent[:1] if len(recent) == limit else []
        if step.sram is not None:
            memory, begin, end = step.sram
            for earlier in recent:
                if earlier.sram is None or earlier.sram[0] != memory:
                    continue
                if earlier.sram[1] < end and begin < earlier.sram[2]:
                    blockers.append(earlier)
        return blockers

    def _start(self, step: Step, cycle: int) -> None:
        self._engine.start(step, cycle)
        self._next += 1
        self.pads.add(step.pads, cycle + REQUEST_STARTUP)
        if step.bursts:
            self._requesting = step
            self._burst = 0
            self.request = cycle + REQUEST_STARTUP
            self._port.ask(self.request)
        else:
            self._written.append(0)
            self._free = cycle + 1
            self._engine.schedule(cycle + 1, Wake.LOAD)
            self._settle()

    def _settle(self) -> None:
        """Retire, in order, instructions whose last write is known."""
        while self._settled < len(self._written):
            step = self._queue[self._settled]
            pads = self.pads.last_write(self._settled)
            if pads is None:
                return
            assert step.start is not None
            retire = max(step.start + EMPTY_DURATION, self._written[self._settled], pads)
            if self._settled:
                previous = self._queue[self._settled - 1].retire
                assert previous is not None
                retire = max(retire, previous + 1)
            self._settled += 1
            self._engine.retire(step, retire)
            self._engine.schedule(retire + 1, Wake.LOAD)
