"""What the units know of one another: token counters, the first error, and who has to look again.

Every cycle in which something happens follows from cycles in which other things have happened before. So a
unit goes ahead as far as it is known what it waits for, whatever the others have got to. Only where bursts
compete for the read port, and pad words give way to data, what comes first in time is decided first: when
no unit can go ahead any more (:mod:`accel.sim.timing.model`). Work grows with instructions and bursts, not
with cycles.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from accel.core.config import Config
from accel.core.faults import Fault, overflow_fault
from accel.core.isa import Unit
from accel.core.token_rules import Counter
from accel.sim.timing.plan import Step

NEVER = 1 << 62
"""A cycle that never comes, or is not known yet."""

_TARGETS = tuple(counter.target for counter in Counter)


@dataclass(order=True)
class Stop:
    """Why the run ended early: the earliest cycle wins, then fetch, load, compute, store."""

    cycle: int
    unit: Unit
    index: int
    fault: Fault = field(compare=False)


@dataclass
class TokenCounter:
    """The cycles of all pushes and pops that are known; they may lie ahead."""

    pushes: list[int]
    pops: list[int] = field(default_factory=list)

    def overflow(self, limit: int, before: int) -> int | None:
        """Number of the first push, behind those from ``before`` the run, that leaves more than ``limit``
        tokens; pops of its cycle counted."""
        for number in range(max(limit, before), len(self.pushes)):
            pop = number - limit
            if pop >= len(self.pops) or self.pops[pop] > self.pushes[number]:
                return number
        return None


class Engine:
    """Token counters and the first error.

    Args:
        config: geometry and timing.
        tokens: the counters before the run.
        horizon: nothing later than this cycle matters.
    """

    def __init__(self, config: Config, tokens: tuple[int, int, int, int], horizon: int) -> None:
        self.config = config
        self.stop: Stop | None = None
        self.cut = False
        """Whether a unit has stopped at the horizon."""
        self.room: Unit | None = None
        """The unit in whose queue fetch waits for room, without knowing when there will be some."""
        self._horizon = min(horizon, NEVER - 1)
        self._counters = [TokenCounter([-1] * tokens[counter]) for counter in Counter]
        self._tokens = tokens
        self._advance: list[Callable[[], None]] = [lambda: None] * len(Unit)
        self._awake = [False] * len(Unit)

    def on(self, unit: Unit, advance: Callable[[], None]) -> None:
        """Have ``advance()`` called when ``unit`` may go ahead."""
        self._advance[unit] = advance

    def wake(self, unit: Unit) -> None:
        """Something is known for which ``unit`` may have waited; once too often does no harm."""
        self._awake[unit] = True

    def advance(self) -> None:
        """Let all units go ahead as far as they can."""
        awake = self._awake
        while True in awake:
            unit = awake.index(True)
            awake[unit] = False
            self._advance[unit]()

    def reaches(self, cycle: int) -> bool:
        """Whether the run gets to ``cycle``: there was no error before, and it is known."""
        if cycle <= self._horizon:
            return True
        self.cut |= cycle < NEVER
        return False

    def fail(self, cycle: int, unit: Unit, index: int, fault: Fault) -> None:
        """An error in ``cycle``, which may lie ahead; the earliest one stays."""
        stop = Stop(cycle, unit, index, fault)
        if self.stop is None or stop < self.stop:
            self.stop = stop
            self._horizon = min(self._horizon, cycle)

    # --- tokens ----------------------------------------------------------------------------------

    def with_tokens(self, step: Step, cycle: int) -> int:
        """The first cycle from ``cycle`` on in which all tokens that ``step`` pops are there; NEVER if that
        is not known."""
        for counter in step.pops:
            tokens = self._counters[counter]
            number = len(tokens.pops)
            if number == len(tokens.pushes):
                return NEVER
            cycle = max(cycle, tokens.pushes[number] + 1)
        return cycle

    def start(self, step: Step, cycle: int) -> None:
        """Pop ``step``'s tokens; called in order within a unit."""
        step.start = cycle
        for counter in step.pops:
            self._counters[counter].pops.append(cycle)
        if step.unit is self.room:
            self.wake(Unit.FETCH)

    def retire(self, step: Step, cycle: int) -> None:
        """Push ``step``'s tokens in ``cycle``; called in order within a unit."""
        step.retire = cycle
        for counter in step.pushes:
            self._counters[counter].pushes.append(cycle)
            self._awake[_TARGETS[counter]] = True
        if self.config.serial:
            self.wake(Unit.FETCH)

    def find_overflow(self, steps: list[Step]) -> None:
        """Fail with the first push that found its counter full; to be called when all is known."""
        for counter in Counter:
            tokens, before = self._counters[counter], self._tokens[counter]
            number = tokens.overflow(self.config.token_limit, before)
            if number is not None:
                step = [step for step in steps if counter in step.pushes][number - before]
                fault = overflow_fault(counter.label, self.config)
                self.fail(tokens.pushes[number], step.unit, step.index, fault)
