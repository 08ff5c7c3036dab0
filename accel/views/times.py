"""When everything happened, sorted out of a run's events."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from accel.core.config import Config
from accel.core.events import Event, EventKind
from accel.core.isa import Instruction, Load, Loops, Store, Unit
from accel.core.timing_rules import REQUEST_STARTUP, WRITE_DELAY, beat_cycles, busy_slots, store_depth
from accel.core.token_rules import WORKERS, Counter
from accel.views.states import Beats


class Times:
    """What happened to each instruction, token counter and unit.

    Attributes:
        cycles: length of the run.
        handed, start, retire: by instruction, the cycle, or None.
        order: per unit, its instructions in the order in which it gets them.
        pushed, popped: per counter, cycle and instruction of each token.
        bursts: per unit, its reads, then its writes, each in order of their grants; those that the end of the
            run cuts short, whole.
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
        grants: dict[_Port, list[tuple[int, int, int]]] = {port: [] for port in _PORTS}
        lasts: dict[_Port, list[tuple[int, int, int]]] = {port: [] for port in _PORTS}
        for cycle, unit, kind, index, value in events:
            if kind == EventKind.QUEUE_PUSH:
                self.handed[index] = cycle
                self.order[Unit(value)].append(index)
            elif kind == EventKind.START:
                self.start[index] = cycle
            elif kind == EventKind.RETIRE:
                self.retire[index] = cycle
            elif kind == EventKind.BURST_GRANT:
                grants[_port(unit, instructions, index)].append((index, cycle, value))
            elif kind == EventKind.BURST_LAST:
                lasts[_port(unit, instructions, index)].append((index, cycle, value))
            elif kind == EventKind.TOKEN_PUSH:
                self.pushed[Counter(value)].append((cycle, index))
            elif kind == EventKind.TOKEN_POP:
                self.popped[Counter(value)].append((cycle, index))
        bursts: dict[_Port, list[Beats]] = {port: [] for port in _PORTS}
        for port in _PORTS:
            for (_, grant, _), (index, last, beats) in zip(grants[port], lasts[port], strict=False):
                pace = beat_cycles(instructions[index], config) if port.writes else 1
                bursts[port].append(Beats(*port, index, grant, last - beats * pace + 1, last + 1, pace))
        for writes in (False, True):
            ports = [port for port in _PORTS if port.writes is writes]
            delay = store_depth(config) if writes else config.read_latency
            free = max((burst.stop for port in ports for burst in bursts[port]), default=0)
            cut = [(one, port) for port in ports for one in grants[port][len(bursts[port]) :]]
            for (index, grant, beats), port in sorted(cut, key=lambda one: one[0][1]):
                start = max(grant + delay, free)
                pace = beat_cycles(instructions[index], config) if port.writes else 1
                free = start + beats * pace
                bursts[port].append(Beats(*port, index, grant, start, free, pace))
        self.bursts: dict[Unit, list[Beats]] = {unit: [] for unit in Unit}
        for port, found in bursts.items():
            self.bursts[port.unit] += found
        self.cycles = cycles


class _Port(NamedTuple):
    """Reads or writes of one unit."""

    unit: Unit
    writes: bool


_PORTS = (*(_Port(unit, writes=False) for unit in Unit), _Port(Unit.STORE, writes=True))


def _port(unit: Unit, instructions: Sequence[Instruction], index: int) -> _Port:
    """Where an instruction's bursts are; those of STOREs are writes, all others reads."""
    return _Port(unit, unit is Unit.STORE and isinstance(instructions[index], Store))


Move = tuple[int, int, int]
"""Start, stop and instruction: data moves, or micro-ops are issued."""


def moves_of(unit: Unit, times: Times, instructions: Sequence[Instruction], config: Config) -> list[Move]:
    """When a unit is busy and for which instruction, sorted; moves overlap where the store unit writes a beat
    to the bus and another into a scratchpad in one cycle."""
    data = sorted(move for burst in times.bursts[unit] for move in _data(burst))
    found = data + _pad_writes(unit, times, instructions, data)
    for index in times.order[unit]:
        instruction, start = instructions[index], times.start[index]
        if start is not None and isinstance(instruction, Loops) and instruction.uop_count:
            found.append((start, start + busy_slots(instruction, config), index))
    return _merged(sorted(found), times.cycles)


def _data(burst: Beats) -> Iterator[Move]:
    """When its data moves: on the bus if it is written, else into a scratchpad."""
    delay = 0 if burst.writes else WRITE_DELAY
    if burst.pace == 1:
        yield burst.start + delay, burst.stop + delay, burst.instruction
    else:
        for stop in range(burst.start + burst.pace, burst.stop + 1, burst.pace):
            yield stop - 1, stop, burst.instruction


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
