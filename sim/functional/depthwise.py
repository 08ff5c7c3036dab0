"""Depthwise MACs, as :class:`accel.core.isa.Mac` defines them.

Each tap is one array operation in int32. Sums wrap modulo 2**32, so their order does not matter.
"""

from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.core.instruction_access import LoopShape
from accel.core.isa import UopArray
from accel.sim.functional.gemm import add_products, last_iterations, last_writers
from accel.sim.functional.micro_op_patterns import Axis, Box, Triple, index_chunks, is_injective, strided
from accel.sim.functional.scratchpads import Scratchpads

_MAX_ARRAY_OPERATIONS = 256
"""Limit for one box."""


class DepthwiseBox(Struct, frozen=True, kw_only=True):
    """``firsts`` are the micro-ops of the first accumulator, ``step`` the inp elements from tap to tap."""

    axes: tuple[Axis, ...]
    firsts: tuple[Triple, ...]
    taps: int
    step: int
    overwrite: bool

    def on(self, pads: Scratchpads) -> "TapProducts":
        def view(array: npt.NDArray[Any], base: int, operand: int) -> npt.NDArray[Any]:
            return strided(array, base, [(axis.extent, axis.strides[operand]) for axis in self.axes])

        pairs = tuple(
            (view(pads.inp, src + tap * self.step, 1), view(pads.wgt, wgt, 2)[..., None, :, tap])
            for _, src, wgt in self.firsts
            for tap in range(self.taps)
        )
        return TapProducts(pairs, view(pads.acc, self.firsts[0][0], 0), self.overwrite)


class TapProducts(NamedTuple):
    """Views inp [.., batch, block] and wgt [.., 1, block] to multiply and add to acc [.., batch, block]."""

    pairs: tuple[tuple[npt.NDArray[Any], npt.NDArray[Any]], ...]
    acc: npt.NDArray[np.int32]
    overwrite: bool

    def run(self) -> None:
        is_first = self.overwrite
        for inp, wgt in self.pairs:
            products = np.multiply(inp, wgt, dtype=np.int32)
            if is_first:
                self.acc[...] = products
            else:
                np.add(self.acc, products, out=self.acc)
            is_first = False


def depthwise_box(box: Box, shape: LoopShape, *, overwrite: bool) -> DepthwiseBox | None:
    """Return the products of a box, or None if axes that move dst may reach a dst twice, or if there are too
    many products. ``overwrite`` is that of ``gemm_box``."""
    if overwrite:
        box = last_iterations(box)
    moving = tuple(axis for axis in box.axes if axis.strides[0])
    reduce = [axis for axis in box.axes if not axis.strides[0]]
    steps = shape.taps
    for axis in reduce:
        steps *= axis.extent
    if steps > _MAX_ARRAY_OPERATIONS or not is_injective([(axis.extent, axis.strides[0]) for axis in moving]):
        return None
    firsts = []
    for counts in product(*(range(axis.extent) for axis in reduce)):
        dst, src, wgt = (
            base + sum(n * axis.strides[operand] for n, axis in zip(counts, reduce, strict=True))
            for operand, base in enumerate(box.base)
        )
        firsts.append((dst, src, wgt))
    return DepthwiseBox(
        axes=moving, firsts=tuple(firsts), taps=shape.taps, step=shape.step, overwrite=overwrite
    )


def depthwise_general(
    pads: Scratchpads, uops: UopArray, shape: LoopShape, count: int, *, overwrite: bool = False
) -> None:
    for chunk in index_chunks(uops, shape, count):
        dst, src, wgt = (last_writers(chunk) if overwrite else chunk).T
        sums = np.zeros((len(dst), *pads.acc.shape[1:]), dtype=np.int32)
        for tap in range(shape.taps):
            sums += np.multiply(
                pads.inp[src + tap * shape.step], pads.wgt[wgt][:, None, :, tap], dtype=np.int32
            )
        add_products(pads, dst, sums, overwrite)
