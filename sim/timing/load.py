"""The load unit: LOADs of inp and wgt, several in flight, and SETs of inp.

A LOAD starts when the one before has had its last burst granted, ``loads_in_flight`` allows it, and no
LOAD that has not retired fills an overlapping range; one at fault waits for no range. Beats are written
as they come; pad words are written one a cycle in cycles without a beat, those of earlier instructions
first. A SET starts when all before it have retired, and what follows it when it has.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from accel.core.isa import Unit
from accel.core.timing_rules import EMPTY_DURATION, REQUEST_STARTUP, WRITE_DELAY
from accel.sim.timing.engine import Engine
from accel.sim.timing.pads import PadWriter
from accel.sim.timing.plan import Plan, Shape
from accel.sim.timing.recurring import CYCLE, NEVER, later
from accel.sim.timing.unit import Worker


class LoadUnit(Worker):
    """The load unit."""

    UNIT = Unit.LOAD
    CYCLES: ClassVar[tuple[str, ...]] = (*Worker.CYCLES, "_free")
    LISTS: ClassVar[Mapping[str, str]] = {**Worker.LISTS, "_written": CYCLE}

    def __init__(self, engine: Engine, plan: Plan) -> None:
        super().__init__(engine, plan)
        self._limit = engine.config.loads_in_flight
        self._reach = max(self._reach, self._limit)
        self._free = 0
        """First cycle in which the next instruction may start, as far as bursts are concerned."""
        self._burst = 0
        self._requesting: Shape | None = None
        self._written: list[int] = []
        """Per started instruction, the cycle of its last beat's write, once all bursts are granted; 0 if it
        has none."""
        self.pads = PadWriter(self.log, self._settle)

    def waiting(self) -> tuple[int, Sequence[int]]:
        assert self._requesting is not None
        return self.indices[len(self.starts) - 1], self._requesting.bursts[self._burst :]

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
        engine, starts, dispatches = self._engine, self.starts, self.dispatches
        while self._requesting is None and len(starts) < len(dispatches):
            place = len(starts)
            shape = self.shapes[place]
            ready = self._ready(place, shape)
            if ready == NEVER:
                return
            self.ready = ready
            cycle = engine.with_tokens(shape, ready) if shape.pops else ready
            if cycle > engine.horizon:
                engine.reaches(cycle)
                return
            if self._fails(place, cycle):
                return
            self._start(shape, cycle)

    def _ready(self, place: int, shape: Shape) -> int:
        """The first cycle in which the unit can accept an instruction, the next one; NEVER if it is not
        known."""
        ready = max(self.dispatches[place] + self._dispatch, self._free)
        shapes, retires = self.shapes, self.retires
        retired = len(retires)
        if place and (shape.alone or shapes[place - 1].alone):
            if retired < place:
                return NEVER
            ready = max(ready, retires[-1] + 1)
        leaver = place - self._limit
        for earlier in range(max(0, leaver), place):
            if earlier < retired:
                retire = retires[earlier]
                if retire < ready:
                    continue
                if earlier == leaver or _overlap(shape, shapes[earlier]):
                    ready = retire + 1
            elif earlier == leaver or _overlap(shape, shapes[earlier]):
                return NEVER
        return ready

    def _start(self, shape: Shape, cycle: int) -> None:
        self.starts.append(cycle)
        self.readies.append(self.ready)
        self.ready = NEVER
        self._engine.start(shape, cycle)
        self.pads.add(shape.pads, cycle + REQUEST_STARTUP)
        if shape.bursts:
            self._requesting = shape
            self._burst = 0
            self.request = cycle + REQUEST_STARTUP
        else:
            self._written.append(0)
            self._free = cycle + 1
            self._settle()

    def _settle(self) -> None:
        """Retire, in order, instructions whose last write is known."""
        retires, written = self.retires, self._written
        while len(retires) < len(written):
            place = len(retires)
            pads = self.pads.last_write(place)
            if pads is None:
                break
            retire = max(self.starts[place] + EMPTY_DURATION, written[place], pads)
            if place:
                retire = max(retire, retires[-1] + 1)
            retires.append(retire)
            self._engine.retire(self.shapes[place], retire)
        self._engine.wake(Unit.LOAD)

    def state(self, fetched: int, base: int) -> tuple[object, ...]:
        """What matters of it; fetch hands out nothing before cycle ``fetched``."""
        floor, settled = self.floor(fetched), len(self.retires)
        requesting = self._requesting is not None
        return (
            self.common(fetched, base),
            later(self._free, floor, base),
            self._burst if requesting else -1,
            tuple(cycle and cycle - base for cycle in self._written[settled:]),
            self.pads.state(settled, floor + REQUEST_STARTUP, base),
        )


def _overlap(one: Shape, other: Shape) -> bool:
    """Whether two LOADs fill overlapping ranges of one scratchpad."""
    if one.sram is None or other.sram is None:
        return False
    memory, begin, end = one.sram
    others, low, high = other.sram
    return memory == others and begin < high and low < end
