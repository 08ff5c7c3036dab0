"""Store a tile piece by piece, and start the next tile in each piece as soon as it is stored.

For a tile of 16 rows of accumulators that the next tile reuses::

    before                      after
    ALU   rows 0..15            ALU   rows 0..3
    STORE rows 0..15            STORE rows 0..3
    LOAD  next tile             ...
    reset rows 0..15            ALU   rows 12..15
    GEMM  rows 0..15            STORE rows 12..15
                                reset rows 0..3
                                GEMM  rows 0..3
                                ...
                                reset rows 12..15
                                GEMM  rows 12..15

The store unit stores rows 0..3 while the ALU works on rows 4..7, and the reset of rows 0..3 waits only for
the first STORE. LOADs of the next tile touch no accumulators, and move in front of the pieces.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from accel.compiler.codegen.epilogue_pieces import cut_epilogue, enclosing_range, is_independent, row_lengths
from accel.compiler.codegen.instruction_cutting import (
    AccumulatorRange,
    accumulator_span,
    cut_by_accumulators,
    end_of_run,
    multiplies,
    start_of_run,
)
from accel.compiler.codegen.reorder_pass import EmittedProgram, ReorderPass
from accel.compiler.target.emitter_registry import Emitted
from accel.core.config import UOP_BYTES
from accel.core.instruction_access import COLUMNS
from accel.core.isa import Alu, Gemm, Store, Unit

MAX_MICRO_OP_BEATS = 32
"""Bus beats to load the micro-ops of all pieces of the next tile's products: 64 micro-ops on a 64-bit bus.
Loading more would take longer than the reset waits. Products with more before the cut keep their number."""


class InterleaveEpilogues(ReorderPass, frozen=True):
    name = "interleave-epilogues"
    reason = (
        "A tile waits for the STOREs of its first accumulators, and not for those of the whole previous tile."
    )

    def run(self, program: EmittedProgram) -> EmittedProgram:
        most = MAX_MICRO_OP_BEATS * program.config.bus_bytes // UOP_BYTES
        return program.with_order(_interleaved(program.emitted, most))


def _interleaved(emitted: Sequence[Emitted], max_micro_ops: int) -> list[Emitted]:
    result: list[Emitted] = []
    at = 0
    while at < len(emitted):
        if not isinstance(emitted[at].instruction, Store):
            result.append(emitted[at])
            at += 1
            continue
        stores_end = end_of_run(emitted, at, lambda one: isinstance(one.instruction, Store))
        boundary = _Boundary.found(result, emitted, at, stores_end)
        replaced = boundary.interleaved(max_micro_ops)
        if replaced is None:
            result += emitted[at:stores_end]
            at = stores_end
        else:
            pieces, at = replaced
            result[boundary.begin :] = pieces
    return result


class _Boundary(Struct, frozen=True, kw_only=True):
    """The end of a tile and the start of the next one.

    Attributes:
        begin: position of ``passes`` in the new program.
        resets, products: instructions of the next tile. ``products`` is its first product, or empty.
        resets_end: position after ``resets`` and the LOADs that follow them.
    """

    begin: int
    passes: Sequence[Emitted]
    stores: Sequence[Emitted]
    loads: Sequence[Emitted]
    resets: Sequence[Emitted]
    products: Sequence[Emitted]
    resets_end: int

    @classmethod
    def found(cls, before: Sequence[Emitted], emitted: Sequence[Emitted], at: int, end: int) -> _Boundary:
        begin = start_of_run(before, len(before), lambda one: isinstance(one.instruction, Alu))
        first_reset = end_of_run(emitted, end, _is_load)
        last_reset = end_of_run(emitted, first_reset, _resets)
        resets = emitted[first_reset:last_reset]
        product = end_of_run(emitted, last_reset, _is_load) if resets else last_reset
        has_product = bool(resets) and product < len(emitted) and multiplies(emitted[product])
        return cls(
            begin=begin,
            passes=before[begin:],
            stores=emitted[at:end],
            loads=[*emitted[end:first_reset], *emitted[last_reset:product]],
            resets=resets,
            products=emitted[product : product + 1] if has_product else [],
            resets_end=product,
        )

    def interleaved(self, max_micro_ops: int) -> tuple[list[Emitted], int] | None:
        """Return the boundary in pieces, and the position in the old program after everything that it
        replaces.

        None if the next tile uses other accumulators, or the epilogue cannot be cut. Pieces are rows of the
        next tile if no other size cuts resets and products the same way. If no size does, or the pieces of
        products have more than ``max_micro_ops``, the products stay whole.
        """
        if not self.resets:
            return None
        best: tuple[list[Emitted], list[Emitted] | None] | None = None
        for unit in dict.fromkeys([1, *row_lengths([*self.resets, *self.products])]):
            cut = cut_epilogue(self.passes, self.stores, unit)
            if cut is None or not self._is_reset(cut[1]):
                continue
            epilogue, ranges = [one for _, one in sorted(cut[0], key=lambda piece: piece[0])], cut[1]
            started = _sorted_pieces([*self.resets, *self.products], ranges)
            limit = max(max_micro_ops, _product_micro_ops(self.products))
            if started is not None and _product_micro_ops(started) <= limit:
                return [*self.loads, *epilogue, *started], self.resets_end + len(self.products)
            if best is None or best[1] is None:
                best = epilogue, _sorted_pieces(self.resets, ranges)
        if best is None:
            return None
        return [*self.loads, *best[0], *(best[1] or self.resets)], self.resets_end

    def _is_reset(self, ranges: Sequence[AccumulatorRange]) -> bool:
        begin, end = enclosing_range(ranges)
        firsts = (int(one.uops[:, COLUMNS["dst"]].min()) for one in self.resets)
        return any(begin <= first < end for first in firsts)


def _is_load(one: Emitted) -> bool:
    return one.instruction.unit is Unit.LOAD


def _resets(one: Emitted) -> bool:
    return isinstance(one.instruction, Alu) or (isinstance(one.instruction, Gemm) and one.instruction.reset)


def _product_micro_ops(emitted: Sequence[Emitted]) -> int:
    return sum(len(one.uops) for one in emitted if multiplies(one))


def _sorted_pieces(
    instructions: Sequence[Emitted], ranges: Sequence[AccumulatorRange]
) -> list[Emitted] | None:
    """Return pieces sorted by their ranges, or None if an instruction cannot be cut.

    Accumulators after the last range come first, because no STORE reads them.
    """
    tile = enclosing_range(ranges)
    end = max((accumulator_span(one, "dst")[1] for one in instructions), default=0)
    parts = [(tile[1], end), *ranges] if end > tile[1] else ranges
    numbered: list[tuple[int, Emitted]] = []
    for one in instructions:
        pieces = cut_by_accumulators(one, parts, twice=True)
        if not pieces or len(pieces) > 2 * len(parts):
            return None
        if isinstance(one.instruction, Alu) and not all(
            is_independent(piece, parts[number], tile) for number, piece in pieces
        ):
            return None
        numbered += pieces
    return [one for _, one in sorted(numbered, key=lambda pair: pair[0])]
