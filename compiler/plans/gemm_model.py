"""Matrix products as the model of the machine sees them: what a tile of the result meets, where it lies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accel.compiler.ops.workload import Workload
from accel.compiler.plans.arrays import BoolArray, IntArray
from accel.compiler.plans.blocking import adds_by_product, passes_of
from accel.compiler.plans.sums import Sums, part_sizes
from accel.compiler.plans.transfers import Count, Moved, moved
from accel.core.config import Config


@dataclass(frozen=True, kw_only=True)
class GemmShape(Sums):
    """A matrix product in blocks of the GEMM core: ``rows`` are its rows, ``channels`` its columns.

    Attributes:
        transpose_a, transpose_b: how the operands lie in DRAM.
    """

    transpose_a: bool
    transpose_b: bool

    def met(self, way: int) -> IntArray:
        """Every row meets the one tap that there is."""
        return np.outer(np.arange((self.columns if way else self.rows) + 1), np.arange(2))

    def seen(self, way: int, outputs: Count, taps: Count) -> IntArray:
        """Each row of the result needs one of the first operand."""
        return np.asarray(outputs)

    def loaded(self, way: int, output: Count, outputs: Count, tap: Count, taps: Count) -> IntArray:
        """Each row of the result needs one of the first operand."""
        return np.asarray(outputs * np.ones_like(tap))

    def sizes(self, way: int, most: int) -> list[int]:
        """Rows of tiles of the result."""
        return part_sizes(self.columns if way else self.rows, most)

    def inputs_moved(self, config: Config, rows: IntArray, columns: IntArray, depth: IntArray) -> Moved:
        """Of the first operand."""
        size = config.inp_element_bytes
        if self.transpose_a:
            return moved(config, size, (1, 1), (depth, self.rows), rows)
        return moved(config, size, (1, 1), (rows, self.depth), depth)

    def weights_moved(self, config: Config, channels: IntArray, depth: IntArray, taps: IntArray) -> Moved:
        """Of the second operand."""
        size = config.wgt_element_bytes
        if self.transpose_b:
            return moved(config, size, (1, 1), (channels, self.depth), depth)
        return moved(config, size, (1, 1), (depth, self.channels), channels)

    def outputs_moved(self, config: Config, channels: IntArray, rows: IntArray, columns: IntArray) -> Moved:
        """Of the result, or of the residual."""
        return moved(config, config.out_element_bytes, (1, 1), (rows, self.channels), channels)

    def bias_stays(self, pixels_outer: BoolArray, room: BoolArray) -> BoolArray:
        """Where rows are outermost, the bias of all columns is needed again for each."""
        return pixels_outer


def gemm_shape(workload: Workload, config: Config) -> GemmShape:
    """A matrix product in blocks of a machine's GEMM core."""
    rows, columns = workload.output.shape
    (k,) = workload.reduce_axes
    a, b = workload.factors
    cost = passes_of(workload, config, k.extent)
    return GemmShape(
        groups=1,
        batches=1,
        rows=-(-rows // config.batch),
        columns=1,
        channels=-(-columns // config.block_out),
        depth=-(-k.extent // config.block_in),
        kernel=(1, 1),
        weighted=True,
        transpose_a=a.indices[0] is k,
        transpose_b=b.indices[1] is k,
        bias=workload.bias is not None,
        residual=workload.residual is not None,
        folded=cost.folded,
        passes=cost.passes,
        pass_slots=cost.slots,
        resets=cost.resets,
        stored=cost.stored,
        alike=cost.alike,
        square=adds_by_product(config),
    )
