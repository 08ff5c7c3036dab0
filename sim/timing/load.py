"""The load unit: LOADs of inp and wgt, several in flight, and SETs of inp.

A LOAD starts when the one before has had its last burst granted, ``loads_in_flight`` allows it, and no
LOAD that has not retired fills an overlapping range; one at fault waits for no range. Beats are written
as they come; pad words are written one a cycle in cycles without a beat, those of earlier instructions
first. A SET starts when all before it have retired, and what follows it when it has.
"""

from collections.abc import Sequence

from accel.core.isa import Unit
from accel.core.timing_rules import EMPTY_DURATION, REQUEST_STARTUP, WRITE_DELAY
from accel.sim.timing.engine import NEVER, Engine
from accel.sim.timing.pads import PadWriter
from accel.sim.timing.plan import Step
from accel.sim.timing.port import BurstLog, Requester


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
        self.pads = PadWriter(self.log, self._settle)
        self._settled = 0
        engine.on(Unit.LOAD, self._advance)

    def waiting(self) -> tuple[int, Sequence[int]]:
        step = self._requesting
        assert step is not None
        return step.index, step.bursts[self._burst :]

    def granted(self, count: int) -> None:
        assert self._requesting is not None
        self._burst += count
        self.request = self.log.grants[-1] + 1
        if self.pads.finish < NEVER:
            self.pads.look()
        if self._burst == len(self._requesting.bursts):
            self._free = self.request
            self.request = NEVER
            self._requesting = None
            self._written.append(self.log.lasts[-1] + WRITE_DELAY)
        self._settle()

    def _advance(self) -> None:
        engine = self._engine
        while self._next < len(self._queue) and self._requesting is None:
            step = self._queue[self._next]
            ready = self._ready(step)
            if ready == NEVER:
                return
            step.ready = ready
            cycle = engine.with_tokens(step, ready)
            if not engine.reaches(cycle):
                return
            if step.start_fault is not None:
                engine.fail(cycle, Unit.LOAD, step.index, step.start_fault)
                return
            self._start(step, cycle)

    def _ready(self, step: Step) -> int:
        """The first cycle in which the unit can accept ``step``, the next one; NEVER if it is not known."""
        assert step.dispatch is not None
        ready = max(step.dispatch + 1, self._free)
        before = self._queue[self._next - 1] if self._next else None
        if before is not None and (step.alone or before.alone):
            if before.retire is None:
                return NEVER
            ready = max(ready, before.retire + 1)
        limit = self._engine.config.loads_in_flight
        leaver = self._queue[self._next - limit] if self._next >= limit else None
        for earlier in self._queue[max(0, self._next - limit) : self._next]:
            retire = earlier.retire
            if retire is not None and retire < ready:
                continue
            if earlier is leaver or _overlap(step, earlier):
                if retire is None:
                    return NEVER
                ready = retire + 1
        return ready

    def _start(self, step: Step, cycle: int) -> None:
        self._engine.start(step, cycle)
        self._next += 1
        self.pads.add(step.pads, cycle + REQUEST_STARTUP)
        if step.bursts:
            self._requesting = step
            self._burst = 0
            self.request = cycle + REQUEST_STARTUP
        else:
            self._written.append(0)
            self._free = cycle + 1
            self._settle()

    def _settle(self) -> None:
        """Retire, in order, instructions whose last write is known."""
        while self._settled < len(self._written):
            step = self._queue[self._settled]
            pads = self.pads.last_write(self._settled)
            if pads is None:
                break
            assert step.start is not None
            retire = max(step.start + EMPTY_DURATION, self._written[self._settled], pads)
            if self._settled:
                previous = self._queue[self._settled - 1].retire
                assert previous is not None
                retire = max(retire, previous + 1)
            self._settled += 1
            self._engine.retire(step, retire)
        self._engine.wake(Unit.LOAD)


def _overlap(one: Step, other: Step) -> bool:
    """Whether two LOADs fill overlapping ranges of one scratchpad."""
    if one.sram is None or other.sram is None:
        return False
    memory, begin, end = one.sram
    others, low, high = other.sram
    return memory == others and begin < high and low < end
