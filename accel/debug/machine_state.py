"""The state of the machine's units."""

from collections import deque
from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from accel.core.events import Event, EventKind
from accel.core.isa import Instruction, Unit
from accel.core.token_rules import WORKERS, Counter, pops, pushes
from accel.image.test_scenario import Tokens
from accel.sim.functional.executor import FunctionalRun


class UnitState(Struct):
    """``unstarted`` includes the queue."""

    queue: deque[int] = field(default_factory=deque)
    running: list[int] = field(default_factory=list)
    unstarted: deque[int] = field(default_factory=deque)


class MachineState:
    """Queues, instructions in flight and token counters, updated by events in order.

    Args:
        has_queues: False dispatches instructions when they start.
    """

    def __init__(self, instructions: Sequence[Instruction], tokens: Tokens, *, has_queues: bool) -> None:
        self.instructions = instructions
        self.has_queues = has_queues
        self.tokens = list(tokens)
        self.units = {unit: UnitState() for unit in WORKERS}
        for index, instruction in enumerate(instructions):
            if instruction.unit in self.units:
                self.units[instruction.unit].unstarted.append(index)
        self.dispatched = 0
        self._pushers: dict[Counter, list[int]] = {counter: [] for counter in Counter}
        for index, instruction in enumerate(instructions):
            for counter in pushes(instruction):
                self._pushers[counter].append(index)
        self._popped = dict.fromkeys(Counter, 0)
        self._initial = tokens

    def apply(self, event: Event) -> None:
        kind, index = event.kind, event.instruction
        if kind is EventKind.QUEUE_PUSH:
            self.units[Unit(event.value)].queue.append(index)
            self.dispatched += 1
        elif kind is EventKind.QUEUE_POP:
            self.units[event.unit].queue.popleft()
        elif kind is EventKind.START:
            self.units[event.unit].unstarted.popleft()
            self.units[event.unit].running.append(index)
            self.dispatched += not self.has_queues
        elif kind is EventKind.RETIRE:
            self.units[event.unit].running.remove(index)
        elif kind is EventKind.TOKEN_POP:
            self.tokens[event.value] -= 1
            self._popped[Counter(event.value)] += 1
        elif kind is EventKind.TOKEN_PUSH:
            self.tokens[event.value] += 1

    def head(self, unit: Unit) -> int | None:
        state = self.units[unit]
        if self.has_queues:
            return state.queue[0] if state.queue else None
        return state.unstarted[0] if state.unstarted else None

    def missing_tokens(self, index: int) -> list[tuple[Counter, int | None]]:
        """Return awaited tokens, with the instructions that send them."""
        found = []
        for counter in pops(self.instructions[index]):
            if not self.tokens[counter]:
                number = self._popped[counter] - self._initial[counter]
                senders = self._pushers[counter]
                found.append((counter, senders[number] if number < len(senders) else None))
        return found


def functional_events(instructions: Sequence[Instruction], run: FunctionalRun) -> Iterator[Event]:
    """The n-th instruction starts and retires in "cycle" n."""
    for cycle, index in enumerate(run.order):
        instruction = instructions[index]
        unit = instruction.unit
        yield from (Event(cycle, unit, EventKind.TOKEN_POP, index, c) for c in pops(instruction))
        yield Event(cycle, unit, EventKind.START, index, 0)
        yield Event(cycle, unit, EventKind.RETIRE, index, 0)
        yield from (Event(cycle, unit, EventKind.TOKEN_PUSH, index, c) for c in pushes(instruction))
