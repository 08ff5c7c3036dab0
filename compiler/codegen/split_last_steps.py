"""Compute the last tile of a program piece by piece, so that its ALU passes overlap LOADs.

For a last tile of four channels whose last step is split::

    before                            after
    LOAD  inputs of step 9            LOAD  inputs of step 9
    LOAD  weights, channels 0..3      LOAD  weights, channels 0, 1
    GEMM  channels 0..3               GEMM  channels 0, 1
    ALU   channels 0..3               ALU   channels 0, 1
    STORE channels 0..3               STORE channels 0, 1
                                      LOAD  weights, channels 2, 3
                                      GEMM  channels 2, 3
                                      ALU   channels 2, 3
                                      STORE channels 2, 3

The load unit loads the weights of channels 2 and 3 during the passes over channels 0 and 1.

It tries to split none, 1, 2, 4 or all last steps, and chooses the fastest order by ``Clocks``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from accel.compiler.codegen.epilogue_pieces import cut_epilogue, row_lengths
from accel.compiler.codegen.instruction_cutting import (
    AccumulatorRange,
    NumberedPiece,
    cut_by_accumulators,
    cut_load,
    multiplies,
    start_of_run,
)
from accel.compiler.codegen.reorder_pass import EmittedProgram, ReorderPass
from accel.compiler.codegen.scratchpad_spans import Span, Spans
from accel.compiler.codegen.unit_clocks import Clocks
from accel.compiler.target.emitter_registry import Emitted
from accel.core.config import Config
from accel.core.isa import Alu, Load, Store

STEP_COUNTS = (1, 2, 4)
MAX_MICRO_OPS = 256
"""Limit for all pieces, because the program loads their micro-ops before its first product."""
LAST_PRODUCTS_WINDOW = 8
"""Instructions before the last epilogue with products whose row lengths are candidates for the size of
pieces."""
WARM_UP_INSTRUCTIONS = 32
"""Instructions before the split steps in the comparison of orders, so that units are busy."""


class SplitLastSteps(ReorderPass, frozen=True):
    name = "split-last-steps"
    reason = "The last tile's ALU passes overlap its own LOADs and STOREs, because no next tile follows."

    def run(self, program: EmittedProgram) -> EmittedProgram:
        emitted = program.emitted
        end = start_of_run(emitted, len(emitted), lambda one: isinstance(one.instruction, Store))
        begin = start_of_run(emitted, end, lambda one: isinstance(one.instruction, Alu))
        passes, stores, before = emitted[begin:end], emitted[end:], emitted[:begin]
        last = [one for one in before[-LAST_PRODUCTS_WINDOW:] if multiplies(one)]
        cuts = [cut_epilogue(passes, stores, unit) for unit in dict.fromkeys([1, *row_lengths(last)])]
        choices = [cut for cut in cuts if cut is not None]
        return program.with_order(_fastest(before, choices, program.config)) if choices else program


class _Step(Struct, frozen=True):
    """LOADs, and the products that need them. ``begin`` is the first LOAD's position in the program."""

    begin: int
    loads: Sequence[Emitted]
    products: Sequence[NumberedPiece]


def _fastest(
    before: Sequence[Emitted],
    choices: Sequence[tuple[Sequence[NumberedPiece], Sequence[AccumulatorRange]]],
    config: Config,
) -> list[Emitted]:
    """Return the fastest of all choices of pieces and numbers of split steps.

    ``before`` lacks the last epilogue. A choice has the epilogue's pieces and their accumulators.
    """
    spans = Spans(config)
    programs: list[list[Emitted]] = []
    begin = len(before)
    for epilogue, ranges in choices:
        steps = _last_steps(before, ranges, spans)
        counts = sorted({0, *(n for n in STEP_COUNTS if n < len(steps)), len(steps)})
        programs += [_split(before, steps[len(steps) - n :], epilogue, spans) for n in counts]
        begin = min([begin, *(step.begin for step in steps)])
    if len(programs) == 1:
        return programs[0]
    begin = max(0, begin - WARM_UP_INSTRUCTIONS)
    return min(programs, key=lambda program: _cycles(program[begin:], config, spans))


def _last_steps(emitted: Sequence[Emitted], ranges: Sequence[AccumulatorRange], spans: Spans) -> list[_Step]:
    """Return the last steps that can be split, in order.

    No two of them use the same elements, so LOADs of one may move past products of another.
    """
    found: list[_Step] = []
    filled: list[Span] = []
    micro_ops, end = 0, len(emitted)
    while True:
        products = start_of_run(emitted, end, multiplies)
        begin = start_of_run(emitted, products, lambda one: spans.loaded(one) is not None)
        cuts = [cut_by_accumulators(one, ranges, twice=True) for one in emitted[products:end]]
        micro_ops += sum(len(one.uops) for pieces in cuts for _, one in pieces)
        if begin == products or not cuts or not all(cuts) or micro_ops > MAX_MICRO_OPS:
            return found
        loads = [spans.load_span(one) for one in emitted[begin:products]]
        used = [span for one in emitted[products:end] for span in spans.read(one)]
        if any(a.overlaps(b) for a in (*loads, *used) for b in filled) or _any_overlap(loads):
            return found
        pieces = [piece for cut in cuts for piece in cut]
        found.insert(0, _Step(begin, emitted[begin:products], pieces))
        filled += loads
        end = begin


def _any_overlap(spans: Sequence[Span]) -> bool:
    return any(a.overlaps(b) for n, a in enumerate(spans) for b in spans[:n])


def _split(
    before: Sequence[Emitted], steps: Sequence[_Step], epilogue: Sequence[NumberedPiece], spans: Spans
) -> list[Emitted]:
    begin = steps[0].begin if steps else len(before)
    products = [piece for step in steps for piece in step.products]
    every: list[NumberedPiece] = []
    for step in steps:
        for one in step.loads:
            every += _cut_load_by_pieces(one, products, spans)
        every += step.products
    every += epilogue
    return [*before[:begin], *(one for _, one in sorted(every, key=lambda piece: piece[0]))]


def _cut_load_by_pieces(one: Emitted, products: Sequence[NumberedPiece], spans: Spans) -> list[NumberedPiece]:
    """Cut a LOAD between rows, and number each piece by the first tile piece that reads it."""
    load, filled = one.instruction, spans.load_span(one)
    assert isinstance(load, Load)
    row = load.width if load.y_size > 1 else 1
    ends = np.zeros(1 + max(number for number, _ in products), dtype=np.int64)
    for number, product in products:
        for span in spans.read(product):
            if span.overlaps(filled):
                end = min(span.end, filled.end) - filled.begin
                ends[number] = max(ends[number], -(-end // row) * row)
    ends[-1] = filled.end - filled.begin
    pieces: list[NumberedPiece] = []
    rest, done = one, 0
    for number, end in enumerate(np.maximum.accumulate(ends).tolist()):
        if end > done:
            two = cut_load(rest, end - done)
            if len(two) < 2:
                return [*pieces, (number, rest)]
            pieces.append((number, two[0]))
            rest, done = two[1], end
    return pieces


def _cycles(emitted: Sequence[Emitted], config: Config, spans: Spans) -> float:
    clocks = Clocks(config)
    for one in emitted:
        span = spans.loaded(one)
        if span is None:
            clocks.advance(one, spans)
        else:
            clocks.advance_load(span)
    return clocks.end
