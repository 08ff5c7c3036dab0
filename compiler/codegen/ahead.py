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
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from accel.compiler.target.registry import Emitted
from accel.core.access import COLUMNS
from accel.core.config import Config
from accel.core.isa import Load, Loops, Set, Store, Unit
from accel.core.memories import INP, WGT, Scratchpad
from accel.core.timing_rules import REQUEST_STARTUP, WRITE_DELAY, compute_depth, store_depth

_LEAST = 64
"""Cycles of a LOAD that is worth it."""


class _Span(NamedTuple):
    """Elements of a scratchpad: the first one, and the one behind the last."""

    memory: Scratchpad
    begin: int
    end: int


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
    spans = _Spans(config)
    waits = _waits(emitted, kept, spans) if kept else deque()
    if not waits:
        return list(emitted)
    clocks, fetch = _Clocks(config), _Fetch(config)
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
            cut = _cut(whole, clocks.elements(spans.brought(whole), free))
            if not cut:
                break
            left[ahead] = [*cut[1:], *others]
            before = max(before, waits[0].behind + 1, min(place, fetch.place(clocks.load)))
            early.setdefault(before, []).append(cut[0])
            if not left[ahead]:
                waits.popleft()
            clocks.bring(spans.brought(cut[0]))
        for part in rest:
            clocks.bring(spans.brought(part))
        left[place] = rest
        before = place
    return [
        part for place, one in enumerate(emitted) for part in (*early.get(place, ()), *left.get(place, [one]))
    ]


def _waits(emitted: Sequence[Emitted], kept: Collection[int], spans: _Spans) -> deque[_Wait]:
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


def _cut(one: Emitted, elements: int) -> list[Emitted]:
    """The first rows of a LOAD, or the first elements of its first row, about so many elements, and what is
    left of it; nothing if that cannot be."""
    load = one.instruction
    assert isinstance(load, Load)
    if elements >= load.sram_elements:
        return [one]
    if not elements or load.width != load.x_size or load.height != load.y_size:
        return []
    rows = elements // load.x_size
    if rows:
        return [_part(one, load, (0, rows)), _part(one, load, (rows, load.y_size))]
    row = [_part(one, load, (0, 1), part) for part in ((0, elements), (elements, load.x_size))]
    return row if load.y_size == 1 else [*row, _part(one, load, (1, load.y_size))]


def _part(one: Emitted, load: Load, rows: tuple[int, int], columns: tuple[int, int] | None = None) -> Emitted:
    """Some rows of a LOAD without pads, or some columns of one row."""
    (top, bottom), (begin, end) = rows, columns or (0, load.x_size)
    part = replace(
        load,
        sram_base=load.sram_base + top * load.x_size + begin,
        dram_base=load.dram_base + top * load.x_stride + begin,
        y_size=bottom - top,
        x_size=end - begin,
    )
    return replace(one, instruction=part)


def _latest(last: Mapping[Scratchpad, np.ndarray], span: _Span) -> int:
    return int(last[span.memory][span.begin : span.end].max(initial=-1))


