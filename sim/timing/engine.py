"""The event loop of the timing model, and the token counters through which units meet.

Work grows with instructions and bursts, not with cycles. Handlers run in order of cycle; since whatever
one unit does in cycle t can be seen by others in t + 1 at the earliest, the order of handlers within a
cycle does not matter, but for the read port, which decides last.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heappop, heappush

from accel.config import Config
from accel.faults import Fault, overflow_fault
from accel.isa import Unit
from accel.order import Counter
from accel.sim.timing.plan import Step

NEVER = 1 << 62
"""A cycle that never comes."""


class Wake(IntEnum):
    """What a scheduled cycle is for; within a cycle, handlers run in this order."""

    FETCH = 0
    LOAD = 1
    COMPUTE = 2
    STORE = 3
    LOAD_PADS = 4
    COMPUTE_PADS = 5
    OVERFLOW = 6
    READ_PORT = 7


_KINDS = 16
_WAKE_OF = {Unit.FETCH: Wake.FETCH, Unit.LOAD: Wake.LOAD, Unit.COMPUTE: Wake.COMPUTE, Unit.STORE: Wake.STORE}


@dataclass(order=True)
class Stop:
    """Why the run ended early: the earliest cycle wins, then fetch, load, compute, store."""

    cycle: int
    unit: Unit
    index: int
    fault: Fault = field(compare=False)


@dataclass
class TokenCounter:
    """Cycles of all pushes so far (they may lie ahead) and the number of pops."""

    pushed: list[int]
    popped: int = 0

    def available(self, cycle: int) -> bool:
        """Whether a token may be popped in ``cycle``."""
        return self.popped < len(self.pushed) and self.pushed[self.popped] < cycle


class Engine:
    """Scheduled cycles, token counters and the first error."""

    def __init__(self, config: Config, tokens: tuple[int, int, int, int]) -> None:
        self.config = config
        self.counters = {c: TokenCounter([-1] * tokens[c]) for c in Counter}
        self.stop: Stop | None = None
        self.last_cycle = 0
        """The latest cycle in which anything is known to happen."""
        self._handlers: dict[int, Callable[[int], None]] = {Wake.OVERFLOW: self._check_overflow}
        self._full: list[tuple[int, Counter, int, Step]] = []
        self._heap: list[int] = []

    def on(self, wake: Wake, handler: Callable[[int], None]) -> None:
        """Have ``handler(cycle)`` called whenever ``wake`` is scheduled."""
        self._handlers[wake] = handler

    def schedule(self, cycle: int, wake: Wake) -> None:
        """Call the handler in ``cycle``; being called once too often does no harm."""
        heappush(self._heap, cycle * _KINDS + wake)

    @property
    def next_cycle(self) -> int:
        """The cycle of the next scheduled handler; nothing changes before."""
        return self._heap[0] // _KINDS if self._heap else NEVER

    def run(self, max_cycles: int) -> None:
        """Call handlers in order until none is left or all of the first error's cycle, or of cycle
        ``max_cycles``, have been called."""
        heap, handlers = self._heap, self._handlers
        previous = -1
        while heap:
            cycle, wake = divmod(heap[0], _KINDS)
            if cycle > max_cycles or (self.stop is not None and cycle > self.stop.cycle):
                return
            key = heappop(heap)
            if key != previous:
                previous = key
                handlers[wake](cycle)

    def happens(self, cycle: int) -> None:
        """Note that something happens in ``cycle``."""
        if cycle > self.last_cycle:
            self.last_cycle = cycle

    def fail(self, cycle: int, unit: Unit, index: int, fault: Fault) -> None:
        """An error in ``cycle``, which may lie ahead; the earliest one stays."""
        stop = Stop(cycle, unit, index, fault)
        if self.stop is None or stop < self.stop:
            self.stop = stop

    # --- tokens ----------------------------------------------------------------------------------

    def has_tokens(self, step: Step, cycle: int) -> bool:
        """Whether all tokens that ``step`` pops are there in ``cycle``."""
        for counter in step.pops:
            if not self.counters[counter].available(cycle):
                return False
        return True

    def start(self, step: Step, cycle: int) -> None:
        """Pop ``step``'s tokens."""
        step.start = cycle
        for counter in step.pops:
            self.counters[counter].popped += 1
        self.schedule(cycle + 1, Wake.FETCH)
        self.happens(cycle)

    def retire(self, step: Step, cycle: int) -> None:
        """Push ``step``'s tokens in ``cycle``, which may lie ahead; called in order within a unit."""
        step.retire = cycle
        for counter in step.pushes:
            tokens = self.counters[counter]
            tokens.pushed.append(cycle)
            self.schedule(cycle + 1, _WAKE_OF[counter.target])
            if len(tokens.pushed) - tokens.popped > self.config.token_limit:
                self._full.append((cycle, counter, len(tokens.pushed), step))
                self.schedule(cycle, Wake.OVERFLOW)
        if self.config.serial:
            self.schedule(cycle + 1, Wake.FETCH)
        self.happens(cycle)

    def _check_overflow(self, cycle: int) -> None:
        """Pushes that may have found their counter full: all pops up to ``cycle`` are known now."""
        limit = self.config.token_limit
        for pushed_at, counter, count, step in self._full:
            if pushed_at == cycle and count - self.counters[counter].popped > limit:
                self.fail(cycle, step.unit, step.index, overflow_fault(counter.label, self.config))
        self._full = [entry for entry in self._full if entry[0] > cycle]
