"""When everything happened, sorted out of a run's events."""

from collections.abc import Iterable, Sequence

from accel.core.config import Config
from accel.core.events import Event, EventKind
from accel.core.isa import Instruction, Load, Loops, Unit
from accel.core.timing_rules import REQUEST_STARTUP, WRITE_DELAY, store_depth
from accel.core.token_rules import WORKERS, Counter
from accel.views.states import Beats


class Times:
    """What happened to each instruction, token counter and unit.

    Attributes:
        cycles: length of the run.
        handed, start, retire: by instruction, the cycle, or None.
        order: per unit, its instructions in the order in which it gets them.
        pushed, popped: per counter, cycle and instruction of each token.
        bursts: per unit, in order of their grants; those that the end of the run cuts short, whole.
    """

    def __init__(
        self, events: Sequence[Event], instructions: Sequence[Instruction], config: Config, cycles: int
    ) -> None:
        count = len(instructions)
        self.handed: list[int | None] = [None] * count
        self.start: list[int | None] = [None] * count
        self.retire: list[int | None] = [None] * count
        self.order: dict[Unit, list[int]] = {unit: [] for unit in WORKERS}
        self.pushed: dict[Counter, list[tuple[int, int]]] = {c: [] for c in Counter}
        self.popped: dict[Counter, list[tuple[int, int]]] = {c: [] for c in Counter}
        grants: dict[Unit, list[tuple[int, int, int]]] = {unit: [] for unit in Unit}
        lasts: dict[Unit, list[tuple[int, int, int]]] = {unit: [] for unit in Unit}
        for cycle, unit, kind, index, value in events:
            if kind == EventKind.QUEUE_PUSH:
                self.handed[index] = cycle
                self.order[Unit(value)].append(index)
            elif kind == EventKind.START:
                self.start[index] = cycle
            elif kind == EventKind.RETIRE:
                self.retire[index] = cycle
            elif kind == EventKind.BURST_GRANT:
                grants[unit].append((index, cycle, value))
            elif kind == EventKind.BURST_LAST:
                lasts[unit].append((index, cycle, value))
            elif kind == EventKind.TOKEN_PUSH:
                self.pushed[Counter(value)].append((cycle, index))
            elif kind == EventKind.TOKEN_POP:
                self.popped[Counter(value)].append((cycle, index))
        self.bursts = {
            unit: [
                Beats(unit, index, grant, last - beats + 1, last + 1)
                for (_, grant, _), (index, last, beats) in zip(grants[unit], lasts[unit], strict=False)
            ]
            for unit in Unit
        }
        for port in ((Unit.FETCH, Unit.LOAD, Unit.COMPUTE), (Unit.STORE,)):
            delay = store_depth(config) if Unit.STORE in port else config.read_latency
            free = max((burst.stop for unit in port for burst in self.bursts[unit]), default=0)
            cut = [(one, unit) for unit in port for one in grants[unit][len(self.bursts[unit]) :]]
            for (index, grant, beats), unit in sorted(cut, key=lambda one: one[0][1]):
                start = max(grant + delay, free)
                free = start + beats
                self.bursts[unit].append(Beats(unit, index, grant, start, free))
        self.cycles = cycles


Move = tuple[int, int, int]
"""Start, stop and instruction: data moves, or micro-ops are issued."""


def moves_of(unit: Unit, times: Times, instructions: Sequence[Instruction]) -> list[Move]:
    """When a unit is busy and for which instruction, sorted and disjoint."""
    delay = 0 if unit is Unit.STORE else WRITE_DELAY
    data = sorted((b.start + delay, b.stop + delay, b.instruction) for b in times.bursts[unit])
    found = data + _pad_writes(unit, times, instructions, data)
    for index in times.order[unit]:
        instruction, start = instructions[index], times.start[index]
        if start is not None and isinstance(instruction, Loops) and instruction.uop_count:
            found.append((start, start + instruction.uop_count, index))
    return _merged(sorted(found), times.cycles)


def _merged(moves: Iterable[Move], cycles: int) -> list[Move]:
    """Moves before ``cycles``, those of one instruction that follow each other as one."""
    found: list[Move] = []
    start = stop = index = -1
    for a, b, one in moves:
        if a == stop and one == index:
            stop = b
            continue
        found.append((start, min(stop, cycles), index))
        start, stop, index = a, b, one
    found.append((start, min(stop, cycles), index))
    return [move for move in found if move[0] < move[1]]


def _pad_writes(
    unit: Unit, times: Times, instructions: Sequence[Instruction], data: Sequence[Move]
) -> list[Move]:
    """Pad words are written one a cycle in cycles without data, in order of their instructions."""
    found: list[Move] = []
    cycle = cursor = 0
    for index in times.order[unit]:
        instruction, start = instructions[index], times.start[index]
        if not isinstance(instruction, Load) or start is None or not instruction.sram_elements:
            continue
        words = instruction.sram_elements - instruction.x_size * instruction.y_size
        cycle = max(cycle, start + REQUEST_STARTUP) if words else cycle
        while words and cycle < times.cycles:
            while cursor < len(data) and data[cursor][1] <= cycle:
                cursor += 1
            free = data[cursor][0] - cycle if cursor < len(data) else words
            if free > 0:
                run = min(free, words)
                found.append((cycle, cycle + run, index))
                cycle += run
                words -= run
            else:
                cycle = data[cursor][1]
    return found


def extents(moves: Sequence[Move]) -> dict[int, tuple[int, int]]:
    """Of each instruction, when data first moves, and when it no longer does."""
    found: dict[int, tuple[int, int]] = {}
    for start, stop, index in moves:
        found[index] = (found.get(index, (start, stop))[0], stop)
    return found
