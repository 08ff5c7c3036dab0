"""Connects the units: token counters, the earliest error, and wake-ups.

A unit computes an event's cycle as soon as the events before it are known, whatever cycle the other units
have reached. Only read grants, and pad words between data, depend on the order of cycles (see
``timing_model``).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from accel.core.config import Config
from accel.core.fault_causes import Fault, overflow_fault
from accel.core.isa import Unit
from accel.core.token_rules import Counter
from accel.sim.timing.periodic_state import CYCLE, NEVER, PeriodicState, relative_cycle
from accel.sim.timing.timed_program import InstructionTiming, TimedProgram

_TARGETS = tuple(counter.target for counter in Counter)


@dataclass(order=True)
class Stop:
    """The error that ends a run: the lowest by cycle, unit and instruction."""

    cycle: int
    unit: Unit
    index: int
    fault: Fault = field(compare=False)


class TokenCounter(PeriodicState):
    """A counter's known pushes and pops by cycle. The k-th pop takes the k-th push's token."""

    COLUMNS: ClassVar[Mapping[str, str]] = {"pushes": CYCLE, "pops": CYCLE}

    def __init__(self, initial: int) -> None:
        self.pushes = [-1] * initial
        self.pops: list[int] = []

    def state(self, floor: int, base: int) -> tuple[int, ...]:
        return tuple(relative_cycle(push, floor - 1, base) for push in self.pushes[len(self.pops) :])

    def first_overflow(self, limit: int, initial: int) -> int | None:
        """Return the first push that leaves more than ``limit`` tokens, with the ``initial`` ones and pops in
        its cycle."""
        first = max(limit, initial)
        pushes = np.array(self.pushes[first:], dtype=np.int64)
        pops = np.array(self.pops[first - limit :][: len(pushes)], dtype=np.int64)
        full = np.flatnonzero(pops > pushes[: len(pops)])
        if len(full):
            return first + int(full[0])
        return first + len(pops) if len(pops) < len(pushes) else None


class TimingKernel:
    """The state that all units share."""

    def __init__(self, config: Config, tokens: tuple[int, int, int, int], horizon: int) -> None:
        self.config = config
        self.serial = bool(config.serial)
        self.stop: Stop | None = None
        self.passed_horizon = False
        """Whether an event lies after the horizon."""
        self.full_queue: Unit | None = None
        """The unit whose full queue blocks fetch, until it is known when it gets room."""
        self.horizon = min(horizon, NEVER - 1)
        self.counters = [TokenCounter(tokens[counter]) for counter in Counter]
        self._tokens = tokens
        self._callbacks: list[Callable[[], None]] = [lambda: None] * len(Unit)
        self._is_awake = [False] * len(Unit)

    def register(self, unit: Unit, proceed: Callable[[], None]) -> None:
        self._callbacks[unit] = proceed

    def wake(self, unit: Unit) -> None:
        """Unnecessary calls are harmless."""
        self._is_awake[unit] = True

    def run_units(self) -> None:
        awake, callbacks = self._is_awake, self._callbacks
        while True in awake:
            unit = awake.index(True)
            awake[unit] = False
            callbacks[unit]()

    def reaches(self, cycle: int) -> bool:
        """Whether ``cycle`` is known and not after the horizon or the earliest error."""
        if cycle <= self.horizon:
            return True
        self.passed_horizon |= cycle < NEVER
        return False

    def fail(self, cycle: int, unit: Unit, index: int, fault: Fault) -> None:
        """Report an error in ``cycle``, which units need not have reached."""
        stop = Stop(cycle, unit, index, fault)
        if self.stop is None or stop < self.stop:
            self.stop = stop
            self.horizon = min(self.horizon, cycle)

    def tokens_ready(self, timing: InstructionTiming, cycle: int) -> int:
        """Return the first cycle, at least ``cycle``, with all popped tokens, or NEVER if a push is
        unknown."""
        for counter in timing.pops:
            tokens = self.counters[counter]
            number, pushes = len(tokens.pops), tokens.pushes
            if number == len(pushes):
                return NEVER
            if pushes[number] >= cycle:
                cycle = pushes[number] + 1
        return cycle

    def start(self, timing: InstructionTiming, cycle: int) -> None:
        for counter in timing.pops:
            self.counters[counter].pops.append(cycle)
        if timing.unit is self.full_queue:
            self._is_awake[Unit.FETCH] = True

    def retire(self, timing: InstructionTiming, cycle: int) -> None:
        for counter in timing.pushes:
            self.counters[counter].pushes.append(cycle)
            self._is_awake[_TARGETS[counter]] = True
        if self.serial:
            self._is_awake[Unit.FETCH] = True

    def check_overflow(self, program: TimedProgram) -> None:
        """Report the first push into a full counter. All pushes and pops must be known."""
        for counter in Counter:
            tokens, initial = self.counters[counter], self._tokens[counter]
            number = tokens.first_overflow(self.config.token_limit, initial)
            if number is not None:
                has_push = np.array([counter in timing.pushes for timing in program.timings], dtype=bool)
                index = int(np.flatnonzero(has_push[program.numbers])[number - initial])
                fault = overflow_fault(counter.label, self.config)
                self.fail(tokens.pushes[number], counter.source, index, fault)