class _Spans:
    """What instructions read and fill of the scratchpads that the load unit brings operands to."""

    def __init__(self, config: Config) -> None:
        self.depths = {memory: memory.depth(config) for memory in (INP, WGT)}
        self._of_loops: dict[int, tuple[Emitted, list[_Span], list[_Span]]] = {}
        """By the id of what was emitted, what it reads of them, and which accumulators it writes."""

    def filled(self, one: Emitted) -> _Span | None:
        """What a LOAD of operands fills."""
        load = one.instruction
        if not isinstance(load, Load) or load.route is None or load.route.scratchpad not in self.depths:
            return None
        return _Span(load.route.scratchpad, load.sram_base, load.sram_base + load.sram_elements)

    def brought(self, one: Emitted) -> _Span:
        """The same of what is known to be one."""
        span = self.filled(one)
        assert span is not None
        return span

    def read(self, one: Emitted) -> list[_Span]:
        """What a computation reads, and what lies between."""
        return self._known(one)[1]

    def written(self, one: Emitted) -> list[_Span]:
        """Accumulators that a computation writes, and what lies between."""
        return self._known(one)[2]

    def _known(self, one: Emitted) -> tuple[Emitted, list[_Span], list[_Span]]:
        found = self._of_loops.get(id(one))
        if found is None:
            every = [*self._of(one, one.instruction)] if isinstance(one.instruction, Loops) else []
            read = [span for span in every if span.memory in self.depths]
            found = self._of_loops[id(one)] = one, read, [span for span in every if span not in read]
        return found

    def _of(self, one: Emitted, loops: Loops) -> Iterator[_Span]:
        for operand in loops.OPERANDS:
            reads = operand.memory in self.depths and operand.used_by(loops)
            if not (reads or operand.writes) or not len(one.uops):
                continue
            if operand.tapped_by(loops):
                yield _Span(operand.memory, 0, self.depths[operand.memory])
                continue
            column = one.uops[:, COLUMNS[operand.name]]
            out, inner = (getattr(loops, name) for name in operand.factors)
            reach = (loops.iter_out - 1) * out + (loops.iter_in - 1) * inner
            yield _Span(operand.memory, int(column.min()), int(column.max()) + reach + 1)


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


class _Clocks:
    """About when units are free, in cycles.

    Attributes:
        load: when the load unit is.
        computed: when the compute unit is.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.load = self.computed = self._stored = 0.0
        self._read, self._ready = ({m: np.zeros(m.depth(config)) for m in (INP, WGT)} for _ in range(2))
        self._kept = np.zeros(config.acc_depth)
        """When the last STORE of each accumulator is done."""

    def beats(self, span: _Span) -> float:
        """What a LOAD takes."""
        return (span.end - span.begin) * span.memory.element_bytes(self.config) / self.config.bus_bytes

    def elements(self, span: _Span, until: float) -> int:
        """About how many a LOAD can bring until then, if these are not too few."""
        pace = span.memory.element_bytes(self.config) / self.config.bus_bytes
        cycles = until - max(self.load, self.free(span))
        return 0 if cycles < _LEAST / 2 else round(max(cycles, _LEAST) / pace + 0.5)

    def free(self, span: _Span) -> float:
        """When what is computed out of it is done."""
        return float(self._read[span.memory][span.begin : span.end].max(initial=0.0))

    def bring(self, span: _Span) -> None:
        """A LOAD."""
        self.load = max(self.load, self.free(span)) + self.beats(span)
        there = self.load + REQUEST_STARTUP + self.config.read_latency + WRITE_DELAY
        self._ready[span.memory][span.begin : span.end] = there

    def other(self, one: Emitted, spans: _Spans) -> None:
        """A computation, a STORE, or something that takes no time here."""
        config, instruction = self.config, one.instruction
        if isinstance(instruction, Loops):
            self._compute(one, instruction, spans)
        elif isinstance(instruction, Store):
            begin, end = instruction.sram_base, instruction.sram_base + instruction.sram_elements
            start = max(self._stored, self.computed + compute_depth(config) + store_depth(config))
            self._stored = start + (end - begin) * config.out_element_bytes / config.bus_bytes
            self._kept[begin:end] = self._stored + config.write_latency

    def _compute(self, one: Emitted, loops: Loops, spans: _Spans) -> None:
        read = spans.read(one)
        for _, begin, end in spans.written(one):
            self.computed = max(self.computed, float(self._kept[begin:end].max(initial=0.0)))
        for memory, begin, end in read:
            self.computed = max(self.computed, float(self._ready[memory][begin:end].max(initial=0.0)))
        self.computed += loops.iter_out * loops.iter_in * len(one.uops)
        for memory, begin, end in read:
            self._read[memory][begin:end] = self.computed + compute_depth(self.config)
