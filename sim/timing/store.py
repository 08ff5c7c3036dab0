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

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import ClassVar

from accel.core.isa import Unit
from accel.core.memories import RES
from accel.core.timing_rules import EMPTY_DURATION, REQUEST_STARTUP, WRITE_DELAY
from accel.sim.timing.engine import Engine
from accel.sim.timing.plan import Plan, Shape, Shared
from accel.sim.timing.port import BurstLog, WritePort
from accel.sim.timing.recurring import CYCLE, NEVER, PLACE, Mark, Recurring, extend, later
from accel.sim.timing.unit import Worker


class _Stream(Recurring):
    """The unit's LOADs, or its STOREs, as far as they have started.

    Args:
        limit: how many may be in flight.
    """

    CYCLES: ClassVar[tuple[str, ...]] = ("free",)
    LISTS: ClassVar[Mapping[str, str]] = {"places": PLACE}

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.places: list[int] = []
        self.free = 0
        """First cycle in which the next one may start, as far as bursts are concerned; NEVER if it is not
        known."""


class _Elements(Recurring):
    """RES elements that have gone in, or out: how many with each instruction, all before included."""

    LISTS: ClassVar[Mapping[str, str]] = {"places": PLACE}

    def __init__(self) -> None:
        self.sums: list[int] = []
        self.places: list[int] = []
        """Of the instructions among the unit's."""

    @property
    def total(self) -> int:
        return self.sums[-1] if self.sums else 0

    def add(self, count: int, place: int) -> None:
        """An instruction at ``place`` moves ``count`` elements."""
        self.sums.append(self.total + count)
        self.places.append(place)

    def place_of(self, number: int) -> int:
        """The place of the instruction that moves element ``number``, counted from one."""
        return self.places[bisect_left(self.sums, number)]

    def repeat(self, since: Mark, times: int, by: Mapping[str, int]) -> None:
        begin = since["places"]
        moved = self.total - (self.sums[begin - 1] if begin else 0)
        extend(self.sums, begin, times, moved)
        super().repeat(since, times, by)

    def behind(self, number: int) -> int:
        """The first entry of an element behind ``number`` of them."""
        return bisect_right(self.sums, number)


