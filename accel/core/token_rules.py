"""Token counters, and the orders of execution that tokens and queues allow.

Units communicate only through token counters and bounded queues. So deadlocks do not depend on timing, and
one order of execution decides.
"""

from collections import deque
from collections.abc import Sequence
from enum import IntEnum

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.interned_sequence import Distinct
from accel.core.config import Config
from accel.core.isa import Instruction, Loops, Transfer, Unit

WORKERS = (Unit.LOAD, Unit.COMPUTE, Unit.STORE)


class Counter(IntEnum):
    """The four token counters: RAW toward the store unit, WAR toward the load unit."""

    LOAD_TO_COMPUTE = 0
    COMPUTE_TO_LOAD = 1
    COMPUTE_TO_STORE = 2
    STORE_TO_COMPUTE = 3

    @property
    def source(self) -> Unit:
        return _ENDS[self][0]

    @property
    def target(self) -> Unit:
        return _ENDS[self][1]

    @property
    def label(self) -> str:
        return f"{self.source.label} to {self.target.label}"

    @property
    def kind(self) -> str:
        """``RAW``: written data may be read. ``WAR``: data that was read may be overwritten."""
        return "RAW" if self.target > self.source else "WAR"


_ENDS = {
    Counter.LOAD_TO_COMPUTE: (Unit.LOAD, Unit.COMPUTE),
    Counter.COMPUTE_TO_LOAD: (Unit.COMPUTE, Unit.LOAD),
    Counter.COMPUTE_TO_STORE: (Unit.COMPUTE, Unit.STORE),
    Counter.STORE_TO_COMPUTE: (Unit.STORE, Unit.COMPUTE),
}
_COUNTERS = {ends: counter for counter, ends in _ENDS.items()}


def _counters(unit: Unit, previous: bool, following: bool, *, push: bool) -> tuple[Counter, ...]:
    """Flags toward missing neighbours have no counter."""
    neighbours = [
        n for n, flag in ((unit.previous, previous), (unit.next, following)) if flag and n is not None
    ]
    return tuple(_COUNTERS[(unit, n) if push else (n, unit)] for n in neighbours)


_POPS = {
    (u, p, n): _counters(u, p, n, push=False) for u in Unit for p in (False, True) for n in (False, True)
}
_PUSHES = {
    (u, p, n): _counters(u, p, n, push=True) for u in Unit for p in (False, True) for n in (False, True)
}


def pops(instruction: Instruction) -> tuple[Counter, ...]:
    """Return the counters that an instruction pops at its start."""
    return _POPS[instruction.unit, bool(instruction.pop_prev), bool(instruction.pop_next)]


def pushes(instruction: Instruction) -> tuple[Counter, ...]:
    """Return the counters that an instruction pushes at retirement."""
    return _PUSHES[instruction.unit, bool(instruction.push_prev), bool(instruction.push_next)]


class TokenFlow:
    """The token counts of a program that executes in program order.

    Attributes:
        pops: by counter, the indices of instructions, intp[k].
        in_order: whether every token exists when it is popped. Then always choosing the earliest instruction
            that can execute gives program order, for all queue depths.
    """

    def __init__(self, program: Distinct[Instruction], tokens: Sequence[int]) -> None:
        self._before = tuple(tokens)
        self.pops = _by_counter(program, [pops(one) for one in program.every])
        self.pushes = _by_counter(program, [pushes(one) for one in program.every])
        self.left_over = tuple(
            before + len(pushed) - len(popped)
            for before, pushed, popped in zip(tokens, self.pushes, self.pops, strict=True)
        )
        self.in_order = all(one.unit in WORKERS for one in program.every) and all(
            (self.pushers(counter) < self.pops[counter]).all() for counter in Counter
        )

    def pushers(self, counter: Counter) -> npt.NDArray[np.intp]:
        """Return for each pop the index of the instruction that pushes its token: -1 if it existed before the
        run, the largest intp if nothing pushes it."""
        popped, pushed, before = self.pops[counter], self.pushes[counter], self._before[counter]
        found = np.full(len(popped), np.iinfo(np.intp).max, dtype=np.intp)
        found[:before] = -1
        found[before : before + len(pushed)] = pushed[: max(0, len(popped) - before)]
        return found

    def highest(self, counter: Counter) -> int:
        """Return the largest value after a push, or 0."""
        pushed = self.pushes[counter]
        popped = np.searchsorted(self.pops[counter], pushed)
        held = self._before[counter] + np.arange(1, len(pushed) + 1) - popped
        return int(held.max(initial=0))


def _by_counter(
    program: Distinct[Instruction], found: Sequence[tuple[Counter, ...]]
) -> list[npt.NDArray[np.intp]]:
    has = np.zeros((len(Counter), len(found)), dtype=bool)
    for number, counters in enumerate(found):
        for counter in counters:
            has[counter, number] = True
    return [np.flatnonzero(row[program.places]) for row in has]


def is_carrier(instruction: Instruction) -> bool:
    """Whether an instruction only pops and pushes tokens."""
    if isinstance(instruction, Loops):
        empty = not instruction.uop_count
    else:
        empty = isinstance(instruction, Transfer) and not instruction.x_size
    return empty and bool(pops(instruction) or pushes(instruction))


