"""A run, unit by unit, from its events, which simulator and hardware report alike."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import chain

from accel.core.config import Config
from accel.core.events import Event
from accel.core.isa import Instruction, Unit
from accel.core.token_rules import WORKERS, Counter
from accel.views.stalls import fetch_spans, unit_spans
from accel.views.states import Activity, Flow, Slice
from accel.views.times import Move, Times, extents, moves_of


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
        events: of the run, sorted; what comes after its last cycle is not looked at.
        instructions: the program.
        config: the machine; of the bus it is assumed that the beats of a burst follow each other.
        address: of the first instruction in DRAM.
        cycles: length of the run.
        tokens: the counters at the start.
    """
    before = events[: bisect_left(events, cycles, key=lambda event: event.cycle)]
    times = Times(before, instructions, config, cycles)
    flows = _flows(times, tokens)
    sources = {(flow.target, flow.counter): flow for flow in flows}
    spans = {Unit.FETCH: fetch_spans(times, instructions, config, address)}
    spare = {c for c in Counter if tokens[c] + len(times.pushed[c]) > len(times.popped[c])}
    slices: list[Slice] = []
    for unit in WORKERS:
        moves = moves_of(unit, times, instructions, config)
        slices += _slices(unit, times, moves)
        spans[unit] = unit_spans(unit, times, instructions, config, moves, sources, spare)
    return Activity(
        cycles=cycles,
        handed=sum(map(len, times.order.values())),
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


def _flows(times: Times, tokens: Sequence[int]) -> list[Flow]:
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


def _slices(unit: Unit, times: Times, moves: Sequence[Move]) -> list[Slice]:
    moved = extents(moves)
    rows: list[int] = []
    found = []
    for index in times.order[unit]:
        start, handed, retire = times.start[index], times.handed[index], times.retire[index]
        if start is None or handed is None:
            continue
        stop = times.cycles if retire is None else retire + 1
        row = next((n for n, free in enumerate(rows) if free <= start), len(rows))
        rows[row : row + 1] = [stop]
        begin, end = (min(cycle, stop) for cycle in moved.get(index, (stop, stop)))
        found.append(Slice(index, unit, handed, start, stop, begin, end, row))
    return found
