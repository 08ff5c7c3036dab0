"""What the units know of one another: token counters, the first error, and who has to look again.

Every cycle in which something happens follows from cycles in which other things have happened before. So a
unit goes ahead as far as it is known what it waits for, whatever the others have got to. Only where bursts
compete for the read port, and pad words give way to data, what comes first in time is decided first: when
no unit can go ahead any more (:mod:`accel.sim.timing.model`). Work grows with instructions and bursts, not
with cycles.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from accel.core.config import Config
from accel.core.faults import Fault, overflow_fault
from accel.core.isa import Unit
from accel.core.token_rules import Counter
from accel.sim.timing.plan import Plan, Shape
from accel.sim.timing.recurring import CYCLE, NEVER, Recurring, later

_TARGETS = tuple(counter.target for counter in Counter)


@dataclass(order=True)
class Stop:
    """Why the run ended early: the earliest cycle wins, then fetch, load, compute, store."""

    cycle: int
    unit: Unit
    index: int
    fault: Fault = field(compare=False)


class TokenCounter(Recurring):
    """The cycles of all pushes and pops that are known; they may lie ahead.

    Args:
        before: tokens before the run.
    """

    LISTS: ClassVar[Mapping[str, str]] = {"pushes": CYCLE, "pops": CYCLE}

    def __init__(self, before: int) -> None:
        self.pushes = [-1] * before
        self.pops: list[int] = []

    def state(self, floor: int, base: int) -> tuple[int, ...]:
        """What matters of it: the tokens that are there or known to come."""
        return tuple(later(push, floor - 1, base) for push in self.pushes[len(self.pops) :])

    def overflow(self, limit: int, before: int) -> int | None:
        """Number of the first push, behind those from ``before`` the run, that leaves more than ``limit``
        tokens; pops of its cycle counted."""
        first = max(limit, before)
        pushes = np.array(self.pushes[first:], dtype=np.int64)
        pops = np.array(self.pops[first - limit :][: len(pushes)], dtype=np.int64)
        full = np.flatnonzero(pops > pushes[: len(pops)])
        if len(full):
            return first + int(full[0])
        return first + len(pops) if len(pops) < len(pushes) else None


class Engine:
    """Token counters and the first error.

    Args:
        config: geometry and timing.
        tokens: the counters before the run.
        horizon: nothing later than this cycle matters.
    """

    def __init__(self, config: Config, tokens: tuple[int, int, int, int], horizon: int) -> None:
        self.config = config
        self.serial = bool(config.serial)
        self.stop: Stop | None = None
        self.cut = False
        """Whether a unit has stopped at the horizon."""
        self.room: Unit | None = None
        """The unit in whose queue fetch waits for room, without knowing when there will be some."""
        self.horizon = min(horizon, NEVER - 1)
        self.counters = [TokenCounter(tokens[counter]) for counter in Counter]
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
        if cycle <= self.horizon:
            return True
        self.cut |= cycle < NEVER
        return False

    def fail(self, cycle: int, unit: Unit, index: int, fault: Fault) -> None:
        """An error in ``cycle``, which may lie ahead; the earliest one stays."""
        stop = Stop(cycle, unit, index, fault)
        if self.stop is None or stop < self.stop:
            self.stop = stop
            self.horizon = min(self.horizon, cycle)

    # --- tokens ----------------------------------------------------------------------------------

    def with_tokens(self, shape: Shape, cycle: int) -> int:
        """The first cycle from ``cycle`` on in which all tokens that an instruction pops are there; NEVER if
        that is not known."""
        for counter in shape.pops:
            tokens = self.counters[counter]
            number = len(tokens.pops)
            if number == len(tokens.pushes):
                return NEVER
            cycle = max(cycle, tokens.pushes[number] + 1)
        return cycle

    def start(self, shape: Shape, cycle: int) -> None:
        """Pop an instruction's tokens; called in order within a unit."""
        for counter in shape.pops:
            self.counters[counter].pops.append(cycle)
        if shape.unit is self.room:
            self._awake[Unit.FETCH] = True

    def retire(self, shape: Shape, cycle: int) -> None:
        """Push an instruction's tokens in ``cycle``; called in order within a unit."""
        for counter in shape.pushes:
            self.counters[counter].pushes.append(cycle)
            self._awake[_TARGETS[counter]] = True
        if self.serial:
            self._awake[Unit.FETCH] = True

    def find_overflow(self, plan: Plan) -> None:
        """Fail with the first push that found its counter full; to be called when all is known."""
        for counter in Counter:
            tokens, before = self.counters[counter], self._tokens[counter]
            number = tokens.overflow(self.config.token_limit, before)
            if number is not None:
                has = np.array([counter in shape.pushes for shape in plan.shapes], dtype=bool)[plan.numbers]
                index = int(np.flatnonzero(has)[number - before])
                fault = overflow_fault(counter.label, self.config)
                self.fail(tokens.pushes[number], counter.source, index, fault)
