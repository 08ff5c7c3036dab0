"""Features of matrix products."""

from __future__ import annotations

from math import prod

import numpy as np

from accel.compiler.ops.workload import Workload, has_two_zeros
from accel.compiler.plans.epilogue_cost import can_add_by_product, epilogue_cost, stored_element_bytes
from accel.compiler.plans.part_sizes import spread_part_sizes
from accel.compiler.plans.plan_arrays import BoolArray, IntArray
from accel.compiler.plans.sum_shape import SumShape
from accel.compiler.plans.transfer_cost import Count, Transfer, box_transfer
from accel.core.config import Config


class GemmShape(SumShape, frozen=True, kw_only=True):
    """A matrix product in blocks of the GEMM core.

    Attributes:
        has_two_zeros: whether both operands have zero points. Then all steps have the same number of blocks,
            and each block is provably whole.
    """

    has_two_zeros: bool
    transpose_a: bool
    transpose_b: bool

    def tap_counts(self, axis: int) -> IntArray:
        return np.outer(np.arange((self.columns if axis else self.rows) + 1), np.arange(2))

    def input_extent(self, axis: int, outputs: Count, taps: Count) -> IntArray:
        return np.asarray(outputs)

    def loaded_extent(self, axis: int, output: Count, outputs: Count, tap: Count, taps: Count) -> IntArray:
        return np.asarray(outputs * np.ones_like(tap))

    def tile_extents(self, axis: int, count: int) -> list[int]:
        return spread_part_sizes(self.columns if axis else self.rows, count)

    def input_transfer(self, config: Config, rows: IntArray, columns: IntArray, depth: IntArray) -> Transfer:
        size = config.inp_element_bytes
        if self.transpose_a:
            return box_transfer(config, size, (1, 1), (depth, self.rows), rows)
        return box_transfer(config, size, (1, 1), (rows, self.depth), depth)

    def weight_transfer(
        self, config: Config, channels: IntArray, depth: IntArray, taps: IntArray
    ) -> Transfer:
        size = config.wgt_element_bytes
        if self.transpose_b:
            return box_transfer(config, size, (1, 1), (channels, self.depth), depth)
        return box_transfer(config, size, (1, 1), (depth, self.channels), channels)

    def output_transfer(
        self, config: Config, channels: IntArray, rows: IntArray, columns: IntArray
    ) -> Transfer:
        return box_transfer(config, self.stored_bytes, (1, 1), (rows, self.channels), channels)

    def bias_is_resident(self, pixels_outer: BoolArray, fits: BoolArray) -> BoolArray:
        """Return whether rows are the outer loop, whose iterations all need the bias of all columns."""
        return pixels_outer


def gemm_shape(workload: Workload, config: Config) -> GemmShape:
    """Return the features of a workload."""
    *several, rows, columns = workload.output.shape
    (k,) = workload.reduce_axes
    a, b = workload.factors
    cost = epilogue_cost(workload, config, k.extent)
    return GemmShape(
        groups=prod(several),
        batches=1,
        rows=-(-rows // config.batch),
        columns=1,
        channels=-(-columns // config.block_out),
        depth=-(-k.extent // config.block_in),
        kernel=(1, 1),
        has_weights=True,
        has_two_zeros=has_two_zeros(workload),
        transpose_a=a.indices[-2] is k,
        transpose_b=b.indices[-1] is k,
        biases=len(workload.channel_tensors),
        has_residual=workload.residual is not None,
        folds_bias=cost.folds_bias,
        passes=cost.passes,
        pass_slots=cost.slots,
        reset_passes=cost.reset_passes,
        epilogue_in_store=cost.in_store,
        shares_parameters=cost.shares_parameters,
        can_add_by_product=can_add_by_product(config),
        stored_bytes=stored_element_bytes(workload, config),
    )
