"""Cut one instruction into several."""

from collections.abc import Callable, Sequence

import numpy as np

from accel.base.records import replace
from accel.compiler.target.emitter_registry import Emitted
from accel.core.instruction_access import COLUMNS
from accel.core.isa import Alu, Gemm, Load, Loops, Mac, Store

AccumulatorRange = tuple[int, int]
"""The first accumulator, and the one after the last."""

NumberedPiece = tuple[int, Emitted]
"""The number of a range of accumulators, and the piece of an instruction for it."""


def start_of_run(emitted: Sequence[Emitted], end: int, belongs: Callable[[Emitted], bool]) -> int:
    while end and belongs(emitted[end - 1]):
        end -= 1
    return end


def end_of_run(emitted: Sequence[Emitted], begin: int, belongs: Callable[[Emitted], bool]) -> int:
    while begin < len(emitted) and belongs(emitted[begin]):
        begin += 1
    return begin


def multiplies(one: Emitted) -> bool:
    return isinstance(one.instruction, Gemm | Mac) and one.instruction.multiplies


def range_of_store(one: Emitted) -> AccumulatorRange:
    store = one.instruction
    assert isinstance(store, Store)
    return store.sram_base, store.sram_base + store.sram_elements


def accumulator_span(one: Emitted, operand: str) -> AccumulatorRange:
    """The operand is ``dst`` or ``src``."""
    loops = one.instruction
    assert isinstance(loops, Loops)
    column = one.uops[:, COLUMNS[operand]]
    reach = (loops.iter_out - 1) * getattr(loops, f"{operand}_factor_out")
    reach += (loops.iter_in - 1) * getattr(loops, f"{operand}_factor_in")
    return int(column.min()), int(column.max()) + reach + 1


def cut_by_accumulators(
    one: Emitted, ranges: Sequence[AccumulatorRange], *, twice: bool = False
) -> list[NumberedPiece]:
    """Cut a computation into ordered pieces that write one range each.

    Pieces are iterations of the outer loop, of the inner loop, or micro-ops. For example, a GEMM with
    ``iter_out=3`` and ``dst_factor_out=4`` becomes three GEMMs for the ranges 0..4, 4..8 and 8..12. ``twice``
    allows cuts along two dimensions. Return no pieces if it cannot be cut that way.
    """
    loops = one.instruction
    assert isinstance(loops, Loops)
    starts = np.array([first for first, _ in ranges])
    order = np.argsort(starts)
    dst = one.uops[:, COLUMNS["dst"]]
    outer, inner = np.arange(loops.iter_out), np.arange(loops.iter_in)
    written = dst[:, None, None] + outer[:, None] * loops.dst_factor_out + inner * loops.dst_factor_in
    ranks = np.searchsorted(starts[order], written, side="right") - 1
    numbers_of = order[np.maximum(ranks, 0)]
    for dimension in range(3):
        flat = np.moveaxis(numbers_of, dimension, 0).reshape(numbers_of.shape[dimension], -1)
        if not (flat == flat[:, :1]).all():
            continue
        numbers = flat[:, 0]
        parts = [(int(n), np.flatnonzero(numbers == n)) for n in dict.fromkeys(numbers.tolist())]
        if dimension and any(int(where[-1] - where[0]) >= len(where) for _, where in parts):
            continue
        return [(n, _piece(one, loops, dimension, where)) for n, where in parts]
    return _cut_twice(one, loops, ranges, numbers_of.shape) if twice else []


def _cut_twice(
    one: Emitted, loops: Loops, ranges: Sequence[AccumulatorRange], sizes: Sequence[int]
) -> list[NumberedPiece]:
    if isinstance(loops, Alu) and not loops.use_imm:
        written, read = accumulator_span(one, "dst"), accumulator_span(one, "src")
        if written[0] < read[1] and read[0] < written[1]:
            return []
    dst = one.uops[:, COLUMNS["dst"]]
    same_dst = [np.flatnonzero(dst == first) for first in dict.fromkeys(dst.tolist())]
    singles = [same_dst, *([np.array([n]) for n in range(size)] for size in sizes[1:])]
    choices = []
    for dimension in range(3):
        if 1 < len(singles[dimension]) <= len(ranges):
            cuts = [
                cut_by_accumulators(_piece(one, loops, dimension, where), ranges, twice=True)
                for where in singles[dimension]
            ]
            if all(cuts):
                choices.append([piece for cut in cuts for piece in cut])
    return min(choices, key=len, default=[])


def _piece(one: Emitted, loops: Loops, dimension: int, where: np.ndarray) -> Emitted:
    """``where`` are ascending numbers of micro-ops (``dimension`` 0), or of iterations of the outer (1) or
    inner loop (2)."""
    if dimension == 0:
        uops = one.uops[where]
        return replace(one, instruction=replace(loops, uop_end=len(uops)), uops=uops)
    uops = one.uops.copy()
    for operand in loops.OPERANDS:
        uops[:, COLUMNS[operand.name]] += int(where[0]) * getattr(loops, operand.factors[dimension - 1])
    count = ("iter_out", "iter_in")[dimension - 1]
    piece = replace(loops, **{count: len(where)})  # type: ignore[arg-type]  # it is a number, not a flag
    return replace(one, instruction=piece, uops=uops)


def cut_load(one: Emitted, elements: int) -> list[Emitted]:
    """Cut a LOAD after about ``elements`` elements.

    The first piece is whole rows, or the start of the first row if that is longer. For example, 10 elements
    of a LOAD of 4 rows of 3 become pieces of 3 rows and 1 row, and 2 elements become pieces of 2 elements, 1
    element and 3 rows. Return ``[one]`` if it has at most ``elements`` elements, or no pieces if it has
    padding or ``elements`` is 0.
    """
    load = one.instruction
    assert isinstance(load, Load)
    if elements >= load.sram_elements:
        return [one]
    if not elements or load.width != load.x_size or load.height != load.y_size:
        return []
    rows = elements // load.x_size
    if rows:
        return [_load_piece(one, load, (0, rows)), _load_piece(one, load, (rows, load.y_size))]
    first_row = [
        _load_piece(one, load, (0, 1), columns) for columns in ((0, elements), (elements, load.x_size))
    ]
    return first_row if load.y_size == 1 else [*first_row, _load_piece(one, load, (1, load.y_size))]


def _load_piece(
    one: Emitted, load: Load, rows: tuple[int, int], columns: tuple[int, int] | None = None
) -> Emitted:
    (top, bottom), (begin, end) = rows, columns or (0, load.x_size)
    piece = replace(
        load,
        sram_base=load.sram_base + top * load.x_size + begin,
        dram_base=load.dram_base + top * load.x_stride + begin,
        y_size=bottom - top,
        x_size=end - begin,
    )
    return replace(one, instruction=piece)
