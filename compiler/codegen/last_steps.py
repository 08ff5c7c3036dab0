"""The last steps of a program, where passes follow sums: what belongs to a part of the tile comes together.

    LOAD  inputs of step 8          LOAD  inputs of step 8
    LOAD  weights, channels 0..3    LOAD  weights, channels 0, 1
    GEMM  channels 0..3             GEMM  channels 0, 1
    LOAD  inputs of step 9          LOAD  inputs of step 9
    LOAD  weights, channels 0..3    LOAD  weights, channels 0, 1
    GEMM  channels 0..3             GEMM  channels 0, 1
    ALU   channels 0, 1             ALU   channels 0, 1
    STORE channels 0, 1             STORE channels 0, 1
    ALU   channels 2, 3             LOAD  weights of step 8, channels 2, 3
    STORE channels 2, 3             ...

Passes have no LOADs to go on beside behind the last products; beside those of other parts they have. How many
steps are taken apart follows from the cycles that all of it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accel.compiler.codegen.clocks import Clocks, Span, Spans, cut
from accel.compiler.codegen.ending import Range, begin_of, cut_by
from accel.compiler.target.registry import Emitted
from accel.core.config import Config
from accel.core.isa import Gemm, Load

Part = tuple[int, Emitted]
"""What belongs to a part of the tile, and its number."""

_APART = (1, 2, 4)
"""So many steps are tried, besides none and all."""
_BEFORE = 32
"""Instructions before the last steps that it is reckoned with where these begin."""
_MICRO_OPS = 256
"""Of the parts of products, at most: they are loaded first of all."""


@dataclass(frozen=True)
class _Step:
    """LOADs, and products of what they bring.

    Attributes:
        begin: where it is in the program.
        loads: of it, as a whole.
        products: by parts of the tile.
    """

    begin: int
    loads: Sequence[Emitted]
    products: Sequence[Part]


def by_parts(
    emitted: Sequence[Emitted], choices: Sequence[tuple[Sequence[Part], Sequence[Range]]], config: Config
) -> list[Emitted]:
    """A program with passes and STOREs of its last tile behind it.

    Args:
        emitted: the program up to the last products.
        choices: what follows, by the number of the part of the tile that it belongs to, and the accumulators
            of each part; one or several ways to have parts.
        config: the machine.
    """
    spans = Spans(config)
    programs: list[list[Emitted]] = []
    begin = len(emitted)
    for finishing, ranges in choices:
        steps = _last_steps(emitted, ranges, spans)
        apart = sorted({0, *(n for n in _APART if n < len(steps)), len(steps)})
        programs += [_ordered(emitted, steps[len(steps) - n :], finishing, spans) for n in apart]
        begin = min([begin, *(step.begin for step in steps)])
    if len(programs) == 1:
        return programs[0]
    begin = max(0, begin - _BEFORE)
    return min(programs, key=lambda program: _cycles(program[begin:], config, spans))


def _last_steps(emitted: Sequence[Emitted], ranges: Sequence[Range], spans: Spans) -> list[_Step]:
    """Those that can be taken apart, in their order: each has buffers of its own."""
    found: list[_Step] = []
    filled: list[Span] = []
    micro_ops, end = 0, len(emitted)
    while True:
        products = begin_of(emitted, end, multiplies)
        begin = begin_of(emitted, products, lambda one: spans.filled(one) is not None)
        cuts = [cut_by(one, ranges, twice=True) for one in emitted[products:end]]
        micro_ops += sum(len(one.uops) for parts in cuts for _, one in parts)
        if begin == products or not cuts or not all(cuts) or micro_ops > _MICRO_OPS:
            return found
        loads = [spans.brought(one) for one in emitted[begin:products]]
        used = [span for one in emitted[products:end] for span in spans.read(one)]
        if any(_meet(a, b) for a in (*loads, *used) for b in filled) or _meet_one_another(loads):
            return found
        found.insert(0, _Step(begin, emitted[begin:products], [part for parts in cuts for part in parts]))
        filled += loads
        end = begin


def multiplies(one: Emitted) -> bool:
    """Whether it is a GEMM that adds products."""
    return isinstance(one.instruction, Gemm) and one.instruction.multiplies


def _meet(a: Span, b: Span) -> bool:
    return a.memory is b.memory and a.begin < b.end and b.begin < a.end


def _meet_one_another(spans: Sequence[Span]) -> bool:
    return any(_meet(a, b) for n, a in enumerate(spans) for b in spans[:n])


def _ordered(
    emitted: Sequence[Emitted], steps: Sequence[_Step], finishing: Sequence[Part], spans: Spans
) -> list[Emitted]:
    """The program with those steps by parts, and what follows."""
    begin = steps[0].begin if steps else len(emitted)
    products = [part for step in steps for part in step.products]
    every: list[Part] = []
    for step in steps:
        for one in step.loads:
            every += _loads_by_parts(one, products, spans)
        every += step.products
    every += finishing
    return [*emitted[:begin], *(one for _, one in sorted(every, key=lambda part: part[0]))]


def _loads_by_parts(one: Emitted, products: Sequence[Part], spans: Spans) -> list[Part]:
    """A LOAD in pieces, each with the first part of the tile that needs it; whole rows, if it has several."""
    load, brought = one.instruction, spans.brought(one)
    assert isinstance(load, Load)
    row = load.width if load.y_size > 1 else 1
    borders = np.zeros(1 + max(number for number, _ in products), dtype=np.int64)
    for number, product in products:
        for span in spans.read(product):
            if _meet(span, brought):
                end = min(span.end, brought.end) - brought.begin
                borders[number] = max(borders[number], -(-end // row) * row)
    borders[-1] = brought.end - brought.begin
    pieces: list[Part] = []
    rest, done = one, 0
    for number, border in enumerate(np.maximum.accumulate(borders).tolist()):
        if border > done:
            two = cut(rest, border - done)
            if len(two) < 2:
                return [*pieces, (number, rest)]
            pieces.append((number, two[0]))
            rest, done = two[1], border
    return pieces


def _cycles(program: Sequence[Emitted], config: Config, spans: Spans) -> float:
    """About how many it takes, from when its first instruction starts."""
    clocks = Clocks(config)
    for one in program:
        span = spans.filled(one)
        if span is None:
            clocks.other(one, spans)
        else:
            clocks.bring(span)
    return clocks.done
