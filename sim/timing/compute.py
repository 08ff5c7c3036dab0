"""The compute unit: GEMM and ALU through one pipeline, LOADs of micro-ops and accumulators, FINISH.

GEMM and ALU start when their predecessor's micro-ops have all been issued, while it drains; one micro-op
a cycle. A LOAD or FINISH waits until everything before it has retired, and what follows waits for it.
"""

from collections.abc import Sequence

from accel.isa import Unit
from accel.sim.timing.engine import NEVER, Engine, Wake
from accel.sim.timing.pads import PadWriter
from accel.sim.timing.plan import Step
from accel.sim.timing.port import BurstLog, Granted, ReadPort, Requester
from accel.timing import EMPTY_DURATION, INDEX_CHECK, REQUEST_STARTUP, WRITE_DELAY, compute_depth


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
        self.pads = PadWriter(engine, Wake.COMPUTE_PADS, self.log, self._settle)
        engine.on(Wake.COMPUTE, self._wake)

    def attach(self, port: ReadPort) -> None:
        self._port = port

    def waiting(self) -> tuple[Sequence[int], int]:
        assert self._loading is not None
        return self._loading.bursts, self._burst

    def granted(self, granted: Granted) -> None:
        step = self._loading
        assert step is not None
        self.log.extend(step.index, granted)
        self._burst += len(granted.grants)
        self._written = granted.lasts[-1] + WRITE_DELAY
        self.request = granted.grants[-1] + 1 if self._burst < len(step.bursts) else NEVER
        if self.request == NEVER:
            self._settle()

    def _wake(self, cycle: int) -> None:
        if self._next >= len(self._queue) or self._loading is not None:
            return
        step = self._queue[self._next]
        assert step.dispatch is not None
        step.ready = max(step.dispatch + 1, self._slot if step.pipelined else self._drained)
        if cycle < step.ready:
            self._engine.schedule(step.ready, Wake.COMPUTE)
        elif self._engine.has_tokens(step, cycle):
            if step.start_fault is not None:
                self._engine.fail(cycle, Unit.COMPUTE, step.index, step.start_fault)
            else:
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
            self._engine.schedule(self._slot, Wake.COMPUTE)
        elif step.bursts or step.pads:
            self._loading = step
            self._burst = 0
            self._written = 0
            self.pads.add(step.pads, cycle + REQUEST_STARTUP)
            if step.bursts:
                self.request = cycle + REQUEST_STARTUP
                self._port.ask(self.request)
        else:
            self._retire(step, cycle + EMPTY_DURATION)
            self._slot = self._drained
            self._engine.schedule(self._drained, Wake.COMPUTE)

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
        self._engine.schedule(self._drained, Wake.COMPUTE)

    def _retire(self, step: Step, cycle: int) -> None:
        self._engine.retire(step, cycle)
        self._drained = cycle + 1
