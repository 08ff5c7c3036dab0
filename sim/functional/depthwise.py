"""Depthwise MAC: ``acc[dst][b][o] += sum over t of inp[src + t * step][b][o] * wgt[wgt][o][t]``.

It has few products for each accumulator, so that arrays of all accumulators are multiplied tap by tap, as
int32: additions modulo 2**32 do not depend on their order.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accel.core.access import LoopShape
from accel.core.isa import UopArray
from accel.sim.functional.gemm import add_products, last_steps, last_writers
from accel.sim.functional.patterns import Axis, Box, Triple, index_chunks, is_injective, strided
from accel.sim.functional.scratchpads import Scratchpads

_MOST_STEPS = 256
"""Array operations that an instruction comes to at most; beyond, its micro-ops are run one by one."""


@dataclass(frozen=True, kw_only=True)
class DepthwiseBox:
    """An affine box of depthwise micro-ops: ``axes`` move dst, and ``firsts`` are the indices of the first
    accumulator's micro-ops."""

    axes: tuple[Axis, ...]
    firsts: tuple[Triple, ...]
    taps: int
    step: int
    overwrite: bool

    def on(self, pads: Scratchpads) -> "TapProducts":
        """The products on these scratchpads."""

        def view(array: npt.NDArray[Any], base: int, operand: int) -> npt.NDArray[Any]:
            return strided(array, base, [(axis.extent, axis.strides[operand]) for axis in self.axes])

        pairs = tuple(
            (view(pads.inp, src + tap * self.step, 1), view(pads.wgt, wgt, 2)[..., None, :, tap])
            for _, src, wgt in self.firsts
            for tap in range(self.taps)
        )
        return TapProducts(pairs, view(pads.acc, self.firsts[0][0], 0), self.overwrite)


class TapProducts(NamedTuple):
    """Views of inp [.., batch, block] and wgt [.., 1, block] to be multiplied, and the accumulators
    [.., batch, block] that get the sum."""

    pairs: tuple[tuple[npt.NDArray[Any], npt.NDArray[np.int8]], ...]
    acc: npt.NDArray[np.int32]
    overwrite: bool

    def run(self) -> None:
        """Add the products to the accumulators, or write them there."""
        fresh = self.overwrite
        for inp, wgt in self.pairs:
            products = np.multiply(inp, wgt, dtype=np.int32)
            if fresh:
                self.acc[...] = products
            else:
                np.add(self.acc, products, out=self.acc)
            fresh = False


def depthwise_box(box: Box, shape: LoopShape, *, overwrite: bool) -> DepthwiseBox | None:
    """What an affine box of micro-ops computes; with ``overwrite``, the last micro-ops of each dst.

    None if two micro-ops meet in one dst in a way that the box's axes do not show, or if they are many.
    """
    if overwrite:
        box = last_steps(box)
    moving = tuple(axis for axis in box.axes if axis.strides[0])
    reduce = [axis for axis in box.axes if not axis.strides[0]]
    steps = shape.taps
    for axis in reduce:
        steps *= axis.extent
    if steps > _MOST_STEPS or not is_injective([(axis.extent, axis.strides[0]) for axis in moving]):
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
    """Run the first ``count`` micro-ops of any depthwise MAC; cost is linear in them."""
    for chunk in index_chunks(uops, shape, count):
        dst, src, wgt = (last_writers(chunk) if overwrite else chunk).T
        sums = np.zeros((len(dst), *pads.acc.shape[1:]), dtype=np.int32)
        for tap in range(shape.taps):
            sums += np.multiply(
                pads.inp[src + tap * shape.step], pads.wgt[wgt][:, None, :, tap], dtype=np.int32
            )
        add_products(pads, dst, sums, overwrite)
