"""What every unit did in every cycle of a run, and why it did nothing in the others.

The rules are those of the timing contract.
"""

from collections.abc import Container, Iterable, Sequence

from accel.core.config import Config
from accel.core.isa import Instruction, Loops, Unit
from accel.core.timing_rules import WRITE_DELAY, FetchBurst, fetch_bursts
from accel.core.token_rules import Counter, pops
from accel.views.ready import ready_cycles
from accel.views.states import NOBODY, Beats, Flow, Reason, Span, State
from accel.views.times import Move, Times, extents

_QUEUES = {Unit.LOAD: Reason.LOAD_QUEUE, Unit.COMPUTE: Reason.COMPUTE_QUEUE, Unit.STORE: Reason.STORE_QUEUE}


class Painter:
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


def fetch_spans(
    times: Times, instructions: Sequence[Instruction], config: Config, address: int
) -> list[Span]:
    """What fetch did in every cycle of a run, and why it did nothing in the others.

    Args:
        address: of the first instruction.
    """
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
    painter = Painter(times.cycles)
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


def unit_spans(
    unit: Unit,
    times: Times,
    instructions: Sequence[Instruction],
    config: Config,
    moves: Sequence[Move],
    sources: dict[tuple[int, Counter], Flow],
    spare: Container[Counter],
) -> list[Span]:
    """What a unit behind a queue did in every cycle of a run, and why it did nothing in the others.

    Args:
        moves: when it is busy.
        sources: who pushed the token that an instruction pops.
        spare: the counters that hold a token at the end; what has not started does not wait for these.
    """
    moved = extents(moves)
    ready = ready_cycles(unit, times, instructions, config)
    flights: list[Span] = []
    shared: list[Span] = []
    waits: list[Span] = []
    blocked: list[Span] = []
    for index in times.order[unit]:
        handed, start, retire = times.handed[index], times.start[index], times.retire[index]
        if index not in ready or handed is None:
            break
        begin = times.cycles if start is None else start
        free, able, reason, other = ready[index]
        blocked.append(Span(handed + 1, able, State.IDLE, Reason.OCCUPIED, index, NOBODY))
        shared.append(Span(free, able, State.MEMORY, reason, index, other))
        there: Container[Counter] = () if start is not None else spare
        waits.append(_wait(able, begin, index, instructions[index], sources, there))
        if start is None or isinstance(instructions[index], Loops):
            continue
        stop = times.cycles if retire is None else retire + 1
        a, b = (min(cycle, stop) for cycle in moved.get(index, (stop, stop)))
        flights += [
            Span(start, a, State.MEMORY, Reason.FIRST_BEAT, index, NOBODY),
            Span(a, b, State.MEMORY, Reason.NEXT_BEAT, index, NOBODY),
            Span(b, stop, State.MEMORY, Reason.LAST_WRITE, index, NOBODY),
        ]
    painter = Painter(times.cycles)
    painter.paint(_in_order(Span(a, b, State.BUSY, Reason.WORK, index, NOBODY) for a, b, index in moves))
    painter.paint(_in_order(shared))
    painter.paint(_in_order(flights))
    painter.paint(span for span in waits if span.start < span.stop)
    painter.paint(_in_order(blocked))
    known = [times.start[one] for one in times.order[unit]] + [one + 1 for one in _waiting(unit, times)]
    painter.rest(max((cycle for cycle in known if cycle is not None), default=0))
    return painter.spans()


def _waiting(unit: Unit, times: Times) -> list[int]:
    """When those were handed out that the end of the run finds in the unit's queue."""
    handed = [times.handed[one] for one in times.order[unit] if times.start[one] is None]
    return [cycle for cycle in handed if cycle is not None]


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
    there: Container[Counter],
) -> Span:
    """Waiting for the token that comes last, or for one that is not ``there``."""
    counters = pops(instruction)
    if not counters:
        return Span(ready, ready, State.TOKEN, Reason.WORK, index, NOBODY)
    flows = [(c, sources.get((index, c))) for c in counters]
    missing = sorted((c for c, flow in flows if flow is None), key=lambda c: c in there)
    present = [flow for _, flow in flows if flow is not None]
    if present and not (missing and start > max(flow.pushed for flow in present) + 1):
        late = max(present, key=lambda flow: flow.pushed)
        return Span(ready, start, State.TOKEN, Reason.of_counter(late.counter), index, late.source)
    return Span(ready, start, State.TOKEN, Reason.of_counter(missing[0]), index, NOBODY)