class StoreUnit(Worker):
    """The store unit.

    Attributes:
        writes: the bursts of its STOREs.
    """

    UNIT = Unit.STORE
    CYCLES: ClassVar[tuple[str, ...]] = (*Worker.CYCLES, "_free")
    COUNTS: ClassVar[tuple[str, ...]] = ("_place",)
    LISTS: ClassVar[Mapping[str, str]] = {**Worker.LISTS, "_done": CYCLE, "_par": PLACE}

    def __init__(self, engine: Engine, plan: Plan) -> None:
        super().__init__(engine, plan)
        self.writes = BurstLog(Unit.STORE, writes=True)
        self.port = WritePort(engine.config)
        self._res_depth = RES.depth(engine.config) if engine.config.post else 0
        self.loads = _Stream(engine.config.loads_in_flight)
        self.stores = _Stream(engine.config.stores_in_flight)
        self._reach += 1
        self._free = 0
        """First cycle in which the next instruction may start, whatever it is."""
        self._place = 0
        self._burst = 0
        """The LOAD that asks for bursts, by its place, and how many it has got."""
        self._done: list[int] = []
        """Per started instruction, the cycle of its last write or response; NEVER if it is not known."""
        self._par: list[int] = []
        """Places of the instructions that have PAR elements."""
        self.loaded, self.taken = _Elements(), _Elements()

    def waiting(self) -> tuple[int, Sequence[int]]:
        return self.indices[self._place], self.shapes[self._place].bursts[self._burst :]

    def granted(self, count: int) -> None:
        self._burst += count
        self.request = self.log.grants[-1] + 1
        if self._burst < len(self.shapes[self._place].bursts):
            return
        self.loads.free = self.request
        self.request = NEVER
        self._done[self._place] = self.log.lasts[-1] + WRITE_DELAY
        self._settle()
        self._engine.wake(Unit.STORE)

    def _advance(self) -> None:
        engine = self._engine
        while len(self.starts) < len(self.dispatches):
            place = len(self.starts)
            shape = self.shapes[place]
            ready = self._ready(place, shape)
            if ready == NEVER:
                return
            self.ready = ready
            cycle = engine.with_tokens(shape, ready)
            if not engine.reaches(cycle):
                return
            if self._fails(place, cycle):
                return
            self._start(place, shape, cycle)

    def _retired(self, place: int) -> int:
        """When the instruction at a place retires; NEVER if it is not known."""
        return self.retires[place] if place < len(self.retires) else NEVER

    def _ready(self, place: int, shape: Shape) -> int:
        """The first cycle in which the unit can accept an instruction, the next one; NEVER if it is not
        known."""
        ready = max(self.dispatches[place] + self._dispatch, self._free)
        if place and (shape.alone or self.shapes[place - 1].alone):
            return _behind(self._retired(place - 1), ready)
        stream = self.loads if shape.fills else self.stores
        ready = max(ready, stream.free)
        if len(stream.places) >= stream.limit:
            ready = _behind(self._retired(stream.places[-stream.limit]), ready)
        if shape.shared is not None and ready < NEVER:
            ready = self._par_ready(shape, shape.shared, ready)
            ready = self._res_ready(shape, shape.shared, ready)
        return ready

    def _par_ready(self, shape: Shape, part: Shared, ready: int) -> int:
        """The first cycle from ``ready`` on in which the PAR elements may be filled, or can be read."""
        if part.par_begin == part.par_end:
            return ready
        for place in reversed(self._par):
            if self._retired(place) < ready:
                break
            earlier = self.shapes[place]
            other = earlier.shared
            assert other is not None
            if other.par_begin >= part.par_end or part.par_begin >= other.par_end:
                continue
            if shape.fills:
                return _behind(self._retired(place), ready)
            if earlier.fills:
                return _behind(self._done[place], ready)
        return ready

    def _res_ready(self, shape: Shape, part: Shared, ready: int) -> int:
        """The first cycle from ``ready`` on in which RES has room, or the elements to be taken."""
        if not part.res:
            return ready
        if not shape.fills:
            return _behind(self._done[self.loaded.place_of(self.taken.total + part.res)], ready)
        leaves = self.loaded.total + part.res - self._res_depth
        return _behind(self._retired(self.taken.place_of(leaves)), ready) if leaves > 0 else ready

    def _start(self, place: int, shape: Shape, cycle: int) -> None:
        """Start and, since nobody competes for the write channels, grant all bursts of a STORE at once."""
        self.starts.append(cycle)
        self.readies.append(self.ready)
        self.ready = NEVER
        self._engine.start(shape, cycle)
        self._free = cycle + 1
        done = cycle + EMPTY_DURATION
        if not shape.alone:
            stream = self.loads if shape.fills else self.stores
            stream.places.append(place)
            stream.free = self._free
            if shape.bursts and shape.fills:
                stream.free = done = NEVER
                self._place, self._burst = place, 0
                self.request = cycle + REQUEST_STARTUP
            elif shape.bursts:
                pace = 1 if shape.shared is None else shape.shared.pace
                index = self.indices[place]
                self.port.grant(cycle + REQUEST_STARTUP, index, shape.bursts, pace, self.writes)
                stream.free = self.writes.grants[-1] + 1
                done = self.writes.responses[-1]
            if shape.shared is not None:
                self._note(place, shape, shape.shared)
        self._done.append(done)
        self._settle()

    def _note(self, place: int, shape: Shape, part: Shared) -> None:
        """Remember what an instruction, which starts, fills or takes."""
        if part.par_begin < part.par_end:
            self._par.append(place)
        if part.res:
            (self.loaded if shape.fills else self.taken).add(part.res, place)

    def _settle(self) -> None:
        """Retire, in order, instructions whose last write or response is known."""
        retires, done = self.retires, self._done
        while len(retires) < len(done) and done[len(retires)] < NEVER:
            place = len(retires)
            retire = done[place]
            if place:
                retire = max(retire, retires[-1] + 1)
            retires.append(retire)
            self._engine.retire(self.shapes[place], retire)

    # --- repetition ----------------------------------------------------------------------------------

    def repeat(self, since: Mark, times: int, by: Mapping[str, int]) -> None:
        done, count = self._done, len(self._done) - since["_done"]
        pending = [place for place in range(len(self.retires), len(done)) if done[place] >= NEVER]
        for place in pending:  # known by then, as those a stretch before are now
            done[place] = done[place - count] + by[CYCLE]
        super().repeat(since, times, by)
        for place in pending:
            done[place + times * count] = NEVER

    def _live(self, places: Sequence[int], floor: int) -> list[int]:
        """Those that have not retired before cycle ``floor``, of places in order."""
        found = []
        for place in reversed(places):
            if self._retired(place) < floor:
                break
            found.append(place)
        return found[::-1]

    def _waited_for(self, floor: int) -> tuple[list[int], ...]:
        """Places of instructions that others may have to wait for: those in flight, those with PAR elements,
        and those that load or take RES elements."""
        streams = [self._live(one.places[-one.limit :], floor) for one in (self.loads, self.stores)]
        room = self.taken.behind(self.loaded.total - self._res_depth)
        there = self.loaded.behind(self.taken.total)
        taken, loaded = self.taken.places[room:], self.loaded.places[there:]
        return (*streams, self._live(self._par, floor), self._live(taken, floor), loaded)

    def oldest(self, fetched: int) -> int:
        floor = self.floor(fetched)
        return min([super().oldest(fetched), *(one[0] for one in self._waited_for(floor) if one)])

    def state(self, fetched: int, base: int) -> tuple[object, ...]:
        """What matters of it; fetch hands out nothing before cycle ``fetched``."""
        floor, started = self.floor(fetched), len(self.starts)
        waited_for = self._waited_for(floor)
        taken, loaded = waited_for[3:]
        loading = self.request < NEVER
        return (
            self.common(fetched, base),
            later(self._free, floor, base),
            tuple(later(stream.free, floor, base) for stream in (self.loads, self.stores)),
            tuple(tuple(place - started for place in places) for places in waited_for),
            tuple(total - self.taken.total for total in self.taken.sums[-len(taken) :] if taken),
            tuple(total - self.loaded.total for total in self.loaded.sums[-len(loaded) :] if loaded),
            (self._place - started, self._burst) if loading else (),
            tuple(later(done, floor - 1, base) for done in self._done[self.oldest(fetched) :]),
            self.loaded.total - self.taken.total,
            self.port.state(self.writes, floor + REQUEST_STARTUP, base),
        )


def _behind(cycle: int, ready: int) -> int:
    """The first cycle from ``ready`` on behind ``cycle``; NEVER if that is not known."""
    return NEVER if cycle >= NEVER else max(ready, cycle + 1)
