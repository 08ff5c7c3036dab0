"""All token-legal orders of a small program, each executed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from accel.core.config import Config
from accel.core.isa import (
    Instruction,
    Load,
    LoadPar,
    LoadRes,
    LoadTab,
    Set,
    Store,
    StoreAdd,
    StoreReq,
    Transfer,
    Unit,
)
from accel.core.token_rules import WORKERS, Stepper, pops, pushes
from tests.reference import Access, Reference


@dataclass
class Orders:
    """The possible outcomes over all orders that the tokens allow."""

    results: set[str] = field(default_factory=set)
    """Memory at the end."""
    faults: set[str] = field(default_factory=set)
    """Instructions at fault, and why."""
    reached: set[frozenset[int]] = field(default_factory=set)
    """Sets of instructions that have run at some time."""
    stuck: set[frozenset[int]] = field(default_factory=set)
    """Those from which nothing can go on though the program has not finished."""
    peak: tuple[int, ...] = (0, 0, 0, 0)
    left_over: set[tuple[int, ...]] = field(default_factory=set)
    accesses: dict[int, set[Access]] = field(default_factory=dict)
    """The accesses of each instruction in any of the orders."""

    def unordered(self, i: int, j: int) -> bool:
        """Whether either instruction may run before the other."""
        firsts = [any(a in ran and b not in ran for ran in self.reached) for a, b in ((i, j), (j, i))]
        return all(firsts)

    def races(self) -> set[tuple[int, int]]:
        """Pairs of unordered instructions that touch the same, one of them writing."""
        return {
            (i, j)
            for i, mine in self.accesses.items()
            for j, others in self.accesses.items()
            if i < j and conflict(mine, others) and self.unordered(i, j)
        }


def conflict(mine: set[Access], others: set[Access]) -> bool:
    written = {(memory, element) for memory, write, element in mine if write}
    touched = {(memory, element) for memory, _, element in others}
    if written & touched:
        return True
    return any(write and (memory, False, element) in mine for memory, write, element in others)


def all_orders(
    program: Sequence[Instruction],
    config: Config,
    start: Reference,
    tokens: Sequence[int] = (0, 0, 0, 0),
    *,
    bounded: bool = False,
) -> Orders:
    """Run ``program`` from ``start`` in every order; states that orders share are visited once."""
    found = Orders()
    level = {
        frozenset[int](): (Stepper(program, config, tokens=tokens, bounded=bounded), {start.state(): start})
    }
    while level:
        following: dict[frozenset[int], tuple[Stepper, dict[str, Reference]]] = {}
        for ran, (stepper, machines) in level.items():
            found.reached.add(ran)
            found.peak = tuple(map(max, found.peak, stepper.tokens))
            heads = stepper.heads()
            if stepper.done:
                found.results |= machines.keys()
                found.left_over.add(tuple(stepper.tokens))
            elif not heads:
                found.stuck.add(ran)
            for head in heads:
                after = ran | {head}
                if after not in following:
                    further = stepper.copy()
                    further.run(head)
                    following[after] = (further, {})
                _execute_all(program, head, machines, following[after][1], found)
        level = following
    return found


def _execute_all(
    program: Sequence[Instruction],
    index: int,
    machines: dict[str, Reference],
    after: dict[str, Reference],
    found: Orders,
    *,
    checked: bool = True,
) -> None:
    """Without ``checked``, nothing is at fault."""
    for before in machines.values():
        machine = before.copy()
        fault = machine.execute(program[index], checked=checked)
        found.accesses.setdefault(index, set()).update(machine.seen)
        if fault is not None:
            found.faults.add(f"instruction {index}: {fault}")
        else:
            after[machine.state()] = machine


def finishing_orders(
    program: Sequence[Instruction],
    config: Config,
    start: Reference,
    tokens: Sequence[int] = (0, 0, 0, 0),
    *,
    waits: bool = True,
) -> Orders:
    """As :func:`all_orders`, where the store unit's instructions overlap: each starts in program order, does
    what it does at some time, LOADs among themselves and STOREs among themselves in order, and retires in
    order.

    Without ``waits`` LOADs do not wait until what is in PAR and RES may be overwritten, which orders DRAM,
    too, but is nothing that a program may count on; results then mean nothing.
    """
    found = Orders()
    machine = _Overlapping(program, config, waits=waits)
    first = _State(ran=frozenset(), started=0, retired=0, tokens=(*tokens,))
    level = {first: {start.state(): start}}
    while level:
        following: dict[_State, dict[str, Reference]] = {}
        for state, machines in level.items():
            found.reached.add(state.ran)
            if len(state.ran) == len(program):
                found.results |= machines.keys()
            steps = list(machine.steps(state))
            if not steps and len(state.ran) < len(program):
                found.stuck.add(state.ran)
            for after, executed in steps:
                into = following.setdefault(after, {})
                if executed is None:
                    into |= machines
                else:
                    _execute_all(program, executed, machines, into, found, checked=waits)
        level = following
    return found


class _State(NamedTuple):
    """The state of a program: executed instructions, and started and retired ones of the store unit."""

    ran: frozenset[int]
    started: int
    retired: int
    tokens: tuple[int, ...]


class _Overlapping:
    """Return the possible next steps where the store unit's instructions overlap."""

    def __init__(self, program: Sequence[Instruction], config: Config, *, waits: bool) -> None:
        self._program = program
        self._depth = config.res_depth
        self._waits = waits
        self._units = {unit: [n for n, one in enumerate(program) if one.unit is unit] for unit in WORKERS}

    def steps(self, state: _State) -> Iterator[tuple[_State, int | None]]:
        """Return the possible next states, with the executed instructions."""
        for unit in (Unit.LOAD, Unit.COMPUTE):
            head = next((n for n in self._units[unit] if n not in state.ran), None)
            taken = None if head is None else self._popped(head, state.tokens)
            if head is not None and taken is not None:
                after = self._pushed(head, taken)
                yield state._replace(ran=state.ran | {head}, tokens=after), head
        mine = self._units[Unit.STORE]
        if state.started < len(mine):
            head = mine[state.started]
            taken = self._popped(head, state.tokens)
            if taken is not None and self._may_start(state, head):
                after = state._replace(started=state.started + 1, tokens=taken)
                if self._moves(head):
                    yield after, None
                else:
                    yield self._settled(after._replace(ran=after.ran | {head})), head
        for kind in (Load, Store):
            under_way = [
                n for n in mine[: state.started] if isinstance(self._program[n], kind) and n not in state.ran
            ]
            if under_way:
                ran = state.ran | {under_way[0]}
                yield self._settled(state._replace(ran=ran)), under_way[0]

    def _settled(self, state: _State) -> _State:
        """All retired that may."""
        mine = self._units[Unit.STORE]
        while state.retired < state.started and mine[state.retired] in state.ran:
            tokens = self._pushed(mine[state.retired], state.tokens)
            state = state._replace(retired=state.retired + 1, tokens=tokens)
        return state

    def _popped(self, index: int, tokens: tuple[int, ...]) -> tuple[int, ...] | None:
        counters = pops(self._program[index])
        if not all(tokens[counter] for counter in counters):
            return None
        return tuple(count - (n in counters) for n, count in enumerate(tokens))

    def _pushed(self, index: int, tokens: tuple[int, ...]) -> tuple[int, ...]:
        counters = pushes(self._program[index])
        return tuple(count + (n in counters) for n, count in enumerate(tokens))

    def _moves(self, index: int) -> bool:
        one = self._program[index]
        return isinstance(one, Transfer) and one.x_size * one.y_size > 0

    def _may_start(self, state: _State, index: int) -> bool:
        """By the rules of the store unit, tokens aside."""
        one, mine = self._program[index], self._units[Unit.STORE]
        before, left = mine[: state.started], mine[state.retired : state.started]
        if isinstance(one, Set):
            return not left
        if not self._moves(index):
            return True
        if (
            isinstance(one, LoadPar | LoadTab)
            and self._waits
            and self._shared(index) & self._all_shared(left)
        ):
            return False
        unread = [n for n in before if isinstance(self._program[n], LoadPar | LoadTab) and n not in state.ran]
        if isinstance(one, StoreReq) and self._shared(index) & self._all_shared(unread):
            return False
        if isinstance(one, LoadRes) and self._waits:
            room = self._depth + sum(self._count(n, StoreAdd) for n in mine[: state.retired])
            return sum(self._count(n, LoadRes) for n in [*before, index]) <= room
        if isinstance(one, StoreAdd):
            needed = sum(self._count(n, StoreAdd) for n in [*before, index])
            for n in before:
                if needed > 0 and self._count(n, LoadRes) and n not in state.ran:
                    return False
                needed -= self._count(n, LoadRes)
        return True

    def _count(self, index: int, kind: type[Transfer]) -> int:
        one = self._program[index]
        if not isinstance(one, kind):
            return 0
        return int(self._moves(index)) if isinstance(one, StoreAdd) and one.hold else one.x_size * one.y_size

    def _all_shared(self, indices: Sequence[int]) -> set[tuple[str, int]]:
        return {element for n in indices for element in self._shared(n)}

    def _shared(self, index: int) -> set[tuple[str, int]]:
        """Scratchpad and index of the elements of PAR and TAB that an instruction fills or uses."""
        one = self._program[index]
        if not self._moves(index):
            return set()
        if isinstance(one, LoadPar | LoadTab):
            pad = "par" if isinstance(one, LoadPar) else "tab"
            return {(pad, one.sram_base + n) for n in range(one.x_size * one.y_size)}
        if isinstance(one, StoreReq):
            count = one.y_size if one.par_y else one.x_size if one.par_x else 1
            tables = {("tab", one.table - 1)} if one.table else set()
            return {("par", one.par + n) for n in range(count)} | tables
        return set()
