"""Why a run took as many cycles: from its last event back through whatever each event waited for."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from accel.assembly.names import PlaceNames
from accel.core.events import Timing
from accel.core.isa import Transfer, Unit
from accel.image.image import Image
from accel.run.waits import Edge, Kind, Part, Record, Wait, Waits, plan_of, record_of, record_of_run
from accel.sim.timing.model import TimingRun

_MEMORY = (Wait.READ_LATENCY, Wait.READ_DATA, Wait.WRITE_DATA, Wait.WRITE_LATENCY)


class Segment(NamedTuple):
    """Cycles in a row that passed for one cause.

    Attributes:
        start: the first of them.
        cycles: how many.
        unit: ``fetch``, ``load``, ``compute`` or ``store``, whose work it was, or who waited.
        cause: one of :class:`~accel.run.waits.Wait`.
        instruction: whose work it was, or which one waited, by its place in the program; of fetch's bursts
            the first in it. None where it is none's.
        tensor: that the instruction moves, or whose values it computes; None if that is not known.
    """

    start: int
    cycles: int
    unit: str
    cause: Wait
    instruction: int | None
    tensor: str | None

    @property
    def stop(self) -> int:
        """Behind the last cycle."""
        return self.start + self.cycles

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "start": self.start,
            "cycles": self.cycles,
            "unit": self.unit,
            "cause": str(self.cause),
            "instruction": self.instruction,
            "tensor": self.tensor,
        }


class Share(NamedTuple):
    """What one cause took in one unit.

    Attributes:
        unit, cause: as of :class:`Segment`.
        cycles: of all such segments.
        segments: how many.
    """

    unit: str
    cause: Wait
    cycles: int
    segments: int

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {**self._asdict(), "cause": str(self.cause)}


def critical_path(timing: Timing, image: Image) -> tuple[Segment, ...] | None:
    """The longest path of a run: segments in order of time that adjoin and sum up to its cycles.

    Args:
        timing: what is known of the run.
        image: the program that ran, with the timing of the run.

    Returns:
        The segments; None if events were not recorded. Of a run that ended early the last one, ``stopped``,
        goes from the last event to the error.
    """
    waits = waits_of(timing, image)
    if waits is None:
        return None
    return _segments(walk(waits, timing.cycles), tensors_of(image))


def waits_of(timing: Timing, image: Image) -> Waits | None:
    """The graph of a run; None if events were not recorded."""
    config = image.config
    if isinstance(timing, TimingRun):
        record, plan = record_of_run(timing), timing.plan
    else:
        events = timing.events()
        if events is None:
            return None
        record = record_of(events, image.instructions)
        plan = plan_of(image.instructions, config)
    address = config.mem_base + image.code_offset
    return Waits(record, plan, config, address=address, tokens=image.start.tokens)


def walk(waits: Waits, cycles: int) -> list[Part]:
    """The parts of the longest path through a run, in order of time; they sum up to its cycles."""
    kind, number = _last_node(waits.record)
    at = waits.cycle(kind, number)
    edges, cycle = waits.edges, waits.cycle
    found: list[Part] = []
    while kind is not Kind.BEGIN:
        bound, before, earlier, parts = _latest(edges(kind, number), at)
        found.extend(parts[::-1] if bound == at else _stretched(parts, at - bound)[::-1])
        kind, number = before, earlier
        at = cycle(kind, number)
    found.reverse()
    rest = cycles - sum(part.cycles for part in found)
    if found and waits.record.retire.min() >= 0:
        found[-1] = found[-1]._replace(cycles=found[-1].cycles + rest)
    elif rest:
        found.append(Part(rest, Unit.FETCH, Wait.STOPPED, -1))
    return found


def _latest(edges: Iterator[Edge], at: int) -> Edge:
    """What a node in cycle ``at`` waited for last: in the memory of the timing contract the first edge whose
    bound the node is at. Another memory may answer late."""
    best = None
    for edge in edges:
        bound = edge[0]
        if bound == at:
            return edge
        if best is None or best[0] < bound < at or bound < at < best[0]:
            best = edge
    assert best is not None
    return best


def _stretched(parts: tuple[Part, ...], late: int) -> tuple[Part, ...]:
    """Parts that take ``late`` cycles more: those of memory if there are any, else the last."""
    place = max(range(len(parts)), key=lambda n: (parts[n].wait in _MEMORY, n))
    longer = parts[place]._replace(cycles=parts[place].cycles + late)
    return (*parts[:place], longer, *parts[place + 1 :])


def _last_node(record: Record) -> tuple[Kind, int]:
    """The last thing that happened."""
    best = (-1, Kind.BEGIN, 0)
    for kind, column in (
        (Kind.RETIRE, record.retire),
        (Kind.START, record.start),
        (Kind.HAND, record.hand),
        (Kind.LAST, record.read_lasts),
        (Kind.GRANT, record.read_grants),
        (Kind.WRITE_GRANT, record.write_grants),
    ):
        if len(column):
            number = int(column.argmax())
            best = max(best, (int(column[number]), kind, number), key=lambda one: one[0])
    return best[1:]


def _segments(parts: Sequence[Part], tensors: Callable[[int], str | None]) -> tuple[Segment, ...]:
    """Parts one behind the other, neighbours that only differ in cycles as one."""
    labels = {unit: unit.label for unit in Unit}
    fetch = Unit.FETCH
    found: list[Segment] = []
    start = stop = 0
    last: tuple[Unit, Wait, int] | None = None
    for cycles, unit, wait, index in [*parts, _END]:
        if not cycles:
            continue
        if last is None or index != last[2] or wait is not last[1] or unit is not last[0]:
            if last is not None:
                of, cause, number = last
                known = number >= 0
                tensor = tensors(number) if known and of is not fetch else None
                found.append(
                    Segment(start, stop - start, labels[of], cause, number if known else None, tensor)
                )
            start, last = stop, (unit, wait, index)
        stop += cycles
    return tuple(found)


_END = Part(1, Unit.FETCH, Wait.STOPPED, -2)
"""Behind the last part."""


def tensors_of(image: Image) -> Callable[[int], str | None]:
    """A function that tells the tensor of an instruction, by its place in the program: what a transfer moves,
    or whose values an instruction computes; None if that is not known."""
    names, provenance, instructions = PlaceNames(image), image.provenance, image.instructions
    moved: dict[int, str | None] = {}
    """By the instruction's object, of which there is one for equal words."""

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
    """What each cause took in each unit, most first."""
    sums: dict[tuple[str, Wait], list[int]] = {}
    for one in segments:
        row = sums.setdefault((one.unit, one.cause), [0, 0])
        row[0] += one.cycles
        row[1] += 1
    found = [Share(unit, cause, cycles, count) for (unit, cause), (cycles, count) in sums.items()]
    return sorted(found, key=lambda one: (-one.cycles, one.unit, one.cause))


