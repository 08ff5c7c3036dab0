"""Times of events."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from accel.core.config import Config
from accel.core.events import Event, EventKind
from accel.core.isa import Instruction, Load, Loops, Store, Unit
from accel.core.timing_rules import REQUEST_STARTUP, WRITE_DELAY, beat_cycles, busy_slots, store_depth
from accel.core.token_rules import WORKERS, Counter
from accel.views.activity_records import Burst


class _Port(NamedTuple):
    unit: Unit
    is_write: bool


_PORTS = (*(_Port(unit, is_write=False) for unit in Unit), _Port(Unit.STORE, is_write=True))
_Request = tuple[int, int, int]


class EventTimes:
    """Cycles of the events of each instruction, token and burst.

    Attributes:
        dispatched, started, retired: by instruction, or None.
        order: instructions of each unit by dispatch.
        pushed, popped: cycle and instruction of each token.
        bursts: as :attr:`Activity.bursts`.
    """

    def __init__(
        self, events: Sequence[Event], instructions: Sequence[Instruction], config: Config, cycles: int
    ) -> None:
        count = len(instructions)
        self.cycles = cycles
        self.dispatched: list[int | None] = [None] * count
        self.started: list[int | None] = [None] * count
        self.retired: list[int | None] = [None] * count
        self.order: dict[Unit, list[int]] = {unit: [] for unit in WORKERS}
        self.pushed: dict[Counter, list[tuple[int, int]]] = {counter: [] for counter in Counter}
        self.popped: dict[Counter, list[tuple[int, int]]] = {counter: [] for counter in Counter}
        grants: dict[_Port, list[_Request]] = {port: [] for port in _PORTS}
        lasts: dict[_Port, list[_Request]] = {port: [] for port in _PORTS}
        for cycle, unit, kind, index, value in events:
            if kind == EventKind.QUEUE_PUSH:
                self.dispatched[index] = cycle
                self.order[Unit(value)].append(index)
            elif kind == EventKind.START:
                self.started[index] = cycle
            elif kind == EventKind.RETIRE:
                self.retired[index] = cycle
            elif kind == EventKind.BURST_GRANT:
                grants[_port_of(unit, instructions[index])].append((index, cycle, value))
            elif kind == EventKind.BURST_LAST:
                lasts[_port_of(unit, instructions[index])].append((index, cycle, value))
            elif kind == EventKind.TOKEN_PUSH:
                self.pushed[Counter(value)].append((cycle, index))
            elif kind == EventKind.TOKEN_POP:
                self.popped[Counter(value)].append((cycle, index))
        self.bursts: dict[Unit, list[Burst]] = {unit: [] for unit in Unit}
        for port, bursts in _bursts(grants, lasts, instructions, config).items():
            self.bursts[port.unit] += bursts


def _port_of(unit: Unit, instruction: Instruction) -> _Port:
    return _Port(unit, unit is Unit.STORE and isinstance(instruction, Store))


def _bursts(
    grants: dict[_Port, list[_Request]],
    lasts: dict[_Port, list[_Request]],
    instructions: Sequence[Instruction],
    config: Config,
) -> dict[_Port, list[Burst]]:
    """Pair grants with last beats. Beats after the run's end get the earliest possible cycles."""
    bursts: dict[_Port, list[Burst]] = {port: [] for port in _PORTS}
    for port in _PORTS:
        for (_, granted, _), (index, last, beats) in zip(grants[port], lasts[port], strict=False):
            pace = beat_cycles(instructions[index], config) if port.is_write else 1
            bursts[port].append(Burst(*port, index, granted, last - beats * pace + 1, last + 1, pace))
    for is_write in (False, True):
        ports = [port for port in _PORTS if port.is_write is is_write]
        delay = store_depth(config) if is_write else config.read_latency
        free = max((burst.stop for port in ports for burst in bursts[port]), default=0)
        incomplete = [(one, port) for port in ports for one in grants[port][len(bursts[port]) :]]
        for (index, granted, beats), port in sorted(incomplete, key=lambda one: one[0][1]):
            start = max(granted + delay, free)
            pace = beat_cycles(instructions[index], config) if is_write else 1
            free = start + beats * pace
            bursts[port].append(Burst(*port, index, granted, start, free, pace))
    return bursts


BusyInterval = tuple[int, int, int]
"""Cycles ``[start, stop)`` in which an instruction's data moves or its micro-ops issue."""


def busy_intervals(
    unit: Unit, times: EventTimes, instructions: Sequence[Instruction], config: Config
) -> list[BusyInterval]:
    """Return sorted intervals.

    Those of the store unit overlap, since it can write to bus and scratchpad in one cycle.
    """
    data = sorted(interval for burst in times.bursts[unit] for interval in _data_intervals(burst))
    found = data + _pad_intervals(unit, times, instructions, data)
    for index in times.order[unit]:
        instruction, start = instructions[index], times.started[index]
        if start is not None and isinstance(instruction, Loops) and instruction.uop_count:
            found.append((start, start + busy_slots(instruction, config), index))
    return _merged(sorted(found), times.cycles)


def _data_intervals(burst: Burst) -> Iterator[BusyInterval]:
    delay = 0 if burst.is_write else WRITE_DELAY
    if burst.cycles_per_beat == 1:
        yield burst.start + delay, burst.stop + delay, burst.instruction
    else:
        for stop in range(burst.start + burst.cycles_per_beat, burst.stop + 1, burst.cycles_per_beat):
            yield stop - 1, stop, burst.instruction


def _merged(intervals: Iterable[BusyInterval], cycles: int) -> list[BusyInterval]:
    found: list[BusyInterval] = []
    start = stop = index = -1
    for next_start, next_stop, instruction in intervals:
        if next_start == stop and instruction == index:
            stop = next_stop
            continue
        found.append((start, min(stop, cycles), index))
        start, stop, index = next_start, next_stop, instruction
    found.append((start, min(stop, cycles), index))
    return [interval for interval in found if interval[0] < interval[1]]


def _pad_intervals(
    unit: Unit, times: EventTimes, instructions: Sequence[Instruction], data: Sequence[BusyInterval]
) -> list[BusyInterval]:
    """Pad words are written in cycles without data, one a cycle, in instruction order."""
    found: list[BusyInterval] = []
    cycle = cursor = 0
    for index in times.order[unit]:
        instruction, start = instructions[index], times.started[index]
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


def busy_extents(intervals: Sequence[BusyInterval]) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for start, stop, index in intervals:
        found[index] = (found.get(index, (start, stop))[0], stop)
    return found
