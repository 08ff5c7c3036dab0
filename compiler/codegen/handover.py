"""How a tile hands its accumulators over to the next one: in parts, each as soon as it is stored.

    ALU   16 rows               ALU   rows 0, 1
    STORE 16 rows               STORE rows 0, 1     ALU   rows 2, 3
    reset 16 rows               ...                 ...
    GEMM  16 rows               reset rows 0, 1     STORE rows 14, 15
                                GEMM  rows 0, 1
                                reset rows 2, 3
                                ...

Only tiles whose accumulators are taken again at once do so, and the last one of a program, behind which there
is nothing to store its results beside: see :mod:`accel.compiler.codegen.last_steps`. This is for passes over
the accumulators; where the store unit finishes sums, see :mod:`accel.compiler.codegen.ending`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from accel.compiler.codegen.ending import Range, cut_by, range_of_store, span_of
from accel.compiler.codegen.last_steps import Part, by_parts, multiplies
from accel.compiler.target.parts import parts_of
from accel.compiler.target.registry import Emitted
from accel.core.access import COLUMNS
from accel.core.config import Config
from accel.core.isa import Alu, Gemm, Loops, Store, Unit

_LATEST = 8
"""Instructions among which products are looked for whose rows parts of the last tile may consist of."""
_MICRO_OPS = 64
"""Of all parts of products, at most, unless they are those of the products as a whole."""


def handed_over(emitted: Sequence[Emitted], config: Config) -> list[Emitted]:
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
        if at == len(emitted):
            return _finished(result[:begin], passes, stores, config)
        ahead = _behind(emitted, at, _is_load)
        resets = emitted[ahead : _behind(emitted, ahead, _resets)]
        begun = ahead + len(resets)
        product = _behind(emitted, begun, _is_load) if resets else begun
        behind = product + 1 if product < len(emitted) and multiplies(emitted[product]) else product
        found = _cut_best(passes, stores, resets, emitted[product:behind] if resets else [])
        if found is None:
            result += stores
            continue
        parts, ordered, whole = found
        result[begin:] = [*emitted[at:ahead], *emitted[begun:product], *parts, *ordered]
        at = product if whole or not resets else behind
    return result


def _finished(
    emitted: Sequence[Emitted], passes: Sequence[Emitted], stores: Sequence[Emitted], config: Config
) -> list[Emitted]:
    """The program whose last tile has these passes and STOREs."""
    units = dict.fromkeys([1, *_rows_of([one for one in emitted[-_LATEST:] if multiplies(one)])])
    choices = [found for unit in units for found in [_parts(passes, stores, unit)] if found is not None]
    return by_parts(emitted, choices, config) if choices else [*emitted, *passes, *stores]


def _cut_best(
    passes: Sequence[Emitted],
    stores: Sequence[Emitted],
    resets: Sequence[Emitted],
    products: Sequence[Emitted],
) -> tuple[list[Emitted], list[Emitted], bool] | None:
    """Passes and STOREs of a tile in parts, and resets and products of the next one; whether the products are
    left out, as no parts are theirs; None if what follows takes other accumulators, or nothing can be cut.

    Parts end where rows of the next tile's accumulators do, if they cannot be cut anywhere else.
    """
    best = None
    for unit in dict.fromkeys([1, *_rows_of([*resets, *products])]):
        found = _parts(passes, stores, unit)
        if found is None or not _taken_again(resets, found[1]):
            continue
        parts, ranges = [one for _, one in sorted(found[0], key=lambda part: part[0])], found[1]
        ordered = _in_order([*resets, *products], ranges)
        if ordered is not None and _micro_ops(ordered) <= max(_MICRO_OPS, _micro_ops(products)):
            return parts, ordered, False
        if best is None or best[1] is None:
            best = parts, _in_order(resets, ranges)
    return None if best is None else (best[0], best[1] or [*resets], True)


def _micro_ops(emitted: Sequence[Emitted]) -> int:
    """Of products."""
    return sum(len(one.uops) for one in emitted if multiplies(one))


def _rows_of(emitted: Sequence[Emitted]) -> list[int]:
    """Accumulators from one iteration of a loop to the next."""
    loops = [one.instruction for one in emitted if isinstance(one.instruction, Loops)]
    pairs = ((one.dst_factor_out, one.iter_out) for one in loops)
    return sorted({step for step, count in pairs if step > 1 and count > 1})


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


def _parts(
    passes: Sequence[Emitted], stores: Sequence[Emitted], unit: int
) -> tuple[list[Part], list[Range]] | None:
    """Passes and STOREs of a tile by parts of a multiple of some accumulators, and those parts' accumulators;
    None if they cannot be cut."""
    pieces = [piece for one in stores for piece in _pieces(one, stores, unit)]
    ranges = [range_of_store(one) for one in pieces]
    if len(pieces) < 2:
        return None
    every = _whole(ranges)
    numbered: list[Part] = []
    for one in passes:
        cut = cut_by(one, ranges, twice=True)
        if not cut or not all(_stays(piece, ranges[number], every) for number, piece in cut):
            return None
        numbered += cut
    return [*numbered, *enumerate(pieces)], ranges


def _taken_again(resets: Sequence[Emitted], ranges: Sequence[Range]) -> bool:
    """Whether some accumulators of a tile are reset for the next one."""
    begin, end = _whole(ranges)
    return any(begin <= _first(one) < end for one in resets)


def _whole(ranges: Sequence[Range]) -> Range:
    """All of them, and what lies between."""
    return min(begin for begin, _ in ranges), max(end for _, end in ranges)


def _stays(one: Emitted, own: Range, every: Range) -> bool:
    """Whether a pass of one part writes accumulators of that part alone, and reads no other part's: in one
    order with those it may be moved, whatever order they come in."""
    instruction = one.instruction
    assert isinstance(instruction, Alu)
    written = span_of(one, "dst")
    read = written if instruction.use_imm else span_of(one, "src")
    apart = read[1] <= every[0] or every[1] <= read[0]
    return _within(written, own) and (apart or _within(read, own))


def _within(inner: Range, outer: Range) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _first(one: Emitted) -> int:
    """The first accumulator that an instruction writes."""
    return int(one.uops[:, COLUMNS["dst"]].min())


def _in_order(instructions: Sequence[Emitted], ranges: Sequence[Range]) -> list[Emitted] | None:
    """Instructions by the part that their accumulators are in, first those whose accumulators lie behind all
    that is stored; None if one cannot be cut that way."""
    every = _whole(ranges)
    end = max((span_of(one, "dst")[1] for one in instructions), default=0)
    parts = [(every[1], end), *ranges] if end > every[1] else ranges
    numbered: list[tuple[int, Emitted]] = []
    for one in instructions:
        cut = cut_by(one, parts, twice=True)
        if not cut or len(cut) > 2 * len(parts):
            return None
        if isinstance(one.instruction, Alu) and not all(_stays(piece, parts[n], every) for n, piece in cut):
            return None
        numbered += cut
    return [one for _, one in sorted(numbered, key=lambda pair: pair[0])]


def _pieces(one: Emitted, stores: Sequence[Emitted], unit: int) -> list[Emitted]:
    """A STORE in parts, of a multiple of ``unit`` accumulators where its rows allow that."""
    store = one.instruction
    assert isinstance(store, Store)
    elements = sum(s.instruction.sram_elements for s in stores if isinstance(s.instruction, Store))
    mine = max(1, int(parts_of(elements)) // len(stores))
    height, across = max(1, -(-store.y_size // mine)), -(-mine // max(1, store.y_size))
    width = -(-store.x_size // across)
    if unit % store.x_size == 0:
        height = -(-height * store.x_size // unit) * unit // store.x_size
    elif across > 1 and store.x_size % unit == 0:
        width = -(-width // unit) * unit
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
