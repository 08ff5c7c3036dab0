"""The critical path of a run: why it took its cycles.

From the last event, the path goes back from each event to the one that it waited for last. The cycles of its
segments add up to the run's.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from accel.assembly.symbolic_names import PlaceNames
from accel.base.deprecated_modules import renamed
from accel.core.events import MAX_RECORDS, Timing
from accel.core.fault_causes import instruction_faults
from accel.core.isa import Transfer, Unit
from accel.image.image import Image
from accel.run.run_record import NONE, NodeKind, RunRecord, record_of_events, record_of_run
from accel.run.wait_causes import Wait
from accel.run.wait_graph import Delay, Edge, WaitGraph
from accel.sim.timing.timed_program import TimedProgram
from accel.sim.timing.timing_run import TimingRun

__getattr__ = renamed(
    __name__,
    {
        "cut": "split_path",
        "joined": "join_paths",
        "longest": "longest_segments",
        "tensors_of": "tensor_lookup",
        "waits_of": "wait_graph_of",
        "walk": "longest_path",
    },
)

_MEMORY_WAITS = (Wait.READ_LATENCY, Wait.READ_DATA, Wait.WRITE_DATA, Wait.WRITE_LATENCY)


class Segment(NamedTuple):
    """Consecutive cycles of the path with one cause.

    Attributes:
        unit: ``fetch``, ``load``, ``compute`` or ``store``, that works or waits.
        cause: see :class:`~accel.run.wait_causes.Wait`.
        instruction: its index, of bursts of fetch the first one.
        tensor: moved or computed by the instruction, if known.
    """

    start: int
    cycles: int
    unit: str
    cause: Wait
    instruction: int | None
    tensor: str | None

    @property
    def stop(self) -> int:
        """The first cycle after the segment."""
        return self.start + self.cycles

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "start": self.start,
            "cycles": self.cycles,
            "unit": self.unit,
            "cause": str(self.cause),
            "instruction": self.instruction,
            "tensor": self.tensor,
        }


class Share(NamedTuple):
    """The share of one cause in one unit."""

    unit: str
    cause: Wait
    cycles: int
    segments: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**self._asdict(), "cause": str(self.cause)}


def critical_path(timing: Timing, image: Image) -> tuple[Segment, ...] | None:
    """Return the longest path, as segments in order.

    Returns:
        None if events were not recorded or are too many. After an error, the last segment is ``stopped``.
    """
    graph = wait_graph_of(timing, image)
    if graph is None:
        return None
    return _segments(longest_path(graph, timing.cycles), tensor_lookup(image))


def wait_graph_of(timing: Timing, image: Image) -> WaitGraph | None:
    """Return the graph of a run, or None as :func:`critical_path`."""
    config = image.config
    if (timing.record_count or 0) > MAX_RECORDS:
        return None
    if isinstance(timing, TimingRun):
        record, program = record_of_run(timing), timing.program
    else:
        events = timing.events()
        if events is None:
            return None
        record = record_of_events(events, image.instructions)
        checked = instruction_faults(image.instructions, config)
        program = TimedProgram(image.instructions, config, {}, checked)
    address = config.mem_base + image.code_offset
    return WaitGraph(record, program, config, address=address, tokens=image.start.tokens)


def longest_path(graph: WaitGraph, cycles: int) -> list[Delay]:
    """Return the delays of the longest path, in order."""
    kind, number = _last_node(graph.record)
    cycle = graph.cycle(kind, number)
    edges, cycle_of = graph.edges, graph.cycle
    found: list[Delay] = []
    while kind is not NodeKind.BEGIN:
        bound, kind, number, delays = _latest_edge(edges(kind, number), cycle)
        found.extend(delays[::-1] if bound == cycle else _lengthened(delays, cycle - bound)[::-1])
        cycle = cycle_of(kind, number)
    found.reverse()
    rest = cycles - sum(delay.cycles for delay in found)
    if found and graph.record.retire.min() >= 0:
        found[-1] = found[-1]._replace(cycles=found[-1].cycles + rest)
    elif rest:
        found.append(Delay(rest, Unit.FETCH, Wait.STOPPED, NONE))
    return found


def _latest_edge(edges: Iterator[Edge], cycle: int) -> Edge:
    """Return the first edge whose bound is the node's cycle.

    If memory is late, none may match. Then return the highest bound before the cycle.
    """
    best = None
    for edge in edges:
        bound = edge[0]
        if bound == cycle:
            return edge
        if best is None or best[0] < bound < cycle or bound < cycle < best[0]:
            best = edge
    assert best is not None
    return best


def _lengthened(delays: tuple[Delay, ...], cycles: int) -> tuple[Delay, ...]:
    """Lengthen the last wait for memory, or without one the last delay."""
    chosen = max(range(len(delays)), key=lambda n: (delays[n].wait in _MEMORY_WAITS, n))
    longer = delays[chosen]._replace(cycles=delays[chosen].cycles + cycles)
    return (*delays[:chosen], longer, *delays[chosen + 1 :])


def _last_node(record: RunRecord) -> tuple[NodeKind, int]:
    best = (-1, NodeKind.BEGIN, 0)
    for kind, column in (
        (NodeKind.RETIRE, record.retire),
        (NodeKind.START, record.start),
        (NodeKind.DISPATCH, record.dispatch),
        (NodeKind.READ_LAST, record.read_lasts),
        (NodeKind.READ_GRANT, record.read_grants),
        (NodeKind.WRITE_GRANT, record.write_grants),
    ):
        if len(column):
            number = int(column.argmax())
            best = max(best, (int(column[number]), kind, number), key=lambda one: one[0])
    return best[1:]


def _segments(delays: Sequence[Delay], tensors: Callable[[int], str | None]) -> tuple[Segment, ...]:
    labels = {unit: unit.label for unit in Unit}
    fetch = Unit.FETCH
    found: list[Segment] = []
    start = stop = 0
    current: tuple[Unit, Wait, int] | None = None
    for cycles, unit, wait, index in [*delays, _END]:
        if not cycles:
            continue
        if current is None or index != current[2] or wait is not current[1] or unit is not current[0]:
            if current is not None:
                own_unit, cause, number = current
                instruction = number if number >= 0 else None
                tensor = tensors(number) if instruction is not None and own_unit is not fetch else None
                found.append(Segment(start, stop - start, labels[own_unit], cause, instruction, tensor))
            start, current = stop, (unit, wait, index)
        stop += cycles
    return tuple(found)


_END = Delay(1, Unit.FETCH, Wait.STOPPED, -2)
"""Differs from every delay, to end the last segment."""


def tensor_lookup(image: Image) -> Callable[[int], str | None]:
    """Return a function from an instruction's index to its tensor, if known."""
    names, provenance, instructions = PlaceNames(image), image.provenance, image.instructions
    moved: dict[int, str | None] = {}
    """By the id of the object, which equal instructions share."""

    def tensor(index: int) -> str | None:
        one = instructions[index]
        name = None
        if isinstance(one, Transfer):
            key = id(one)
            if key not in moved:
                moved[key] = names.place(one)
            name = moved[key]
        return name if name is not None or provenance is None else provenance[index].tensor or None

    return tensor


