"""What every unit did in every cycle of a run, and why it did nothing in the others.

All of it follows from the events, which simulator and hardware report alike, and from the timing contract.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

from accel.config import Config
from accel.events import Event, EventKind
from accel.isa import Instruction, Load, Loops, Unit
from accel.order import WORKERS, Counter, pops
from accel.timing import REQUEST_STARTUP, WRITE_DELAY, FetchBurst, fetch_bursts
from accel.views.states import NOBODY, Activity, Beats, Flow, Reason, Slice, Span, State

_QUEUES = {Unit.LOAD: Reason.LOAD_QUEUE, Unit.COMPUTE: Reason.COMPUTE_QUEUE, Unit.STORE: Reason.STORE_QUEUE}


class _Times:
    """When each instruction was handed out, started and retired; of unit by unit, its bursts."""

    def __init__(self, events: Sequence[Event], instructions: Sequence[Instruction], cycles: int) -> None:
        count = len(instructions)
        self.handed: list[int | None] = [None] * count
        self.start: list[int | None] = [None] * count
        self.retire: list[int | None] = [None] * count
        self.order: dict[Unit, list[int]] = {unit: [] for unit in WORKERS}
        self.pushed: dict[Counter, list[tuple[int, int]]] = {c: [] for c in Counter}
        self.popped: dict[Counter, list[tuple[int, int]]] = {c: [] for c in Counter}
        grants: dict[Unit, list[int]] = {unit: [] for unit in Unit}
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
                grants[unit].append(cycle)
            elif kind == EventKind.BURST_LAST:
                lasts[unit].append((index, cycle, value))
            elif kind == EventKind.TOKEN_PUSH:
                self.pushed[Counter(value)].append((cycle, index))
            elif kind == EventKind.TOKEN_POP:
                self.popped[Counter(value)].append((cycle, index))
        self.bursts = {
            unit: [
                Beats(unit, index, grant, last - beats + 1, last + 1)
                for grant, (index, last, beats) in zip(grants[unit], lasts[unit], strict=False)
            ]
            for unit in Unit
        }
        self.cycles = cycles


def activity(
    events: Sequence[Event],
    instructions: Sequence[Instruction],
    config: Config,
    *,
    address: int,
    cycles: int,
    tokens: Sequence[int] = (0, 0, 0, 0),
) -> Activity:
    """What the units did.

    Args:
        events: of the run, sorted.
        instructions: the program.
        config: the machine; of the bus it is assumed that the beats of a burst follow each other.
        address: of the first instruction in DRAM.
        cycles: length of the run.
        tokens: the counters at the start.
    """
    times = _Times(events, instructions, cycles)
    flows = _flows(times, tokens)
    sources = {(flow.target, flow.counter): flow for flow in flows}
    spans = {Unit.FETCH: _fetch_spans(times, instructions, config, address)}
    slices: list[Slice] = []
    for unit in WORKERS:
        moves = _moves(unit, times, instructions)
        slices += _slices(unit, times, moves)
        spans[unit] = _unit_spans(unit, times, instructions, config, moves, sources)
    return Activity(
        cycles=cycles,
        slices=sorted(slices, key=lambda s: (s.start, s.unit, s.instruction)),
        spans=spans,
        flows=flows,
        bursts=list(chain.from_iterable(times.bursts.values())),
        queues={
            unit: _levels(
                [c for i in times.order[unit] if (c := times.handed[i]) is not None],
                [c for i in times.order[unit] if (c := times.start[i]) is not None],
                0,
            )
            for unit in WORKERS
        },
        tokens={
            c: [(0, tokens[c]), *_levels(_cycles(times.pushed[c]), _cycles(times.popped[c]), tokens[c])]
            for c in Counter
        },
    )


def _flows(times: _Times, tokens: Sequence[int]) -> list[Flow]:
    """Tokens are anonymous: the k-th pop takes that of the k-th push, those of the start first."""
    found = []
    for counter in Counter:
        pushed = times.pushed[counter]
        for (popped, target), (cycle, source) in zip(
            times.popped[counter][tokens[counter] :], pushed, strict=False
        ):
            found.append(Flow(counter, source, target, cycle, popped))
    return sorted(found, key=lambda flow: (flow.popped, flow.target, flow.counter))


def _cycles(events: Sequence[tuple[int, int]]) -> list[int]:
    return [cycle for cycle, _ in events]


def _levels(more: Sequence[int], less: Sequence[int], level: int) -> list[tuple[int, int]]:
    """``(cycle, level)`` whenever the level changes, from the cycles in which it grows and shrinks by one."""
    changes: dict[int, int] = {}
    for cycle in more:
        changes[cycle] = changes.get(cycle, 0) + 1
    for cycle in less:
        changes[cycle] = changes.get(cycle, 0) - 1
    found = []
    for cycle in sorted(changes):
        if changes[cycle]:
            level += changes[cycle]
            found.append((cycle, level))
    return found


# --- data -----------------------------------------------------------------------------------------

Move = tuple[int, int, int]
"""Start, stop and instruction: data moves, or micro-ops are issued."""


def _moves(unit: Unit, times: _Times, instructions: Sequence[Instruction]) -> list[Move]:
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
    unit: Unit, times: _Times, instructions: Sequence[Instruction], data: Sequence[Move]
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


def _extents(moves: Sequence[Move]) -> dict[int, tuple[int, int]]:
    """Of each instruction, when data first moves, and when it no longer does."""
    found: dict[int, tuple[int, int]] = {}
    for start, stop, index in moves:
        found[index] = (found.get(index, (start, stop))[0], stop)
    return found


def _slices(unit: Unit, times: _Times, moves: Sequence[Move]) -> list[Slice]:
    extents = _extents(moves)
    rows: list[int] = []
    found = []
    for index in times.order[unit]:
        start, handed, retire = times.start[index], times.handed[index], times.retire[index]
        if start is None or handed is None:
            continue
        stop = times.cycles if retire is None else retire + 1
        row = next((n for n, free in enumerate(rows) if free <= start), len(rows))
        rows[row : row + 1] = [stop]
        begin, end = (min(cycle, stop) for cycle in extents.get(index, (stop, stop)))
        found.append(Slice(index, unit, handed, start, stop, begin, end, row))
    return found


# --- states ---------------------------------------------------------------------------------------


class _Painter:
    """The states of a unit, painted over what is still free, the most important first."""

    def __init__(self, cycles: int) -> None:
        self._free = [(0, cycles)] if cycles else []
        self._spans: list[Span] = []

    def paint(self, spans: Iterable[Span]) -> None:
        """Give free cycles to the first of ``spans`` that holds them; starts and stops do not decrease."""
        free: list[tuple[int, int]] = []
        gaps = iter(self._free)
        gap = next(gaps, None)
        for span in spans:
            while gap is not None and gap[1] <= span.start:
                free.append(gap)
                gap = next(gaps, None)
            while gap is not None and gap[0] < span.stop:
                start, stop = max(gap[0], span.start), min(gap[1], span.stop)
                if gap[0] < start:
                    free.append((gap[0], start))
                if start < stop:
                    whole = (start, stop) == span[:2]
                    self._spans.append(span if whole else span._replace(start=start, stop=stop))
                gap = (stop, gap[1]) if stop < gap[1] else next(gaps, None)
        if gap is not None:
            free += [gap, *gaps]
        self._free = free

    def rest(self, boundary: int) -> None:
        """What is still free is idle: for want of work, behind ``boundary`` because all is done."""
        self.paint([Span(0, boundary, State.IDLE, Reason.EMPTY, NOBODY, NOBODY)])
        self._spans += [Span(a, b, State.IDLE, Reason.DONE, NOBODY, NOBODY) for a, b in self._free]
        self._free = []

    def spans(self) -> list[Span]:
        """Everything painted, in order, neighbours of one kind joined."""
        found: list[Span] = []
        for span in sorted(self._spans):
            if found and found[-1].stop == span.start and found[-1][2:] == span[2:]:
                found[-1] = found[-1]._replace(stop=span.stop)
            else:
                found.append(span)
        return found


def _fetch_spans(
    times: _Times, instructions: Sequence[Instruction], config: Config, address: int
) -> list[Span]:
    arrivals = _arrivals(fetch_bursts(address, len(instructions), config), times.bursts[Unit.FETCH])
    spans: list[Span] = []
    free = 0
    for index, instruction in enumerate(instructions):
        arrival = arrivals[index] if index < len(arrivals) else times.cycles
        handed = times.handed[index]
        stop = times.cycles if handed is None else handed
        ready = min(max(free, arrival), stop)
        spans.append(Span(free, ready, State.MEMORY, Reason.ARRIVAL, index, NOBODY))
        reason = Reason.SERIAL if config.serial else _QUEUES.get(instruction.unit, Reason.EMPTY)
        other = index - 1 if config.serial else NOBODY
        spans.append(Span(ready, stop, State.TOKEN, reason, index, other))
        if handed is None:
            break
        spans.append(Span(handed, handed + 1, State.BUSY, Reason.WORK, index, NOBODY))
        free = handed + 1
    painter = _Painter(times.cycles)
    painter.paint(span for span in spans if span.start < span.stop)
    painter.rest(0)
    return painter.spans()


def _arrivals(planned: Sequence[FetchBurst], bursts: Sequence[Beats]) -> list[int]:
    """First cycle in which each instruction can be handed out, as far as it was read."""
    return [
        burst.start + beat + WRITE_DELAY
        for plan, burst in zip(planned, bursts, strict=False)
        for beat in plan.arrival
    ]


def _unit_spans(
    unit: Unit,
    times: _Times,
    instructions: Sequence[Instruction],
    config: Config,
    moves: Sequence[Move],
    sources: dict[tuple[int, Counter], Flow],
) -> list[Span]:
    extents = _extents(moves)
    ready = _ready(unit, times, instructions, config)
    flights: list[Span] = []
    waits: list[Span] = []
    blocked: list[Span] = []
    for index in times.order[unit]:
        handed, start, retire = times.handed[index], times.start[index], times.retire[index]
        if index not in ready or handed is None:
            break
        begin = times.cycles if start is None else start
        blocked.append(Span(handed + 1, ready[index], State.IDLE, Reason.OCCUPIED, index, NOBODY))
        waits.append(_wait(ready[index], begin, index, instructions[index], sources))
        if start is None or isinstance(instructions[index], Loops):
            continue
        stop = times.cycles if retire is None else retire + 1
        a, b = (min(cycle, stop) for cycle in extents.get(index, (stop, stop)))
        flights += [
            Span(start, a, State.MEMORY, Reason.FIRST_BEAT, index, NOBODY),
            Span(a, b, State.MEMORY, Reason.NEXT_BEAT, index, NOBODY),
            Span(b, stop, State.MEMORY, Reason.LAST_WRITE, index, NOBODY),
        ]
    painter = _Painter(times.cycles)
    painter.paint(Span(a, b, State.BUSY, Reason.WORK, index, NOBODY) for a, b, index in moves)
    painter.paint(_in_order(flights))
    painter.paint(span for span in waits if span.start < span.stop)
    painter.paint(_in_order(blocked))
    starts = [times.start[index] for index in times.order[unit]]
    painter.rest(max((start for start in starts if start is not None), default=0))
    return painter.spans()


def _in_order(spans: Iterable[Span]) -> list[Span]:
    """Spans cut so that none starts before the one before it stops."""
    found: list[Span] = []
    reached = 0
    for span in spans:
        start = max(reached, span.start)
        if start < span.stop:
            found.append(span._replace(start=start))
            reached = span.stop
    return found


def _wait(
    ready: int,
    start: int,
    index: int,
    instruction: Instruction,
    sources: dict[tuple[int, Counter], Flow],
) -> Span:
    """Waiting for the token that comes last."""
    counters = pops(instruction)
    if not counters:
        return Span(ready, ready, State.TOKEN, Reason.WORK, index, NOBODY)
    flows = [(c, sources.get((index, c))) for c in counters]
    missing = [c for c, flow in flows if flow is None]
    present = [flow for _, flow in flows if flow is not None]
    if present and not (missing and start > max(flow.pushed for flow in present) + 1):
        late = max(present, key=lambda flow: flow.pushed)
        return Span(ready, start, State.TOKEN, Reason.of_counter(late.counter), index, late.source)
    return Span(ready, start, State.TOKEN, Reason.of_counter(missing[0]), index, NOBODY)


def _ready(unit: Unit, times: _Times, instructions: Sequence[Instruction], config: Config) -> dict[int, int]:
    """The first cycle in which each instruction headed its queue and its unit could accept it."""
    granted: dict[int, int] = {burst.instruction: burst.grant for burst in times.bursts[unit]}
    limit = {Unit.LOAD: config.loads_in_flight, Unit.STORE: config.stores_in_flight}.get(unit, 1)
    found: dict[int, int] = {}
    order = times.order[unit]
    for place, index in enumerate(order):
        handed = times.handed[index]
        assert handed is not None
        ready = handed + 1
        if place:
            before = order[place - 1]
            begun = times.start[before]
            if begun is None:
                break
            if unit is Unit.COMPUTE:
                free = _compute_free(before, begun, instructions, times, index)
            else:
                free = granted.get(before, begun) + 1
            ready = max(ready, free)
        if unit is not Unit.COMPUTE:
            recent = order[max(0, place - limit) : place]
            for one in recent:
                full = len(recent) == limit and one == recent[0]
                if full or _overlap(instructions[one], instructions[index]):
                    done = times.retire[one]
                    ready = max(ready, times.cycles if done is None else done + 1)
        found[index] = min(ready, times.cycles)
    return found


def _compute_free(
    before: int, begun: int, instructions: Sequence[Instruction], times: _Times, index: int
) -> int:
    one = instructions[before]
    if isinstance(one, Loops) and isinstance(instructions[index], Loops):
        return begun + max(1, one.uop_count)
    retire = times.retire[before]
    return times.cycles if retire is None else retire + 1


def _overlap(one: Instruction, other: Instruction) -> bool:
    """Whether two LOADs fill overlapping ranges of one scratchpad."""
    if not (isinstance(one, Load) and isinstance(other, Load)) or one.memory != other.memory:
        return False
    return (
        one.sram_base < other.sram_base + other.sram_elements
        and other.sram_base < one.sram_base + one.sram_elements
    )
