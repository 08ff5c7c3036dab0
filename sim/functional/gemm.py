"""GEMM and MAC, as :mod:`accel.core.isa` defines them.

Sums modulo 2**32 do not depend on order, and products read no accumulator. So an instruction's micro-ops are
computed at once, as floating-point matrix products, which are exact: in float32 for sums up to 2**24, in
float64 up to 2**53.
"""

from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.blas import exact
from accel.core.config import Config
from accel.core.instruction_access import LoopShape
from accel.core.isa import UopArray
from accel.core.scratchpad_specs import INP, WGT, bits_of
from accel.sim.functional.micro_op_patterns import Axis, Box, Scalar, index_chunks, is_injective
from accel.sim.functional.scratchpads import Scratchpads

_MAX_GATHERED_VALUES = 1 << 26
"""Operand values gathered at a time."""
_MAX_PADDING_FACTOR = 4
"""Groups of micro-ops are padded to equal length if the work grows by at most this factor."""


class _View(NamedTuple):
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def of(self, array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        return np.ndarray(
            self.shape, array.dtype, buffer=array.data, offset=self.offset, strides=self.strides
        )


class GemmBox(Struct, frozen=True, kw_only=True):
    """An affine box of micro-ops as one matrix product.

    Rows move dst and src, columns dst and wgt, reduce axes src and wgt. Operands are gathered as (batch of
    products, rows, reduce) and (.., columns, reduce).
    """

    inp: _View
    wgt: _View
    acc: _View
    inp_matrix: tuple[int, int, int]
    wgt_matrix: tuple[int, int, int]
    sums: tuple[int, ...]
    """Shape of the product that is broadcast and added to ``acc``."""
    only_src: int
    only_wgt: int
    """Axes that move only src, or only wgt. The operand is summed over them before the product."""
    repeats: int
    """Additions of each product."""
    dtype: type[np.float32] | type[np.float64]
    overwrite: bool

    def on(self, pads: Scratchpads) -> "Product":
        return Product(self, self.inp.of(pads.inp), self.wgt.of(pads.wgt), self.acc.of(pads.acc))


class Product(NamedTuple):
    """A matrix product with its views."""

    box: GemmBox
    inp: npt.NDArray[Any]
    wgt: npt.NDArray[Any]
    acc: npt.NDArray[np.int32]

    def run(self) -> None:
        """Add the products. The caller enters ``exact``, which is slow to enter."""
        box, acc = self.box, self.acc
        x = _floats(self.inp, box.only_src, box.dtype).reshape(box.inp_matrix)
        y = _floats(self.wgt, box.only_wgt, box.dtype).reshape(box.wgt_matrix)
        product = np.matmul(x, y.transpose(0, 2, 1)) if len(x) > 1 else x[0] @ y[0].T
        if box.repeats > 1:
            product *= box.repeats
        sums = _wrap(product).reshape(box.sums)
        if box.overwrite:
            acc[...] = sums
        else:
            np.add(acc, sums, out=acc)


def largest_product(config: Config) -> int:
    """Return the largest absolute inp * wgt. For example, 2**15 of 9 bits times 8 bits."""
    return 1 << (INP.lane_bits(config) + WGT.lane_bits(config) - 2)


def gemm_box(box: Box, config: Config, *, overwrite: bool = False) -> GemmBox | None:
    """Return the matrix product of a box, or None if axes that move dst may reach a dst twice, if sums may
    exceed float64's exact range, or if too many values would be gathered. With ``overwrite``, only the last
    micro-op of each dst counts."""
    if overwrite:
        box = last_iterations(box)
    along: dict[tuple[bool, bool, bool], list[Axis]] = {}
    for axis in box.axes:
        d, s, w = axis.strides
        along.setdefault((d != 0, s != 0, w != 0), []).append(axis)
    both, rows = along.get((True, True, True), []), along.get((True, True, False), [])
    columns, reduce = along.get((True, False, True), []), along.get((False, True, True), [])
    only_src, only_wgt = along.get((False, True, False), []), along.get((False, False, True), [])
    only_dst = along.get((True, False, False), [])
    if not is_injective([(axis.extent, axis.strides[0]) for axis in both + rows + columns + only_dst]):
        return None
    n_both, n_rows, n_columns, n_reduce = (_extent_product(part) for part in (both, rows, columns, reduce))
    repeats = _extent_product(along.get((False, False, False), []))
    batch, block_in, block_out = config.batch, config.block_in, config.block_out
    summed = n_reduce * block_in * _extent_product(only_src) * _extent_product(only_wgt) * repeats
    gathered = (
        n_both
        * n_reduce
        * max(n_rows * _extent_product(only_src), n_columns * _extent_product(only_wgt))
        * block_in
    )
    inp_width, wgt_width = (bits_of(pad.held_dtype(config)) // 8 for pad in (INP, WGT))
    largest = summed * largest_product(config)
    if largest > 1 << 53 or gathered * max(batch, block_out) > _MAX_GATHERED_VALUES:
        return None
    return GemmBox(
        inp=_view(box, 1, (batch, block_in), inp_width, both + rows, reduce + only_src),
        wgt=_view(box, 2, (block_out, block_in), wgt_width, both + columns, reduce + only_wgt),
        acc=_view(box, 0, (batch, block_out), 4, only_dst + both + rows, columns),
        inp_matrix=(n_both, n_rows * batch, n_reduce * block_in),
        wgt_matrix=(n_both, n_columns * block_out, n_reduce * block_in),
        sums=(*(a.extent for a in both + rows), batch, *(a.extent for a in columns), block_out),
        only_src=len(only_src),
        only_wgt=len(only_wgt),
        repeats=repeats,
        dtype=np.float32 if largest <= 1 << 24 else np.float64,
        overwrite=overwrite,
    )


def last_iterations(box: Box) -> Box:
    """Restrict a box to the last iteration of every axis that does not move dst."""
    base = list(box.base)
    for extent, strides in box.axes:
        if not strides[0]:
            base = [b + (extent - 1) * s for b, s in zip(base, strides, strict=True)]
    return Box((base[0], base[1], base[2]), tuple(axis for axis in box.axes if axis.strides[0]))


def _extent_product(axes: list[Axis]) -> int:
    return prod(axis.extent for axis in axes)


def _view(
    box: Box, operand: int, element: tuple[int, int], width: int, outer: list[Axis], inner: list[Axis]
) -> _View:
    size = element[0] * element[1] * width
    shape = (*(a.extent for a in outer), element[0], *(a.extent for a in inner), element[1])
    strides = (
        *(a.strides[operand] * size for a in outer),
        element[1] * width,
        *(a.strides[operand] * size for a in inner),
        width,
    )
    return _View(shape, strides, box.base[operand] * size)


def gemm_general(
    pads: Scratchpads, uops: UopArray, shape: LoopShape, count: int, *, overwrite: bool = False
) -> None:
    for indices in index_chunks(uops, shape, count):
        _accumulate(pads, last_writers(indices) if overwrite else indices, overwrite)


def last_writers(indices: UopArray) -> UopArray:
    _, last = np.unique(indices[::-1, 0], return_index=True)
    return indices[::-1][last]


@exact
def _accumulate(pads: Scratchpads, indices: UopArray, overwrite: bool) -> None:
    dst, src, wgt = indices[_order(indices[:, 2])].T
    starts = _starts(wgt)
    counts = np.diff(starts, append=len(wgt))
    x = pads.inp[src].astype(np.float32)  # exact: block_in is at most 256
    weights = pads.wgt[wgt[starts]].astype(np.float32).transpose(0, 2, 1)
    if len(starts) * int(counts.max()) <= _MAX_PADDING_FACTOR * len(wgt):
        products = _products_of_groups(x, weights, starts, counts)
    else:
        products = np.empty((len(wgt), *pads.acc.shape[1:]), dtype=np.int32)
        for number, (start, count) in enumerate(zip(starts.tolist(), counts.tolist(), strict=True)):
            products[start : start + count] = x[start : start + count] @ weights[number]
    add_products(pads, dst, products, overwrite)


def add_products(
    pads: Scratchpads, dst: npt.NDArray[np.int64], products: npt.NDArray[np.int32], overwrite: bool
) -> None:
    """Add each micro-op's product [batch, block_out] to its accumulator, or replace it by their sum."""
    by_dst = _order(dst)
    dst = dst[by_dst]
    firsts = _starts(dst)
    sums = np.add.reduceat(products[by_dst], firsts, axis=0, dtype=np.int32)
    if overwrite:
        pads.acc[dst[firsts]] = sums
    else:
        pads.acc[dst[firsts]] += sums


def _products_of_groups(
    x: npt.NDArray[np.float32],
    weights: npt.NDArray[np.float32],
    starts: npt.NDArray[np.intp],
    counts: npt.NDArray[np.intp],
) -> npt.NDArray[np.int32]:
    """Return ``x[n] @ weights[g]`` for each n in group g, int32[n, batch, block_out]."""
    _, batch, block_in = x.shape
    groups, longest = len(starts), int(counts.max())
    places = np.arange(len(x)) + np.repeat(np.arange(groups) * longest - starts, counts)
    filled = np.zeros((groups * longest, batch, block_in), dtype=np.float32)
    filled[places] = x
    product = np.matmul(filled.reshape(groups, longest * batch, block_in), weights)
    found: npt.NDArray[np.int32] = product.reshape(groups * longest, batch, -1)[places].astype(np.int32)
    return found


def _order(values: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    short = values.astype(np.uint16) if values.max() <= np.iinfo(np.uint16).max else values
    return np.argsort(short, kind="stable")


def _starts(values: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    return np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))


def _floats(
    view: npt.NDArray[Any], summed: int, dtype: type[np.float32] | type[np.float64]
) -> npt.NDArray[Any]:
    """Convert to floats in C order, summed over the last ``summed`` axes before the element's columns."""
    if not summed:
        return view.astype(dtype, order="C")
    last = view.ndim - 1
    summed_up: npt.NDArray[Any] = view.sum(axis=tuple(range(last - summed, last)), dtype=dtype)
    return summed_up


def _wrap(values: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    if values.dtype == np.float32:
        return values.astype(np.int32)
    return values.astype(np.int64).astype(np.int32)
