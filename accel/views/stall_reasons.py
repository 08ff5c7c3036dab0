"""States of the units by the timing contract."""

from collections.abc import Container, Iterable, Sequence

from accel.core.config import Config
from accel.core.isa import Instruction, Loops, Unit
from accel.core.timing_rules import WRITE_DELAY, FetchBurst, fetch_bursts
from accel.core.token_rules import Counter, pops
from accel.core.unit_states import State
from accel.views.activity_records import NO_INSTRUCTION, Burst, StateReason, StateSpan, TokenFlow
from accel.views.earliest_start import earliest_starts
from accel.views.event_times import BusyInterval, EventTimes, busy_extents

_QUEUE_FULL = {
    Unit.LOAD: StateReason.LOAD_QUEUE,
    Unit.COMPUTE: StateReason.COMPUTE_QUEUE,
    Unit.STORE: StateReason.STORE_QUEUE,
}


class StateTimeline:
    """Assigns each cycle to the first span that covers it.

    For example, a busy span 2..4 leaves 0..2 and 4..6 of a later stall span 0..6.
    """

    def __init__(self, cycles: int) -> None:
        self._free = [(0, cycles)] if cycles else []
        self._spans: list[StateSpan] = []

    def assign(self, spans: Iterable[StateSpan]) -> None:
        """Assign free cycles. Neither starts nor stops may decrease."""
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
                    is_whole = (start, stop) == span[:2]
                    self._spans.append(span if is_whole else span._replace(start=start, stop=stop))
                gap = (stop, gap[1]) if stop < gap[1] else next(gaps, None)
        if gap is not None:
            free += [gap, *gaps]
        self._free = free

    def assign_idle(self, last_work: int) -> None:
        """Free cycles before ``last_work`` have an empty queue. Then the program has ended."""
        no_one = NO_INSTRUCTION, NO_INSTRUCTION
        self.assign([StateSpan(0, last_work, State.IDLE, StateReason.EMPTY, *no_one)])
        self._spans += [
            StateSpan(start, stop, State.IDLE, StateReason.DONE, *no_one) for start, stop in self._free
        ]
        self._free = []

    def spans(self) -> list[StateSpan]:
        found: list[StateSpan] = []
        for span in sorted(self._spans):
            if found and found[-1].stop == span.start and found[-1][2:] == span[2:]:
                found[-1] = found[-1]._replace(stop=span.stop)
            else:
                found.append(span)
        return found


def fetch_spans(
    times: EventTimes, instructions: Sequence[Instruction], config: Config, address: int
) -> list[StateSpan]:
    """Return the states of the fetch unit."""
    arrivals = _arrivals(fetch_bursts(address, len(instructions), config), times.bursts[Unit.FETCH])
    spans: list[StateSpan] = []
    free = 0
    for index, instruction in enumerate(instructions):
        arrival = arrivals[index] if index < len(arrivals) else times.cycles
        dispatched = times.dispatched[index]
        stop = times.cycles if dispatched is None else dispatched
        ready = min(max(free, arrival), stop)
        spans.append(StateSpan(free, ready, State.MEMORY, StateReason.ARRIVAL, index, NO_INSTRUCTION))
        reason = StateReason.SERIAL if config.serial else _QUEUE_FULL.get(instruction.unit, StateReason.EMPTY)
        awaited = index - 1 if config.serial else NO_INSTRUCTION
        spans.append(StateSpan(ready, stop, State.TOKEN, reason, index, awaited))
        if dispatched is None:
            break
        free = dispatched + 1
        spans.append(StateSpan(dispatched, free, State.BUSY, StateReason.WORK, index, NO_INSTRUCTION))
    timeline = StateTimeline(times.cycles)
    timeline.assign(span for span in spans if span.start < span.stop)
    timeline.assign_idle(0)
    return timeline.spans()


def _arrivals(planned: Sequence[FetchBurst], bursts: Sequence[Burst]) -> list[int]:
    return [
        burst.start + beat + WRITE_DELAY
        for plan, burst in zip(planned, bursts, strict=False)
        for beat in plan.arrival
    ]


