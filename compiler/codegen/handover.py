"""How a tile hands its accumulators over to the next one: in parts, each as soon as it is stored.

    ALU   16 rows               ALU   rows 0, 1
    STORE 16 rows               STORE rows 0, 1     ALU   rows 2, 3
    reset 16 rows               ...                 ...
    GEMM  16 rows               reset rows 0, 1     STORE rows 14, 15
                                GEMM  rows 0, 1
                                reset rows 2, 3
                                ...

Only tiles whose accumulators are taken again at once do so, and the last one of a program, behind which there
is nothing to store its results beside. This is for passes over the accumulators; where the store unit
finishes sums, see :mod:`accel.compiler.codegen.ending`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from accel.compiler.codegen.ending import Range, cut_by, range_of_store
from accel.compiler.target.parts import parts_of
from accel.compiler.target.registry import Emitted
from accel.core.access import COLUMNS
from accel.core.isa import Alu, Gemm, Store, Unit

_MICRO_OPS = 16
"""Of products that are cut up, at most."""


def handed_over(emitted: Sequence[Emitted]) -> list[Emitted]:
    """The same program with passes, STOREs, resets and products of other sums in another order."""
    result: list[Emitted] = []
    at = 0
    while at < len(emitted):
        if not _is_store(emitted[at]):
            result.append(emitted[at])
            at += 1
            continue
        begin = len(result)
        while begin and isinstance(result[begin - 1].instruction, Alu):
            begin -= 1
        passes, stores = result[begin:], emitted[at : _behind(emitted, at, _is_store)]
        at += len(stores)
        ahead = _behind(emitted, at, _is_load)
        resets = emitted[ahead : _behind(emitted, ahead, _resets)]
        found = _parts(passes, stores, resets, last=ahead == len(emitted))
        if found is None:
            result += stores
            continue
        parts, ranges = found
        begun = ahead + len(resets)
        product = _behind(emitted, begun, _is_load) if resets else begun
        result[begin:] = [*emitted[at:ahead], *emitted[begun:product], *parts]
        behind = product + 1 if product < len(emitted) and _cuts_well(emitted[product]) else product
        ordered = _in_order([*resets, *emitted[product:behind]], ranges) if resets else []
        if ordered is None:
            behind, ordered = product, _in_order(resets, ranges) or [*resets]
        result += ordered
        at = behind
    return result


def _behind(emitted: Sequence[Emitted], at: int, belongs: Callable[[Emitted], bool]) -> int:
    """Where those end that belong together, one after the other from ``at`` on."""
    while at < len(emitted) and belongs(emitted[at]):
        at += 1
    return at


def _is_store(one: Emitted) -> bool:
    return isinstance(one.instruction, Store)


def _is_load(one: Emitted) -> bool:
    return one.instruction.unit is Unit.LOAD


def _resets(one: Emitted) -> bool:
    return isinstance(one.instruction, Alu) or (isinstance(one.instruction, Gemm) and one.instruction.reset)


def _cuts_well(one: Emitted) -> bool:
    """Whether it multiplies, and its parts do not need many micro-ops of their own."""
    return isinstance(one.instruction, Gemm) and one.instruction.multiplies and len(one.uops) <= _MICRO_OPS


def _parts(
    passes: Sequence[Emitted], stores: Sequence[Emitted], resets: Sequence[Emitted], *, last: bool
) -> tuple[list[Emitted], list[Range]] | None:
    """Passes and STOREs of a tile by parts, and those parts' accumulators; None if what follows takes
    others, or if they cannot be cut."""
    pieces = [piece for one in stores for piece in _pieces(one, stores)]
    ranges = [range_of_store(one) for one in pieces]
    begin, end = min(a for a, _ in ranges), max(b for _, b in ranges)
    again = any(begin <= _first(one) < end for one in resets)
    if len(pieces) < 2 or not (again or last):
        return None
    numbered: list[tuple[int, Emitted]] = []
    for one in passes:
        cut = cut_by(one, ranges, twice=True)
        if not cut or not all(_stays(piece, ranges[number], (begin, end)) for number, piece in cut):
            return None
        numbered += cut
    numbered += enumerate(pieces)
    return [one for _, one in sorted(numbered, key=lambda pair: pair[0])], ranges


def _stays(one: Emitted, own: Range, every: Range) -> bool:
    """Whether a pass of one part writes accumulators of that part alone, and reads no other part's: in one
    order with those it may be moved, whatever order they come in."""
    instruction = one.instruction
    assert isinstance(instruction, Alu)
    written = _span(one, "dst")
    read = written if instruction.use_imm else _span(one, "src")
    apart = read[1] <= every[0] or every[1] <= read[0]
    return _within(written, own) and (apart or _within(read, own))


def _within(inner: Range, outer: Range) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _span(one: Emitted, operand: str) -> Range:
    """Between which accumulators an operand's lie: the first one, and the one behind the last."""
    loops = one.instruction
    assert isinstance(loops, Alu)
    factors = {
        "dst": (loops.dst_factor_out, loops.dst_factor_in),
        "src": (loops.src_factor_out, loops.src_factor_in),
    }
    column = one.uops[:, COLUMNS[operand]]
    ends = [
        (count - 1) * step
        for count, step in zip((loops.iter_out, loops.iter_in), factors[operand], strict=True)
    ]
    return int(column.min()), int(column.max()) + sum(ends) + 1


def _first(one: Emitted) -> int:
    """The first accumulator that an instruction writes."""
    return int(one.uops[:, COLUMNS["dst"]].min())


def _in_order(instructions: Sequence[Emitted], ranges: Sequence[Range]) -> list[Emitted] | None:
    """Instructions by the part that their accumulators are in; None if one cannot be cut that way."""
    every = min(begin for begin, _ in ranges), max(end for _, end in ranges)
    numbered: list[tuple[int, Emitted]] = []
    for one in instructions:
        cut = cut_by(one, ranges, twice=True)
        if not cut or len(cut) > 2 * len(ranges):
            return None
        if isinstance(one.instruction, Alu) and not all(_stays(piece, ranges[n], every) for n, piece in cut):
            return None
        numbered += cut
    return [one for _, one in sorted(numbered, key=lambda pair: pair[0])]


def _pieces(one: Emitted, stores: Sequence[Emitted]) -> list[Emitted]:
    """A STORE in parts."""
    store = one.instruction
    assert isinstance(store, Store)
    elements = sum(s.instruction.sram_elements for s in stores if isinstance(s.instruction, Store))
    mine = max(1, int(parts_of(elements)) // len(stores))
    height, across = max(1, -(-store.y_size // mine)), max(1, mine // max(1, store.y_size))
    width = -(-store.x_size // across)
    return [
        replace(
            one,
            instruction=replace(
                store,
                sram_base=store.sram_base + row * store.x_size + column,
                dram_base=store.dram_base + row * store.x_stride + column,
                y_size=min(height, store.y_size - row),
                x_size=min(width, store.x_size - column),
            ),
        )
        for row in range(0, store.y_size, height)
        for column in range(0, store.x_size, width)
    ]
