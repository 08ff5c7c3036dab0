"""The compute unit: GEMM, MAC and ALU through one pipeline, LOADs of micro-ops and accumulators, SET, FINISH.

GEMM, MAC and ALU start when their predecessor's micro-ops have all been issued, while it drains; one micro-op
a cycle, of MUL one in ``mul_slots``. A LOAD, SET or FINISH waits until everything before it has retired, and
what follows waits for it.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from accel.core.isa import Unit
from accel.core.timing_rules import EMPTY_DURATION, INDEX_CHECK, REQUEST_STARTUP, WRITE_DELAY, compute_depth
from accel.sim.timing.engine import Engine
from accel.sim.timing.pads import PadWriter
from accel.sim.timing.plan import Plan, Shape
from accel.sim.timing.recurring import NEVER, later
from accel.sim.timing.unit import Worker


class ComputeUnit(Worker):
    """The compute unit."""

    UNIT = Unit.COMPUTE
    CYCLES: ClassVar[tuple[str, ...]] = (*Worker.CYCLES, "_slot", "_drained", "_written")
    COUNTS: ClassVar[tuple[str, ...]] = ("_loads",)
    LISTS: ClassVar[Mapping[str, str]] = {**Worker.LISTS}

    def __init__(self, engine: Engine, plan: Plan) -> None:
        super().__init__(engine, plan)
        self._uop_faults = plan.uop_faults
        self._depth = compute_depth(engine.config)
        self._slot = 0
        """First cycle in which the sequencer is free."""
        self._drained = 0
        """First cycle after the retirement of all that has started."""
        self._loading: Shape | None = None
        self._burst = 0
        self._loads = 0
        self._written = 0
        self.pads = PadWriter(self.log, self._settle)

    def waiting(self) -> tuple[int, Sequence[int]]:
        assert self._loading is not None
        return self.indices[len(self.starts) - 1], self._loading.bursts[self._burst :]

    def granted(self, count: int) -> None:
        assert self._loading is not None
        self._burst += count
        self._written = self.log.lasts[-1] + WRITE_DELAY
        done = self._burst == len(self._loading.bursts)
        self.request = NEVER if done else self.log.grants[-1] + 1
        if self.pads.finish < NEVER:
            self.pads.look()
        self._settle()

    def _advance(self) -> None:
        engine, starts, dispatches = self._engine, self.starts, self.dispatches
        while self._loading is None and len(starts) < len(dispatches):
            place = len(starts)
            shape = self.shapes[place]
            self.ready = max(
                dispatches[place] + self._dispatch, self._slot if shape.pipelined else self._drained
            )
            cycle = engine.with_tokens(shape, self.ready) if shape.pops else self.ready
            if cycle > engine.horizon:
                engine.reaches(cycle)
                return
            if self._fails(place, cycle):
                return
            self._start(place, shape, cycle)

    def _start(self, place: int, shape: Shape, cycle: int) -> None:
        self.starts.append(cycle)
        self.readies.append(self.ready)
        self.ready = NEVER
        self._engine.start(shape, cycle)
        if shape.pipelined:
            slots = max(1, shape.slots)
            self._slot = cycle + slots
            if self._uop_faults and self.indices[place] in self._uop_faults:
                position, fault = self._uop_faults[self.indices[place]]
                slot = cycle + (position + 1) * (shape.slots // shape.uops) - 1
                self._engine.fail(slot + INDEX_CHECK, Unit.COMPUTE, self.indices[place], fault)
            self._retire(shape, cycle + slots - 1 + self._depth)
        elif shape.bursts or shape.pads:
            self._loading = shape
            self._burst = 0
            self._written = 0
            if shape.bursts:
                self.request = cycle + REQUEST_STARTUP
            self.pads.add(shape.pads, cycle + REQUEST_STARTUP)
            self._settle()
        else:
            self._retire(shape, cycle + EMPTY_DURATION)
            self._slot = self._drained

    def _settle(self) -> None:
        """Retire the LOAD in flight if its last write is known."""
        shape = self._loading
        if shape is None or self._burst < len(shape.bursts):
            return
        pads = self.pads.last_write(self._loads)
        if pads is None:
            return
        self._loading = None
        self._loads += 1
        self._retire(shape, max(self._written, pads))
        self._slot = self._drained
        self._engine.wake(Unit.COMPUTE)

    def _retire(self, shape: Shape, cycle: int) -> None:
        self.retires.append(cycle)
        self._engine.retire(shape, cycle)
        self._drained = cycle + 1

    def state(self, fetched: int, base: int) -> tuple[object, ...]:
        """What matters of it; fetch hands out nothing before cycle ``fetched``."""
        floor = self.floor(fetched)
        loading = self._loading is not None
        return (
            self.common(fetched, base),
            later(self._slot, floor, base),
            later(self._drained, floor, base),
            self._burst if loading else -1,
            later(self._written, 0, base) if loading and self._written else 0,
            self.pads.state(self._loads, floor + REQUEST_STARTUP, base),
        )
