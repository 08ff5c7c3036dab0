"""The compute unit: GEMM, MAC and ALU through one pipeline, LOADs of micro-ops and accumulators, SET, FINISH.

GEMM, MAC and ALU start when their predecessor's micro-ops have all been issued, while it drains; one micro-op
a cycle. A LOAD, SET or FINISH waits until everything before it has retired, and what follows waits for it.
"""

from collections.abc import Sequence

from accel.core.isa import Unit
from accel.core.timing_rules import EMPTY_DURATION, INDEX_CHECK, REQUEST_STARTUP, WRITE_DELAY, compute_depth
from accel.sim.timing.engine import NEVER, Engine
from accel.sim.timing.pads import PadWriter
from accel.sim.timing.plan import Step
from accel.sim.timing.port import BurstLog, Requester


class ComputeUnit(Requester):
    """The compute unit; ``queue`` is filled by fetch."""

    def __init__(self, engine: Engine, queue: list[Step]) -> None:
        self._engine = engine
        self._queue = queue
        self.log = BurstLog(Unit.COMPUTE)
        self._next = 0
        self._depth = compute_depth(engine.config)
        self._slot = 0
        """First cycle in which the sequencer is free."""
        self._drained = 0
        """First cycle after the retirement of all that has started."""
        self._loading: Step | None = None
        self._burst = 0
        self._loads = 0
        self._written = 0
        self.pads = PadWriter(self.log, self._settle)
        engine.on(Unit.COMPUTE, self._advance)

    def waiting(self) -> tuple[int, Sequence[int]]:
        step = self._loading
        assert step is not None
        return step.index, step.bursts[self._burst :]

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
        engine = self._engine
        while self._next < len(self._queue) and self._loading is None:
            step = self._queue[self._next]
            assert step.dispatch is not None
            step.ready = max(step.dispatch + 1, self._slot if step.pipelined else self._drained)
            cycle = engine.with_tokens(step, step.ready)
            if not engine.reaches(cycle):
                return
            if step.start_fault is not None:
                engine.fail(cycle, Unit.COMPUTE, step.index, step.start_fault)
                return
            self._start(step, cycle)

    def _start(self, step: Step, cycle: int) -> None:
        self._engine.start(step, cycle)
        self._next += 1
        if step.pipelined:
            slots = max(1, step.uops)
            self._slot = cycle + slots
            if step.uop_fault is not None:
                position, fault = step.uop_fault
                self._engine.fail(cycle + position + INDEX_CHECK, Unit.COMPUTE, step.index, fault)
            self._retire(step, cycle + slots - 1 + self._depth)
        elif step.bursts or step.pads:
            self._loading = step
            self._burst = 0
            self._written = 0
            if step.bursts:
                self.request = cycle + REQUEST_STARTUP
            self.pads.add(step.pads, cycle + REQUEST_STARTUP)
            self._settle()
        else:
            self._retire(step, cycle + EMPTY_DURATION)
            self._slot = self._drained

    def _settle(self) -> None:
        """Retire the LOAD in flight if its last write is known."""
        step = self._loading
        if step is None or self._burst < len(step.bursts):
            return
        pads = self.pads.last_write(self._loads)
        if pads is None:
            return
        self._loading = None
        self._loads += 1
        self._retire(step, max(self._written, pads))
        self._slot = self._drained
        self._engine.wake(Unit.COMPUTE)

    def _retire(self, step: Step, cycle: int) -> None:
        self._engine.retire(step, cycle)
        self._drained = cycle + 1
