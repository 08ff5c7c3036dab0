"""LOADs of what scratchpads keep come where the load unit would otherwise wait.

What several tiles share is asked for with the first of them, and often takes longer than that one computes.
Beside the tiles before, the load unit waits for buffers most of the time:

    load     A0 B0      A1  ...  A2  ...    A3 B1           A4
    compute        0            1       2              3        4

    load     A0 B0      A1  B1   A2  B1     A3   A4
    compute        0            1       2       3       4

So such LOADs move up to where another one waits for what is computed last out of its buffer, if what theirs
replaces is not needed any more. Where that is follows from the cycles that products, LOADs and STOREs take.
Only the order of LOADs changes, and all that a LOAD fills is read as before.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from accel.compiler.codegen.clocks import Clocks, Span, Spans, cut
from accel.compiler.target.registry import Emitted
from accel.core.config import Config
from accel.core.isa import Set, Store, Unit
from accel.core.memories import Scratchpad


class _Wait(NamedTuple):
    """A LOAD that may come earlier.

    Attributes:
        place: in the program.
        behind: a place that it must come after.
    """

    place: int
    behind: int


def loads_ahead(emitted: Sequence[Emitted], config: Config, kept: Collection[int]) -> list[Emitted]:
    """The same program with LOADs, or their first rows, in front of others that wait.

    Args:
        emitted: the program.
        config: the machine.
        kept: numbers of the statements whose LOADs may be moved.
    """
    spans = Spans(config)
    waits = _waits(emitted, kept, spans) if kept else deque()
    if not waits:
        return list(emitted)
    clocks, fetch = Clocks(config), _Fetch(config)
    early: dict[int, list[Emitted]] = {}
    left: dict[int, list[Emitted]] = {}
    before = -1
    for place, one in enumerate(emitted):
        span = spans.filled(one)
        if span is None:
            if one.instruction.unit is Unit.COMPUTE:
                fetch.computes(place, clocks.computed)
            clocks.other(one, spans)
            continue
        while waits and waits[0].place <= place:
            waits.popleft()
        rest = left.pop(place, [one])
        free = max(clocks.free(span), fetch.told()) if rest else 0.0
        while waits and waits[0].behind < place and clocks.load < free:
            ahead = waits[0].place
            whole, *others = left.get(ahead, [emitted[ahead]])
            parts = cut(whole, clocks.elements(spans.brought(whole), free))
            if not parts:
                break
            left[ahead] = [*parts[1:], *others]
            before = max(before, waits[0].behind + 1, min(place, fetch.place(clocks.load)))
            early.setdefault(before, []).append(parts[0])
            if not left[ahead]:
                waits.popleft()
            clocks.bring(spans.brought(parts[0]))
        for part in rest:
            clocks.bring(spans.brought(part))
        left[place] = rest
        before = place
    return [
        part for place, one in enumerate(emitted) for part in (*early.get(place, ()), *left.get(place, [one]))
    ]


def _waits(emitted: Sequence[Emitted], kept: Collection[int], spans: Spans) -> deque[_Wait]:
    """LOADs that may come earlier, in their order. The first ones, and those of what the program itself
    writes to DRAM, stay where they are."""
    stored = {one.part for one in emitted if isinstance(one.instruction, Store)}
    last = {memory: np.full(depth, -1) for memory, depth in spans.depths.items()}
    found: deque[_Wait] = deque()
    fixed, begun = -1, False
    for place, one in enumerate(emitted):
        span = spans.filled(one)
        if span is not None:
            if begun and one.statement in kept and one.part not in stored:
                found.append(_Wait(place, max(fixed, _latest(last, span))))
            last[span.memory][span.begin : span.end] = place
        elif isinstance(one.instruction, Set) and one.instruction.unit is Unit.LOAD:
            fixed = place
        else:
            for memory, begin, end in spans.read(one):
                last[memory][begin:end] = place
                begun = True
    return found


def _latest(last: Mapping[Scratchpad, np.ndarray], span: Span) -> int:
    return int(last[span.memory][span.begin : span.end].max(initial=-1))


class _Fetch:
    """About when instructions are handed out: not before there is room in the compute unit's queue for all
    those of its own that come first."""

    def __init__(self, config: Config) -> None:
        self._depth = config.compute_queue
        self._places: list[int] = []
        self._starts: list[float] = []

    def computes(self, place: int, start: float) -> None:
        """An instruction of the compute unit, and when it starts."""
        self._places.append(place)
        self._starts.append(start)

    def told(self) -> float:
        """When what comes next is handed out."""
        return self._starts[-self._depth] if len(self._starts) >= self._depth else 0.0

    def place(self, cycle: float) -> int:
        """The last place of what is handed out by then, among those so far."""
        started = bisect_right(self._starts, cycle) + self._depth
        return self._places[started] if started < len(self._places) else sys.maxsize