def queue_depth(unit: Unit, config: Config) -> int:
    return int(getattr(config, f"{unit.label}_queue"))


class Waiting(Struct, frozen=True, kw_only=True):
    """A unit whose next instruction lacks a token."""

    unit: Unit
    index: int
    counter: Counter
    pusher: int | None
    """First instruction not yet executed that would push the token, if any."""

    def __str__(self) -> str:
        source = self.counter.source.label
        if self.pusher is None:
            rest = f"no instruction left in the {source} unit pushes one"
        else:
            rest = f"the next to push one is instruction {self.pusher}, which cannot run"
        return f"{self.unit.label} waits at instruction {self.index} for a token from {source}; {rest}"


class Stepper:
    """The state of a program between two instructions.

    Tokens restrict the order. With ``bounded``, in-order fetch, queue depths and serial mode also do.
    """

    def __init__(
        self,
        instructions: Sequence[Instruction],
        config: Config,
        *,
        tokens: Sequence[int] = (0, 0, 0, 0),
        bounded: bool = True,
    ) -> None:
        once = {id(i): i for i in instructions}
        known = {key: (i.unit, pops(i), pushes(i)) for key, i in once.items()}
        every = [known[id(i)] for i in instructions]
        self.units = [unit for unit, _, _ in every]
        self.pops = [popped for _, popped, _ in every]
        self.pushes = [pushed for _, _, pushed in every]
        self.tokens = list(tokens)
        self.executed = 0
        self._serial = bounded and bool(config.serial)
        self._room = {u: queue_depth(u, config) if bounded else len(instructions) + 1 for u in WORKERS}
        self._queues: dict[Unit, deque[int]] = {u: deque() for u in WORKERS}
        self._blocked: frozenset[Unit] = frozenset()
        self._fetched = 0
        self._fetch()

    @property
    def done(self) -> bool:
        return self.executed == len(self.units)

    def heads(self) -> list[int]:
        """Return the instructions that can execute next, at most one per unit, in order."""
        return sorted(q[0] for q in self._queues.values() if q and self._may_run(q[0]))

    def first(self) -> int | None:
        """Return the earliest of :meth:`heads`, if any."""
        best: int | None = None
        for queue in self._queues.values():
            if queue and (best is None or queue[0] < best) and self._may_run(queue[0]):
                best = queue[0]
        return best

    def run(self, index: int) -> None:
        for counter in self.pops[index]:
            self.tokens[counter] -= 1
        for counter in self.pushes[index]:
            self.tokens[counter] += 1
        unit = self.units[index]
        self._queues[unit].popleft()
        self._room[unit] += 1
        self.executed += 1
        self._fetch()

    def block(self, unit: Unit) -> None:
        """Stop a unit whose next instruction has failed."""
        self._blocked = self._blocked | {unit}

    def waiting(self) -> list[Waiting]:
        found = []
        for unit, queue in self._queues.items():
            if not queue:
                continue
            for counter in self.pops[queue[0]]:
                if not self.tokens[counter]:
                    found.append(
                        Waiting(unit=unit, index=queue[0], counter=counter, pusher=self._pusher(counter))
                    )
        return found

    def copy(self) -> "Stepper":
        twin = object.__new__(Stepper)
        twin.__dict__.update(self.__dict__)
        twin.tokens = list(self.tokens)
        twin._room = dict(self._room)
        twin._queues = {u: deque(q) for u, q in self._queues.items()}
        return twin

    def _may_run(self, index: int) -> bool:
        for counter in self.pops[index]:
            if not self.tokens[counter]:
                return False
        return self.units[index] not in self._blocked

    def _fetch(self) -> None:
        while self._fetched < len(self.units):
            if self._serial and self._fetched > self.executed:
                return
            unit = self.units[self._fetched]
            if not self._room.get(unit, 0):
                return
            self._room[unit] -= 1
            self._queues[unit].append(self._fetched)
            self._fetched += 1

    def _pusher(self, counter: Counter) -> int | None:
        pending: list[int] = [*self._queues[counter.source], *range(self._fetched, len(self.units))]
        for index in pending:
            if counter in self.pushes[index]:
                return index
        return None


def deadlock_place(waiting: Sequence[Waiting]) -> tuple[Unit, int]:
    """Return the first waiting unit in the order load, compute, store, and its instruction."""
    first = min(waiting, key=lambda w: w.unit, default=None)
    return (Unit.FETCH, 0) if first is None else (first.unit, first.index)


def stuck(instructions: Sequence[Instruction], config: Config, tokens: Sequence[int]) -> list[Waiting]:
    """Return the units that finally lack a token."""
    stepper = Stepper(instructions, config, tokens=tokens)
    while (index := stepper.first()) is not None:
        stepper.run(index)
    return stepper.waiting()


def explain_deadlock(waiting: Sequence[Waiting]) -> str:
    if not waiting:
        return "deadlock: fetch cannot hand out the next instruction and no unit has work"
    return "deadlock: " + "; ".join(str(w) for w in waiting)