def shares_text(found: Sequence[Share], most: int = 2) -> str:
    """The first causes in words, each with its part of all cycles; those of less than half a percent are
    left out."""
    cycles = sum(one.cycles for one in found) or 1
    told = [one for one in found[:most] if one.cycles >= cycles / 200]
    return ", ".join(f"{one.unit} {one.cause} {one.cycles / cycles:.0%}" for one in told)


def cut(segments: Iterable[Segment], stops: Sequence[int]) -> list[list[Segment]]:
    """A critical path in pieces: those before the first of ``stops``, from there to the next, and so on;
    cycles that do not decrease. What spans a stop is divided."""
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


def joined(paths: Iterable[Sequence[Segment]]) -> tuple[Segment, ...]:
    """The critical paths of runs as that of one behind the other."""
    found: list[Segment] = []
    begin = 0
    for path in paths:
        found += [one._replace(start=begin + one.start) for one in path]
        begin = found[-1].stop if found else 0
    return tuple(found)


def longest(segments: Sequence[Segment], most: int) -> list[Segment]:
    """The longest ``most`` of them, longest first."""
    return sorted(segments, key=lambda one: (-one.cycles, one.start))[:most]


def critical_dict(segments: Sequence[Segment], most: int | None = None) -> dict[str, Any]:
    """A critical path as plain data.

    Args:
        segments: of the path.
        most: only the longest so many segments, longest first; all of them in order of time if None.
    """
    return {
        "cycles": sum(one.cycles for one in segments),
        "causes": [one.to_dict() for one in shares(segments)],
        "segments": [one.to_dict() for one in (segments if most is None else longest(segments, most))],
    }
