"""The store unit: STOREs, whose accumulators are read while earlier ones await their write responses, LOADs
of what outputs are finished with, and SETs of how.

Instructions start in order, at most one a cycle. A STORE starts when the STORE before has had its last burst
granted and ``stores_in_flight`` allows it; a LOAD when the LOAD before has, and ``loads_in_flight`` does.
They do not wait for one another's grants, only for what they share:

- PAR: a LOAD waits until nothing that has not retired fills or reads what it fills; a STORE until what
  it reads is written.
- RES: a LOAD waits for room, which STOREs make when they retire; a STORE until what it takes is written.

A LOAD retires with its last write, a STORE with its last write response, all in order. A SET starts when all
before it have retired, and what follows it when it has. One at fault waits neither for PAR nor for RES.
"""

from bisect import bisect_left
from collections.abc import Sequence

from accel.core.isa import Unit
from accel.core.memories import RES
from accel.core.timing_rules import EMPTY_DURATION, REQUEST_STARTUP, WRITE_DELAY
from accel.sim.timing.engine import NEVER, Engine
from accel.sim.timing.plan import Shared, Step
from accel.sim.timing.port import BurstLog, Requester, WritePort


class _Stream:
    """The unit's LOADs, or its STOREs, as far as they have started.

    Args:
        limit: how many may be in flight.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.steps: list[Step] = []
        self.free = 0
        """First cycle in which the next one may start, as far as bursts are concerned; NEVER if it is not
        known."""


class _Elements:
    """RES elements that have gone in, or out: how many with each instruction, all before included."""

    def __init__(self) -> None:
        self.sums: list[int] = []
        self.places: list[int] = []
        """Of the instructions, in the queue."""

    @property
    def total(self) -> int:
        return self.sums[-1] if self.sums else 0

    def add(self, count: int, place: int) -> None:
        """An instruction at ``place`` in the queue moves ``count`` elements."""
        self.sums.append(self.total + count)
        self.places.append(place)

    def place_of(self, number: int) -> int:
        """The place of the instruction that moves element ``number``, counted from one."""
        return self.places[bisect_left(self.sums, number)]


class StoreUnit(Requester):
    """The store unit; ``queue`` is filled by fetch.

    Attributes:
        writes: the bursts of its STOREs.
    """

    def __init__(self, engine: Engine, queue: list[Step]) -> None:
        self._engine = engine
        self._queue = queue
        self.log = BurstLog(Unit.STORE)
        self.writes = BurstLog(Unit.STORE, writes=True)
        self._port = WritePort(engine.config)
        self._res_depth = RES.depth(engine.config) if engine.config.post else 0
        self._loads = _Stream(engine.config.loads_in_flight)
        self._stores = _Stream(engine.config.stores_in_flight)
        self._next = 0
        self._free = 0
        """First cycle in which the next instruction may start, whatever it is."""
        self._place = 0
        self._burst = 0
        """The LOAD that asks for bursts, by its place in the queue, and how many it has got."""
        self._done: list[int] = []
        """Per started instruction, the cycle of its last write or response; NEVER if it is not known."""
        self._par: list[int] = []
        """Places of the instructions that have PAR elements."""
        self._loaded, self._taken = _Elements(), _Elements()
        self._settled = 0
        engine.on(Unit.STORE, self._advance)

    def waiting(self) -> tuple[int, Sequence[int]]:
        step = self._queue[self._place]
        return step.index, step.bursts[self._burst :]

    def granted(self, count: int) -> None:
        self._burst += count
        self.request = self.log.grants[-1] + 1
        if self._burst < len(self._queue[self._place].bursts):
            return
        self._loads.free = self.request
        self.request = NEVER
        self._done[self._place] = self.log.lasts[-1] + WRITE_DELAY
        self._settle()
        self._engine.wake(Unit.STORE)

    def _advance(self) -> None:
        engine = self._engine
        while self._next < len(self._queue):
            step = self._queue[self._next]
            ready = self._ready(step)
            if ready == NEVER:
                return
            step.ready = ready
            cycle = engine.with_tokens(step, ready)
            if not engine.reaches(cycle):
                return
            if step.start_fault is not None:
                engine.fail(cycle, Unit.STORE, step.index, step.start_fault)
                return
            self._start(step, cycle)

    def _ready(self, step: Step) -> int:
        """The first cycle in which the unit can accept ``step``, the next one; NEVER if it is not known."""
        assert step.dispatch is not None
        ready = max(step.dispatch + 1, self._free)
        before = self._queue[self._next - 1] if self._next else None
        if before is not None and (step.alone or before.alone):
            return _behind(before.retire, ready)
        stream = self._loads if step.fills else self._stores
        ready = max(ready, stream.free)
        if len(stream.steps) >= stream.limit:
            ready = _behind(stream.steps[-stream.limit].retire, ready)
        if step.shared is not None and ready < NEVER:
            ready = self._par_ready(step, step.shared, ready)
            ready = self._res_ready(step, step.shared, ready)
        return ready

    def _par_ready(self, step: Step, part: Shared, ready: int) -> int:
        """The first cycle from ``ready`` on in which the PAR elements may be filled, or can be read."""
        if part.par_begin == part.par_end:
            return ready
        for place in reversed(self._par):
            earlier = self._queue[place]
            if earlier.retire is not None and earlier.retire < ready:
                break
            other = earlier.shared
            assert other is not None
            if other.par_begin >= part.par_end or part.par_begin >= other.par_end:
                continue
            if step.fills:
                return _behind(earlier.retire, ready)
            if earlier.fills:
                return _behind(self._done[place], ready)
        return ready

    def _res_ready(self, step: Step, part: Shared, ready: int) -> int:
        """The first cycle from ``ready`` on in which RES has room, or the elements to be taken."""
        if not part.res:
            return ready
        if not step.fills:
            return _behind(self._done[self._loaded.place_of(self._taken.total + part.res)], ready)
        leaves = self._loaded.total + part.res - self._res_depth
        return _behind(self._queue[self._taken.place_of(leaves)].retire, ready) if leaves > 0 else ready

    def _start(self, step: Step, cycle: int) -> None:
        """Start and, since nobody competes for the write channels, grant all bursts of a STORE at once."""
        self._engine.start(step, cycle)
        self._free = cycle + 1
        done = cycle + EMPTY_DURATION
        if not step.alone:
            stream = self._loads if step.fills else self._stores
            stream.steps.append(step)
            stream.free = self._free
            if step.bursts and step.fills:
                stream.free = done = NEVER
                self._place, self._burst = self._next, 0
                self.request = cycle + REQUEST_STARTUP
            elif step.bursts:
                pace = 1 if step.shared is None else step.shared.pace
                self._port.grant(cycle + REQUEST_STARTUP, step.index, step.bursts, pace, self.writes)
                stream.free = self.writes.grants[-1] + 1
                done = self.writes.responses[-1]
            if step.shared is not None:
                self._note(step, step.shared)
        self._done.append(done)
        self._next += 1
        self._settle()

    def _note(self, step: Step, part: Shared) -> None:
        """Remember what ``step``, which starts, fills or takes."""
        if part.par_begin < part.par_end:
            self._par.append(self._next)
        if part.res:
            (self._loaded if step.fills else self._taken).add(part.res, self._next)

    def _settle(self) -> None:
        """Retire, in order, instructions whose last write or response is known."""
        while self._settled < len(self._done) and self._done[self._settled] < NEVER:
            retire = self._done[self._settled]
            if self._settled:
                previous = self._queue[self._settled - 1].retire
                assert previous is not None
                retire = max(retire, previous + 1)
            step = self._queue[self._settled]
            self._settled += 1
            self._engine.retire(step, retire)


def _behind(cycle: int | None, ready: int) -> int:
    """The first cycle from ``ready`` on behind ``cycle``; NEVER if that is not known."""
    return NEVER if cycle is None or cycle >= NEVER else max(ready, cycle + 1)
