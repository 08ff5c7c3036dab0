"""Features of max pooling."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct

from accel.compiler.ops.pool2d import Taps, sliding_of
from accel.compiler.ops.sliding_window import Sliding
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.epilogue_cost import can_add_by_product
from accel.compiler.plans.plan_arrays import IntArray
from accel.core.config import Config


class PoolShape(Struct, frozen=True, kw_only=True, dict=True):
    """Max pooling in blocks of accumulators.

    A window's maximum is computed first across each of its rows, then down. Each stage compares one element
    with the others.

    Attributes:
        is_signed: whether values are int8.
        has_square_blocks: whether the GEMM core can multiply by an identity matrix.
    """

    batches: int
    channels: int
    slide: Sliding
    is_signed: bool
    has_square_blocks: bool

    @property
    def slots(self) -> int:
        """Slots for comparisons, the same for every plan except for rows that two tiles need."""
        down, across = self.comparisons
        height, width = self.slide.outputs
        if self.slide.kernel[0] > 1 and self.slide.kernel[1] > 1:
            starts = np.arange(height)[:, None] * self.slide.stride[0]
            taps = np.arange(self.slide.kernel[0]) * self.slide.dilation[0] - self.slide.padding[0]
            rows = len(np.intersect1d(starts + taps, np.arange(self.slide.size[0])))
        else:
            rows = height
        return self.batches * self.channels * (rows * int(across[-1]) + width * int(down[-1]))

    @cached_property
    def comparisons(self) -> tuple[IntArray, IntArray]:
        """Prefix sums over outputs, down and across, of the comparisons outside padding."""
        counts = []
        for axis in range(2):
            positions = np.arange(self.slide.outputs[axis])[:, None] * self.slide.stride[axis]
            positions = positions + np.array(Taps.of(self.slide, axis).others, dtype=np.int64)
            inside = ((positions >= 0) & (positions < self.slide.size[axis])).sum(axis=1)
            counts.append(np.concatenate([[0], inside.cumsum()]))
        return counts[0], counts[1]

    @property
    def identity_product_choices(self) -> tuple[bool, ...]:
        """Possible values of ``PoolPlan.identity_products``."""
        slide = self.slide
        windows = zip(slide.kernel, slide.stride, slide.dilation, strict=True)
        is_dense = all(size > 1 and size >= stride and dilation == 1 for size, stride, dilation in windows)
        has_inner_start = all(Taps.of(slide, axis).whole for axis in range(2))
        can_copy = self.is_signed and self.has_square_blocks and is_dense and has_inner_start
        return (False, True) if can_copy else (False,)


def pool_shape(workload: Workload, config: Config) -> PoolShape:
    sizes = workload.parameters
    return PoolShape(
        batches=-(-sizes["N"] // config.batch),
        channels=-(-sizes["C"] // config.block_out),
        slide=sliding_of(workload),
        is_signed=workload.output.dtype == "int8",
        has_square_blocks=can_add_by_product(config),
    )
