"""About when units are free, by what is emitted: what LOADs bring, computations read, and STOREs wait for.

This is for the order of instructions, which is settled before there are tokens. Plans are told of by
:mod:`accel.compiler.plans.clocks`, programs as they run by :mod:`accel.sim.timing`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from accel.compiler.target.registry import Emitted
from accel.core.access import COLUMNS
from accel.core.config import Config
from accel.core.isa import Load, Loops, Store
from accel.core.memories import INP, WGT, Scratchpad
from accel.core.timing_rules import REQUEST_STARTUP, WRITE_DELAY, compute_depth, store_depth

_LEAST = 64
"""Cycles of a LOAD that is worth it."""


class Span(NamedTuple):
    """Elements of a scratchpad: the first one, and the one behind the last."""

    memory: Scratchpad
    begin: int
    end: int


class Spans:
    """What instructions read and fill of the scratchpads that the load unit brings operands to."""

    def __init__(self, config: Config) -> None:
        self.depths = {memory: memory.depth(config) for memory in (INP, WGT)}
        self._of_loops: dict[int, tuple[Emitted, list[Span], list[Span]]] = {}
        """By the id of what was emitted, what it reads of them, and which accumulators it writes."""

    def filled(self, one: Emitted) -> Span | None:
        """What a LOAD of operands fills."""
        load = one.instruction
        if not isinstance(load, Load) or load.route is None or load.route.scratchpad not in self.depths:
            return None
        return Span(load.route.scratchpad, load.sram_base, load.sram_base + load.sram_elements)

    def brought(self, one: Emitted) -> Span:
        """The same of what is known to be one."""
        span = self.filled(one)
        assert span is not None
        return span

    def read(self, one: Emitted) -> list[Span]:
        """What a computation reads, and what lies between."""
        return self._known(one)[1]

    def written(self, one: Emitted) -> list[Span]:
        """Accumulators that a computation writes, and what lies between."""
        return self._known(one)[2]

    def _known(self, one: Emitted) -> tuple[Emitted, list[Span], list[Span]]:
        found = self._of_loops.get(id(one))
        if found is None:
            every = [*self._of(one, one.instruction)] if isinstance(one.instruction, Loops) else []
            read = [span for span in every if span.memory in self.depths]
            found = self._of_loops[id(one)] = one, read, [span for span in every if span not in read]
        return found

    def _of(self, one: Emitted, loops: Loops) -> Iterator[Span]:
        for operand in loops.OPERANDS:
            reads = operand.memory in self.depths and operand.used_by(loops)
            if not (reads or operand.writes) or not len(one.uops):
                continue
            if operand.tapped_by(loops):
                yield Span(operand.memory, 0, self.depths[operand.memory])
                continue
            column = one.uops[:, COLUMNS[operand.name]]
            out, inner = (getattr(loops, name) for name in operand.factors)
            reach = (loops.iter_out - 1) * out + (loops.iter_in - 1) * inner
            yield Span(operand.memory, int(column.min()), int(column.max()) + reach + 1)


class Clocks:
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

    @property
    def done(self) -> float:
        """When the last of it is."""
        return max(self.load, self.computed, self._stored)

    def beats(self, span: Span) -> float:
        """What a LOAD takes."""
        return (span.end - span.begin) * span.memory.element_bytes(self.config) / self.config.bus_bytes

    def elements(self, span: Span, until: float) -> int:
        """About how many a LOAD can bring until then, if these are not too few."""
        pace = span.memory.element_bytes(self.config) / self.config.bus_bytes
        cycles = until - max(self.load, self.free(span))
        return 0 if cycles < _LEAST / 2 else round(max(cycles, _LEAST) / pace + 0.5)

    def free(self, span: Span) -> float:
        """When what is computed out of it is done."""
        return float(self._read[span.memory][span.begin : span.end].max(initial=0.0))

    def bring(self, span: Span) -> None:
        """A LOAD."""
        self.load = max(self.load, self.free(span)) + self.beats(span)
        there = self.load + REQUEST_STARTUP + self.config.read_latency + WRITE_DELAY
        self._ready[span.memory][span.begin : span.end] = there

    def other(self, one: Emitted, spans: Spans) -> None:
        """A computation, a STORE, or something that takes no time here."""
        config, instruction = self.config, one.instruction
        if isinstance(instruction, Loops):
            self._compute(one, instruction, spans)
        elif isinstance(instruction, Store):
            begin, end = instruction.sram_base, instruction.sram_base + instruction.sram_elements
            start = max(self._stored, self.computed + compute_depth(config) + store_depth(config))
            self._stored = start + (end - begin) * config.out_element_bytes / config.bus_bytes
            self._kept[begin:end] = self._stored + config.write_latency

    def _compute(self, one: Emitted, loops: Loops, spans: Spans) -> None:
        read = spans.read(one)
        for _, begin, end in spans.written(one):
            self.computed = max(self.computed, float(self._kept[begin:end].max(initial=0.0)))
        for memory, begin, end in read:
            self.computed = max(self.computed, float(self._ready[memory][begin:end].max(initial=0.0)))
        self.computed += loops.iter_out * loops.iter_in * len(one.uops)
        for memory, begin, end in read:
            self._read[memory][begin:end] = self.computed + compute_depth(self.config)


def cut(one: Emitted, elements: int) -> list[Emitted]:
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
