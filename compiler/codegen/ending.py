"""The end of a program: its last products come in the order in which their sums are stored.

    MAC   16 channels               MAC    channel 0
    STORE channel 0                 MAC    channel 1    STORE channel 0
    STORE channel 1                 MAC    channel 2    STORE channel 1
    ...                             ...

Only the products behind which each set of accumulators is not used any more are cut up: before that, the
store unit has other products to work beside.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from accel.compiler.target.registry import Emitted
from accel.core.access import COLUMNS
from accel.core.isa import Alu, Gemm, Loops, Mac, Store, StoreAdd, StoreReq, Unit

_PIECES = 16
"""Of a STORE, at most."""
_PARTS = 32
"""Of all STOREs, at most: each has micro-ops of its own, and what is further from the end gains nothing."""

Range = tuple[int, int]
"""Accumulators that a STORE reads: the first one, and the one behind the last."""


def stored_early(emitted: Sequence[Emitted], tokens: int = 255) -> list[Emitted]:
    """The same program with products moved in front of others that have other sums.

    Args:
        emitted: the program.
        tokens: what a counter holds; the parts of STOREs take half of that at most.
    """
    pieces: list[Sequence[Emitted]] = []
    seen: list[Range] = []
    end = len(emitted)
    while end:
        stores = begin_of(emitted, end, lambda one: one.instruction.unit is Unit.STORE)
        products = begin_of(emitted, stores, _multiplies)
        rows = [piece for one in emitted[stores:end] for piece in _by_rows(one)]
        ranges = [range_of_store(one) for one in rows if isinstance(one.instruction, Store)]
        if len(seen) + len(ranges) > min(tokens // 2, _PARTS):
            break
        again = any(a[0] < b[1] and b[0] < a[1] for a in ranges for b in seen)
        if not ranges or products == stores or again:
            break
        seen += ranges
        loads = begin_of(emitted, products, lambda one: one.instruction.unit is Unit.LOAD)
        ordered = _in_order(emitted[products:stores], ranges)
        if ordered is None:
            pieces += [emitted[stores:end], emitted[products:stores]]
        else:
            pieces += [rows, ordered]
        pieces.append(emitted[loads:products])
        end = loads
    return [*emitted[:end], *(one for piece in reversed(pieces) for one in piece)]


def begin_of(emitted: Sequence[Emitted], end: int, belongs: Callable[[Emitted], bool]) -> int:
    """Where those begin that belong together, one after the other up to ``end``."""
    while end and belongs(emitted[end - 1]):
        end -= 1
    return end


def _multiplies(one: Emitted) -> bool:
    return isinstance(one.instruction, Gemm | Mac) and one.instruction.multiplies


def _by_rows(one: Emitted) -> list[Emitted]:
    """A STORE of several rows as several STOREs."""
    store = one.instruction
    if not isinstance(store, Store) or store.y_size < 2 or not store.x_size:
        return [one]
    height = -(-store.y_size // _PIECES)
    pieces = []
    for row in range(0, store.y_size, height):
        values = {
            "sram_base": store.sram_base + row * store.x_size,
            "dram_base": store.dram_base + row * store.x_stride,
            "y_size": min(height, store.y_size - row),
        }
        if isinstance(store, StoreReq | StoreAdd) and store.par_y:
            values["par"] = store.par + row
        cut = replace(store, **values)  # type: ignore[arg-type]  # they are numbers, not flags
        pieces.append(replace(one, instruction=cut))
    return pieces


def _in_order(products: Sequence[Emitted], ranges: Sequence[Range]) -> list[Emitted] | None:
    """Products by the range that their sums are in; None if one cannot be cut that way."""
    found: list[tuple[int, Emitted]] = []
    for one in products:
        cut = cut_by(one, ranges)
        if not cut:
            return None
        found += cut
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]


def range_of_store(one: Emitted) -> Range:
    """The accumulators that a STORE reads."""
    store = one.instruction
    assert isinstance(store, Store)
    return store.sram_base, store.sram_base + store.sram_elements


def cut_by(one: Emitted, ranges: Sequence[Range], *, twice: bool = False) -> list[tuple[int, Emitted]]:
    """A computation in parts, each with the number of the range that all its accumulators are in.

    Args:
        one: GEMM, MAC or ALU.
        ranges: that lie apart.
        twice: whether it may be cut along one of those first, and then along another.

    Returns:
        The parts, cut along micro-ops or one of the loops; none if that is not enough.
    """
    loops = one.instruction
    assert isinstance(loops, Loops)
    dst, steps = one.uops[:, COLUMNS["dst"]], (loops.dst_factor_out, loops.dst_factor_in)
    starts = np.array([first for first, _ in ranges])
    order = np.argsort(starts)

    def range_of(sums: np.ndarray) -> np.ndarray:
        """The number of each sum's range."""
        places = np.searchsorted(starts[order], sums, side="right") - 1
        numbers: np.ndarray = order[np.maximum(places, 0)]
        return numbers

    counts = (loops.iter_out, loops.iter_in)
    out, inner = (np.arange(count) * step for count, step in zip(counts, steps, strict=True))
    every = range_of(dst[:, None, None] + out[:, None] + inner)
    for along in range(3):
        flat = np.moveaxis(every, along, 0).reshape(every.shape[along], -1)
        if not (flat == flat[:, :1]).all():
            continue
        numbers = flat[:, 0]
        parts = [(int(n), np.flatnonzero(numbers == n)) for n in dict.fromkeys(numbers.tolist())]
        if along and any(int(where[-1] - where[0]) >= len(where) for _, where in parts):
            continue
        return [(n, _part(one, loops, along, where)) for n, where in parts]
    return _cut_twice(one, loops, ranges, every.shape) if twice else []


