"""All token-legal orders of a small program, each executed."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from accel.core.config import Config
from accel.core.isa import Instruction
from accel.core.token_rules import Stepper
from tests.reference import Access, Reference


@dataclass
class Orders:
    """What may happen, over all orders that the tokens allow."""

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
    """What each instruction touches in any of the orders."""

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
) -> None:
    for before in machines.values():
        machine = before.copy()
        fault = machine.execute(program[index])
        found.accesses.setdefault(index, set()).update(machine.seen)
        if fault is not None:
            found.faults.add(f"instruction {index}: {fault}")
        else:
            after[machine.state()] = machine
