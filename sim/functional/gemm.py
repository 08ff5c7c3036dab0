"""GEMM: ``acc[dst][b][o] += sum over k of inp[src][b][k] * wgt[wgt][o][k]``, wrapping at 32 bits.

An accumulation modulo 2**32 does not depend on its order, and GEMM reads no accumulator but the one
it writes, so all micro-ops of an instruction may run at once. Products go through floating-point matrix
products where those are exact: integers below 2**24 in float32, below 2**53 in float64.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from accel.access import LoopShape
from accel.isa import UopArray
from accel.sim.functional.patterns import Box, Scalar, index_chunks, is_injective, strided
from accel.sim.functional.scratchpads import Scratchpads

_LARGEST_PRODUCT = 1 << 14
"""|int8 * int8| at most."""
_LARGEST_VIEW = 1 << 26
"""Operand values gathered at once."""


def gemm_box(pads: Scratchpads, box: Box) -> bool:
    """Run all micro-ops of an affine box; False, with nothing done, if two of them meet in one dst
    in a way that the box's axes do not show, or if operands would be gathered too many times over."""
    along: dict[tuple[bool, bool, bool], list[int]] = {}
    for number, axis in enumerate(box.axes):
        d, s, w = axis.strides
        along.setdefault((d != 0, s != 0, w != 0), []).append(number)

    def pick(*kinds: tuple[bool, bool, bool]) -> list[int]:
        return [number for kind in kinds for number in along.get(kind, [])]

    both, rows, columns, reduce = (
        pick((True, True, True)),
        pick((True, True, False)),
        pick((True, False, True)),
        pick((False, True, True)),
    )
    only_src, only_wgt, only_dst = (
        pick((False, True, False)),
        pick((False, False, True)),
        pick((True, False, False)),
    )
    if not is_injective(
        [(box.axes[n].extent, box.axes[n].strides[0]) for n in both + rows + columns + only_dst]
    ):
        return False

    def extents(numbers: list[int]) -> int:
        return int(np.prod([box.axes[n].extent for n in numbers], dtype=np.int64))

    def view(array: npt.NDArray[Scalar], operand: int, numbers: list[int]) -> npt.NDArray[Scalar]:
        axes = [(box.axes[n].extent, box.axes[n].strides[operand]) for n in numbers]
        return strided(array, box.base[operand], axes)

    repeats = extents(pick((False, False, False)))
    block_in = pads.inp.shape[2]
    largest = extents(reduce) * block_in * extents(only_src) * extents(only_wgt) * repeats * _LARGEST_PRODUCT
    dtype = np.float32 if largest <= 1 << 24 else np.float64
    n_both, n_rows, n_columns, n_reduce = (extents(part) for part in (both, rows, columns, reduce))
    gathered = n_both * n_reduce * max(n_rows * extents(only_src), n_columns * extents(only_wgt)) * block_in
    if largest > 1 << 53 or gathered * max(pads.acc.shape[1:]) > _LARGEST_VIEW:
        return False

    x = _floats(view(pads.inp, 1, both + rows + reduce + only_src), len(only_src), 2, dtype)
    x = x.reshape(n_both, n_rows, n_reduce, *pads.inp.shape[1:]).transpose(0, 1, 3, 2, 4)
    y = _floats(view(pads.wgt, 2, both + columns + reduce + only_wgt), len(only_wgt), 2, dtype)
    y = y.reshape(n_both, n_columns, n_reduce, *pads.wgt.shape[1:]).transpose(0, 1, 3, 2, 4)
    batch, block_out = pads.acc.shape[1:]
    product = np.matmul(
        x.reshape(n_both, n_rows * batch, n_reduce * block_in),
        y.reshape(n_both, n_columns * block_out, n_reduce * block_in).transpose(0, 2, 1),
    )
    if repeats > 1:
        product *= repeats
    sums = _wrap(product).reshape(n_both, n_rows, batch, n_columns, block_out).transpose(0, 1, 3, 2, 4)
    target = view(pads.acc, 0, both + rows + columns + only_dst)
    ones = (1,) * len(only_dst)
    shape = [box.axes[n].extent for n in both + rows + columns]
    target += sums.reshape(*shape, *ones, batch, block_out)
    return True


def gemm_general(pads: Scratchpads, uops: UopArray, shape: LoopShape, count: int) -> None:
    """Run the first ``count`` micro-ops of any instruction; cost is linear in them."""
    for indices in index_chunks(uops, shape, count):
        _accumulate(pads, indices)


def _accumulate(pads: Scratchpads, indices: UopArray) -> None:
    indices = indices[np.argsort(indices[:, 2], kind="stable")]
    dst, src, wgt = indices.T
    batch, block_out = pads.acc.shape[1:]
    products = np.empty((len(indices), batch, block_out), dtype=np.int32)
    starts = np.flatnonzero(np.concatenate([[True], wgt[1:] != wgt[:-1]]))
    x = pads.inp[src].astype(np.float64)
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(wgt)], strict=True):
        weights = pads.wgt[wgt[start]].astype(np.float64)
        products[start:stop] = x[start:stop] @ weights.T
    by_dst = np.argsort(dst, kind="stable")
    dst = dst[by_dst]
    firsts = np.flatnonzero(np.concatenate([[True], dst[1:] != dst[:-1]]))
    pads.acc[dst[firsts]] += np.add.reduceat(products[by_dst], firsts, axis=0, dtype=np.int32)


def _floats(
    view: npt.NDArray[np.int8], summed: int, element_dims: int, dtype: type[np.float32] | type[np.float64]
) -> npt.NDArray[Any]:
    """``view`` as floats, its last ``summed`` axes before the element's own summed up."""
    if not summed:
        return view.astype(dtype)
    last = view.ndim - element_dims
    summed_up: npt.NDArray[Any] = view.sum(axis=tuple(range(last - summed, last)), dtype=dtype)
    return summed_up


def _wrap(values: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """Integers held as floats to int32, modulo 2**32."""
    if values.dtype == np.float32:
        return values.astype(np.int32)
    return values.astype(np.int64).astype(np.int32)