def _cut_twice(
    one: Emitted, loops: Loops, ranges: Sequence[Range], sizes: Sequence[int]
) -> list[tuple[int, Emitted]]:
    """As :func:`cut_by`, iteration by iteration of a dimension first, that which leads to the fewest parts;
    micro-ops of the same accumulator stay together. What reads accumulators that it may have written is not
    taken apart."""
    if isinstance(loops, Alu) and not loops.use_imm:
        written, read = span_of(one, "dst"), span_of(one, "src")
        if written[0] < read[1] and read[0] < written[1]:
            return []
    dst = one.uops[:, COLUMNS["dst"]]
    alike = [np.flatnonzero(dst == first) for first in dict.fromkeys(dst.tolist())]
    each = [alike, *([np.array([n]) for n in range(size)] for size in sizes[1:])]
    choices = []
    for along in range(3):
        if 1 < len(each[along]) <= len(ranges):
            cuts = [cut_by(_part(one, loops, along, where), ranges, twice=True) for where in each[along]]
            if all(cuts):
                choices.append([part for cut in cuts for part in cut])
    return min(choices, key=len, default=[])


def span_of(one: Emitted, operand: str) -> Range:
    """Between which accumulators an operand's of a computation lie: the first one, and the one behind the
    last."""
    loops = one.instruction
    assert isinstance(loops, Loops)
    column = one.uops[:, COLUMNS[operand]]
    ends = [
        (count - 1) * getattr(loops, f"{operand}_factor_{name}")
        for count, name in ((loops.iter_out, "out"), (loops.iter_in, "in"))
    ]
    return int(column.min()), int(column.max()) + sum(ends) + 1


def _part(one: Emitted, loops: Loops, along: int, where: np.ndarray) -> Emitted:
    """What of a product runs for some micro-ops, or neighbouring iterations of the outer or inner loop."""
    if not along:
        uops = one.uops[where]
        return replace(one, instruction=replace(loops, uop_end=len(uops)), uops=uops)
    uops = one.uops.copy()
    for operand in loops.OPERANDS:
        uops[:, COLUMNS[operand.name]] += int(where[0]) * getattr(loops, operand.factors[along - 1])
    name = ("iter_out", "iter_in")[along - 1]
    cut = replace(loops, **{name: len(where)})  # type: ignore[arg-type]  # it is a number, not a flag
    return replace(one, instruction=cut, uops=uops)