def shares(segments: Iterable[Segment]) -> list[Share]:
    """Sum up segments by cause and unit, the largest first."""
    sums: dict[tuple[str, Wait], list[int]] = {}
    for one in segments:
        row = sums.setdefault((one.unit, one.cause), [0, 0])
        row[0] += one.cycles
        row[1] += 1
    found = [Share(unit, cause, cycles, count) for (unit, cause), (cycles, count) in sums.items()]
    return sorted(found, key=lambda one: (-one.cycles, one.unit, one.cause))


def shares_text(found: Sequence[Share], most: int = 2) -> str:
    """Name the first shares of at least 0.5 %, for example ``load read data 40%, store write data 12%``."""
    cycles = sum(one.cycles for one in found) or 1
    named = [one for one in found[:most] if one.cycles >= cycles / 200]
    return ", ".join(f"{one.unit} {one.cause} {one.cycles / cycles:.0%}" for one in named)


def split_path(segments: Iterable[Segment], stops: Sequence[int]) -> list[list[Segment]]:
    """Split a critical path at cycles.

    Args:
        stops: ascending ends. For example, 100, 250 gives cycles 0 to 99 and 100 to 249.
    """
    found: list[list[Segment]] = [[] for _ in stops]
    piece = 0
    for one in segments:
        start = one.start
        while start < one.stop and piece < len(stops):
            stop = min(one.stop, stops[piece])
            if start < stop:
                found[piece].append(one._replace(start=start, cycles=stop - start))
                start = stop
            if start == stops[piece]:
                piece += 1
    return found


def join_paths(paths: Iterable[Sequence[Segment]]) -> tuple[Segment, ...]:
    """Join the critical paths of consecutive runs."""
    found: list[Segment] = []
    begin = 0
    for path in paths:
        found += [one._replace(start=begin + one.start) for one in path]
        begin = found[-1].stop if found else 0
    return tuple(found)


def longest_segments(segments: Sequence[Segment], most: int) -> list[Segment]:
    """Return the ``most`` longest segments, longest first."""
    return sorted(segments, key=lambda one: (-one.cycles, one.start))[:most]


def critical_dict(segments: Sequence[Segment], most: int | None = None) -> dict[str, Any]:
    """Return a critical path as plain data.

    Args:
        most: only this number of longest segments, or None for all in order.
    """
    chosen = segments if most is None else longest_segments(segments, most)
    return {
        "cycles": sum(one.cycles for one in segments),
        "causes": [one.to_dict() for one in shares(segments)],
        "segments": [one.to_dict() for one in chosen],
    }
