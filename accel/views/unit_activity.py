"""Activity of the units."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import chain

from accel.core.config import Config
from accel.core.events import Event
from accel.core.isa import Instruction, Unit
from accel.core.token_rules import WORKERS, Counter
from accel.views.activity_records import Activity, InstructionSlice, TokenFlow
from accel.views.event_times import BusyInterval, EventTimes, busy_extents, busy_intervals
from accel.views.stall_reasons import fetch_spans, unit_spans


def derive_activity(
    events: Sequence[Event],
    instructions: Sequence[Instruction],
    config: Config,
    *,
    address: int,
    cycles: int,
    tokens: Sequence[int] = (0, 0, 0, 0),
) -> Activity:
    """Derive activity from events.

    Args:
        events: sorted.
        config: its memory sends the beats of a burst without gaps.
        address: DRAM address of the first instruction.
    """
    before_end = events[: bisect_left(events, cycles, key=lambda event: event.cycle)]
    times = EventTimes(before_end, instructions, config, cycles)
    flows = _flows(times, tokens)
    sources = {(flow.target, flow.counter): flow for flow in flows}
    spans = {Unit.FETCH: fetch_spans(times, instructions, config, address)}
    nonempty = {c for c in Counter if tokens[c] + len(times.pushed[c]) > len(times.popped[c])}
    slices: list[InstructionSlice] = []
    for unit in WORKERS:
        busy = busy_intervals(unit, times, instructions, config)
        slices += _slices(unit, times, busy)
        spans[unit] = unit_spans(unit, times, instructions, config, busy, sources, nonempty)
    return Activity(
        cycles=cycles,
        dispatched=sum(map(len, times.order.values())),
        slices=sorted(slices, key=lambda s: (s.start, s.unit, s.instruction)),
        spans=spans,
        flows=flows,
        bursts=list(chain.from_iterable(times.bursts.values())),
        queue_levels={
            unit: _levels(
                [c for i in times.order[unit] if (c := times.dispatched[i]) is not None],
                [c for i in times.order[unit] if (c := times.started[i]) is not None],
                0,
            )
            for unit in WORKERS
        },
        token_levels={
            c: [(0, tokens[c]), *_levels(_cycles(times.pushed[c]), _cycles(times.popped[c]), tokens[c])]
            for c in Counter
        },
    )


def _flows(times: EventTimes, tokens: Sequence[int]) -> list[TokenFlow]:
    found = []
    for counter in Counter:
        pushed = times.pushed[counter]
        for (popped, target), (cycle, source) in zip(
            times.popped[counter][tokens[counter] :], pushed, strict=False
        ):
            found.append(TokenFlow(counter, source, target, cycle, popped))
    return sorted(found, key=lambda flow: (flow.popped, flow.target, flow.counter))


def _cycles(events: Sequence[tuple[int, int]]) -> list[int]:
    return [cycle for cycle, _ in events]


def _levels(
    increments: Sequence[int], decrements: Sequence[int], initial_level: int
) -> list[tuple[int, int]]:
    changes: dict[int, int] = {}
    for cycle in increments:
        changes[cycle] = changes.get(cycle, 0) + 1
    for cycle in decrements:
        changes[cycle] = changes.get(cycle, 0) - 1
    level, found = initial_level, []
    for cycle in sorted(changes):
        if changes[cycle]:
            level += changes[cycle]
            found.append((cycle, level))
    return found


def _slices(unit: Unit, times: EventTimes, busy: Sequence[BusyInterval]) -> list[InstructionSlice]:
    """Give each instruction the first free row."""
    extents = busy_extents(busy)
    free_from: list[int] = []
    found = []
    for index in times.order[unit]:
        start, dispatched, retired = times.started[index], times.dispatched[index], times.retired[index]
        if start is None or dispatched is None:
            continue
        stop = times.cycles if retired is None else retired + 1
        row = next((n for n, free in enumerate(free_from) if free <= start), len(free_from))
        free_from[row : row + 1] = [stop]
        work_start, work_stop = (min(cycle, stop) for cycle in extents.get(index, (stop, stop)))
        found.append(InstructionSlice(index, unit, dispatched, start, stop, work_start, work_stop, row))
    return found
