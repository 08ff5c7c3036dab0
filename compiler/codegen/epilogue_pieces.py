"""Cut a tile's epilogue into pieces of neighbouring accumulators."""

from collections.abc import Sequence

from accel.base.records import replace
from accel.compiler.codegen.instruction_cutting import (
    AccumulatorRange,
    NumberedPiece,
    accumulator_span,
    cut_by_accumulators,
    range_of_store,
)
from accel.compiler.target.accumulator_pieces import piece_count
from accel.compiler.target.emitter_registry import Emitted
from accel.core.isa import Alu, Loops, Store


def cut_epilogue(
    passes: Sequence[Emitted], stores: Sequence[Emitted], unit: int
) -> tuple[list[NumberedPiece], list[AccumulatorRange]] | None:
    """Return the numbered pieces of a tile's ALU passes and STOREs, and each number's accumulators.

    Pieces are multiples of ``unit`` accumulators, where the STOREs' rows allow it. Return None if the
    epilogue cannot be cut.
    """
    store_pieces = [piece for one in stores for piece in _cut_store(one, stores, unit)]
    ranges = [range_of_store(one) for one in store_pieces]
    if len(store_pieces) < 2:
        return None
    tile = enclosing_range(ranges)
    numbered: list[NumberedPiece] = []
    for one in passes:
        pieces = cut_by_accumulators(one, ranges, twice=True)
        if not pieces or not all(is_independent(piece, ranges[number], tile) for number, piece in pieces):
            return None
        numbered += pieces
    return [*numbered, *enumerate(store_pieces)], ranges


def enclosing_range(ranges: Sequence[AccumulatorRange]) -> AccumulatorRange:
    return min(begin for begin, _ in ranges), max(end for _, end in ranges)


def is_independent(one: Emitted, own: AccumulatorRange, tile: AccumulatorRange) -> bool:
    """Whether an ALU piece touches no accumulator of the tile's other pieces, and may run in any order."""
    instruction = one.instruction
    assert isinstance(instruction, Alu)
    written = accumulator_span(one, "dst")
    read = written if instruction.use_imm else accumulator_span(one, "src")
    reads_other_memory = read[1] <= tile[0] or tile[1] <= read[0]
    return _is_within(written, own) and (reads_other_memory or _is_within(read, own))


def _is_within(inner: AccumulatorRange, outer: AccumulatorRange) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def row_lengths(emitted: Sequence[Emitted]) -> list[int]:
    """Return the accumulators per iteration of the outer loops of computations."""
    loops = [one.instruction for one in emitted if isinstance(one.instruction, Loops)]
    return sorted({one.dst_factor_out for one in loops if one.dst_factor_out > 1 and one.iter_out > 1})


def _cut_store(one: Emitted, stores: Sequence[Emitted], unit: int) -> list[Emitted]:
    store = one.instruction
    assert isinstance(store, Store)
    elements = sum(s.instruction.sram_elements for s in stores if isinstance(s.instruction, Store))
    count = max(1, int(piece_count(elements)) // len(stores))
    height, across = max(1, -(-store.y_size // count)), -(-count // max(1, store.y_size))
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