def unit_spans(
    unit: Unit,
    times: EventTimes,
    instructions: Sequence[Instruction],
    config: Config,
    busy: Sequence[BusyInterval],
    sources: dict[tuple[int, Counter], TokenFlow],
    nonempty: Container[Counter],
) -> list[StateSpan]:
    """Return the states of the load, compute or store unit.

    Args:
        sources: the token that an instruction pops from a counter.
        nonempty: counters with tokens left at the end.
    """
    extents = busy_extents(busy)
    earliest = earliest_starts(unit, times, instructions, config)
    in_flight: list[StateSpan] = []
    scratchpad_waits: list[StateSpan] = []
    token_waits: list[StateSpan] = []
    blocked: list[StateSpan] = []
    for index in times.order[unit]:
        dispatched, start, retired = times.dispatched[index], times.started[index], times.retired[index]
        if index not in earliest or dispatched is None:
            break
        wait_start, ready, reason, awaited = earliest[index]
        blocked.append(
            StateSpan(dispatched + 1, ready, State.IDLE, StateReason.OCCUPIED, index, NO_INSTRUCTION)
        )
        scratchpad_waits.append(StateSpan(wait_start, ready, State.MEMORY, reason, index, awaited))
        wait_stop = times.cycles if start is None else start
        available: Container[Counter] = nonempty if start is None else ()
        token_waits.append(_token_wait(ready, wait_stop, index, instructions[index], sources, available))
        if start is None or isinstance(instructions[index], Loops):
            continue
        stop = times.cycles if retired is None else retired + 1
        first, last = (min(cycle, stop) for cycle in extents.get(index, (stop, stop)))
        in_flight += [
            StateSpan(start, first, State.MEMORY, StateReason.FIRST_BEAT, index, NO_INSTRUCTION),
            StateSpan(first, last, State.MEMORY, StateReason.NEXT_BEAT, index, NO_INSTRUCTION),
            StateSpan(last, stop, State.MEMORY, StateReason.LAST_WRITE, index, NO_INSTRUCTION),
        ]
    timeline = StateTimeline(times.cycles)
    timeline.assign(
        _without_overlaps(
            StateSpan(start, stop, State.BUSY, StateReason.WORK, index, NO_INSTRUCTION)
            for start, stop, index in busy
        )
    )
    timeline.assign(_without_overlaps(scratchpad_waits))
    timeline.assign(_without_overlaps(in_flight))
    timeline.assign(span for span in token_waits if span.start < span.stop)
    timeline.assign(_without_overlaps(blocked))
    timeline.assign_idle(_last_work(unit, times))
    return timeline.spans()


def _last_work(unit: Unit, times: EventTimes) -> int:
    last = 0
    for index in times.order[unit]:
        start, dispatched = times.started[index], times.dispatched[index]
        if start is not None:
            last = max(last, start)
        elif dispatched is not None:
            last = max(last, dispatched + 1)
    return last


def _without_overlaps(spans: Iterable[StateSpan]) -> list[StateSpan]:
    found: list[StateSpan] = []
    reached = 0
    for span in spans:
        start = max(reached, span.start)
        if start < span.stop:
            found.append(span._replace(start=start))
            reached = span.stop
    return found


def _token_wait(
    start: int,
    stop: int,
    index: int,
    instruction: Instruction,
    sources: dict[tuple[int, Counter], TokenFlow],
    available: Container[Counter],
) -> StateSpan:
    """Return the wait for the last token, or a missing one, preferably not ``available``."""
    counters = pops(instruction)
    if not counters:
        return StateSpan(start, start, State.TOKEN, StateReason.WORK, index, NO_INSTRUCTION)
    flows = [(counter, sources.get((index, counter))) for counter in counters]
    missing = sorted((c for c, flow in flows if flow is None), key=lambda counter: counter in available)
    present = [flow for _, flow in flows if flow is not None]
    if present and not (missing and stop > max(flow.pushed for flow in present) + 1):
        last = max(present, key=lambda flow: flow.pushed)
        reason = StateReason.of_counter(last.counter)
        return StateSpan(start, stop, State.TOKEN, reason, index, last.source)
    return StateSpan(start, stop, State.TOKEN, StateReason.of_counter(missing[0]), index, NO_INSTRUCTION)
