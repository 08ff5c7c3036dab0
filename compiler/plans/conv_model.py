"""Features of convolutions, transposed convolutions and means over windows."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from accel.base.records import field_names
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.epilogue_cost import (
    can_add_by_product,
    epilogue_cost,
    has_channel_residual,
    stored_element_bytes,
)
from accel.compiler.plans.merged_groups import merged_groups, taps_at_once
from accel.compiler.plans.part_sizes import spread_part_sizes
from accel.compiler.plans.plan_arrays import BoolArray, IntArray, ceil_div
from accel.compiler.plans.sum_shape import SumShape
from accel.compiler.plans.transfer_cost import Count, Transfer, box_transfer
from accel.core.config import Config


class ConvShape(SumShape, frozen=True, kw_only=True, dict=True):
    """A convolution in blocks of the GEMM core.

    Attributes:
        stride: input rows and columns between neighbouring outputs, counted in loaded rows.
        row_step: distance of loaded input rows. For example, a 1x1 kernel with stride 2 needs every second
            row: ``row_step`` is 2 and the vertical ``stride`` 1.
        dilation: input rows and columns between neighbouring taps.
        upsampling: output rows and columns per input row and column of a transposed convolution.
        top, left: padding before the input. It is neither loaded nor multiplied.
    """

    height: int
    width: int
    stride: tuple[int, int]
    row_step: int
    dilation: tuple[int, int]
    is_transposed: bool
    upsampling: tuple[int, int]
    top: int
    left: int
    loads_bias_first: ClassVar[bool] = True

    @cached_property
    def _tap_counts(self) -> tuple[IntArray, IntArray]:
        if self.is_transposed:
            rows, columns = (
                _transposed_overlaps(*sizes)
                for sizes in (
                    (self.rows, self.kernel[0], self.upsampling[0], self.top, self.height),
                    (self.columns, self.kernel[1], self.upsampling[1], self.left, self.width),
                )
            )
        else:
            stride = self.stride[0] * self.row_step
            rows = _overlaps(self.rows, self.kernel[0], stride, self.dilation[0], self.top, self.height)
            columns = _overlaps(
                self.columns, self.kernel[1], self.stride[1], self.dilation[1], self.left, self.width
            )
        return _prefix_sums(rows), _prefix_sums(columns)

    @property
    def clips_columns(self) -> bool:
        whole = self.columns * self.kernel[1]
        return not self.is_transposed and int(self.tap_counts(1)[-1, -1]) < whole

    def tap_counts(self, axis: int) -> IntArray:
        return self._tap_counts[axis]

    def window_extent(self, axis: int, outputs: Count, taps: Count) -> IntArray:
        """Return the loaded rows or columns that outputs and taps span."""
        if self.is_transposed:
            low, high = self._phase_offsets(axis)
            up = self.upsampling[axis]
            return np.asarray(ceil_div(outputs, up) + ceil_div(taps, up) - 1 + high - low)
        return np.asarray((outputs - 1) * self.stride[axis] + (taps - 1) * self.dilation[axis] + 1)

    def window_start(self, axis: int, output: Count, tap: Count) -> IntArray:
        """Positions count in the padded input."""
        if not self.is_transposed:
            return np.asarray(output * self.stride[axis] + tap * self.dilation[axis])
        before, up = (self.top, self.left)[axis], self.upsampling[axis]
        last_tap = -(-self.kernel[axis] // up) - 1
        return np.asarray(output // up + before // up - last_tap + self._phase_offsets(axis)[0] + before)

    def _phase_offsets(self, axis: int) -> tuple[int, int]:
        """Return the least and the greatest input shift due to an output's position modulo ``upsampling``."""
        up, before = self.upsampling[axis], (self.top, self.left)[axis] % self.upsampling[axis]
        return (before - up + 1) // up, (before + up - 1) // up

    def input_extent(self, axis: int, outputs: Count, taps: Count) -> IntArray:
        whole = self.width if axis else -(-self.height // self.row_step)
        return np.minimum(self.window_extent(axis, outputs, taps), whole)

    def loaded_extent(self, axis: int, output: Count, outputs: Count, tap: Count, taps: Count) -> IntArray:
        size = self.window_extent(axis, outputs, taps)
        if not axis and self.row_step > 1:
            return size
        start = self.window_start(axis, output, tap)
        before, whole = (self.top, self.height) if not axis else (self.left, self.width)
        return np.asarray(np.maximum(np.minimum(start + size, before + whole) - np.maximum(start, before), 0))

    def reuses_rows_of_tile_above(self, rows_apart: IntArray, taps: IntArray) -> BoolArray:
        has_whole_steps = (taps < self.kernel[0]) & (self.kernel[0] % taps == 0)
        is_same = (self.kernel[0] - taps) * self.dilation[0] == rows_apart * self.stride[0]
        return np.asarray(has_whole_steps & is_same & (not self.is_transposed))

    def tile_extents(self, axis: int, count: int) -> list[int]:
        """Return multiples of ``upsampling``."""
        size, up = (self.rows, self.columns)[axis], self.upsampling[axis]
        return [min(size, part * up) for part in spread_part_sizes(-(-size // up), count)]

    def input_transfer(self, config: Config, rows: IntArray, columns: IntArray, depth: IntArray) -> Transfer:
        boxes, lines = (depth, self.height * self.width), (rows, self.row_step * self.width)
        return box_transfer(config, config.inp_element_bytes, boxes, lines, columns)

    def weight_transfer(
        self, config: Config, channels: IntArray, depth: IntArray, taps: IntArray
    ) -> Transfer:
        size = config.wgt_element_bytes
        if not self.has_weights:
            return box_transfer(config, size, (1, 1), (1, 1), channels * depth)
        boxes, lines = (channels, self.depth * self.taps), (depth, self.taps)
        return box_transfer(config, size, boxes, lines, taps * self.kernel[1])

    def output_transfer(
        self, config: Config, channels: IntArray, rows: IntArray, columns: IntArray
    ) -> Transfer:
        boxes, lines = (channels, self.rows * self.columns), (rows, self.columns)
        return box_transfer(config, self.stored_bytes, boxes, lines, columns)


class DepthwiseShape(ConvShape, frozen=True, kw_only=True, dict=True):
    """A depthwise convolution by depthwise MACs, which multiply a whole row of the kernel in one slot.

    A row counts as one tap with ``extra_taps`` more columns.
    """

    extra_taps: int
    loads_padding: ClassVar[bool] = True

    @cached_property
    def _tap_counts(self) -> tuple[IntArray, IntArray]:
        rows, columns = (self.rows, self.kernel[0]), (self.columns, self.kernel[1])
        return _prefix_sums(np.ones(rows, dtype=np.int64)), _prefix_sums(np.ones(columns, dtype=np.int64))

    def window_extent(self, axis: int, outputs: Count, taps: Count) -> IntArray:
        return super().window_extent(axis, outputs, taps) + self.extra_taps * axis

    def input_extent(self, axis: int, outputs: Count, taps: Count) -> IntArray:
        return self.window_extent(axis, outputs, taps)

    def padding_words(
        self,
        row: Count,
        rows: Count,
        column: Count,
        columns: Count,
        tap: Count,
        taps: Count,
        *,
        keeps_rows: BoolArray,
    ) -> IntArray:
        loaded_rows = self.loaded_extent(0, row, rows, tap, taps)
        loaded_columns = self.loaded_extent(1, column, columns, 0, self.kernel[1])
        written_rows = np.where(keeps_rows, loaded_rows, self.window_extent(0, rows, taps))
        written = written_rows * self.window_extent(1, columns, self.kernel[1])
        return np.asarray(written - loaded_rows * loaded_columns)


def _prefix_sums(overlaps: IntArray) -> IntArray:
    sums = np.zeros((overlaps.shape[0] + 1, overlaps.shape[1] + 1), dtype=np.int64)
    sums[1:, 1:] = overlaps.cumsum(axis=0).cumsum(axis=1)
    return sums


def _overlaps(outputs: int, kernel: int, stride: int, dilation: int, before: int, size: int) -> IntArray:
    """Return 1 for each output and tap that meet in the input, 0 for those in padding."""
    position = np.arange(outputs)[:, None] * stride + np.arange(kernel) * dilation - before
    return ((position >= 0) & (position < size)).astype(np.int64)


def _transposed_overlaps(outputs: int, kernel: int, up: int, before: int, size: int) -> IntArray:
    position = np.arange(outputs)[:, None] + before - np.arange(kernel)
    meets: IntArray = ((position % up == 0) & (position >= 0) & (position < size * up)).astype(np.int64)
    return meets


def conv_shape(workload: Workload, config: Config) -> ConvShape:
    """Return the features of a workload."""
    sizes = workload.parameters
    merged = merged_groups(workload, config)
    extra_taps = max(0, taps_at_once(workload, config) - 1)
    kernel_rows, kernel_columns = sizes["kernel"]
    sum_length = (1 if extra_taps else merged.inputs) * kernel_rows * kernel_columns
    cost = epilogue_cost(workload, config, sum_length)
    is_diagonal = merged.is_diagonal(config)
    shape = ConvShape(
        groups=1 if is_diagonal else merged.count,
        is_diagonal=is_diagonal,
        has_weights=workload.is_product,
        batches=-(-sizes["N"] // config.batch),
        channels=merged.count if is_diagonal else -(-merged.outputs // config.block_out),
        depth=-(-merged.inputs // config.block_in),
        biases=len(workload.channel_tensors),
        has_residual=workload.residual is not None,
        holds_residual=has_channel_residual(workload),
        folds_bias=cost.folds_bias,
        passes=cost.passes,
        pass_slots=cost.slots,
        reset_passes=cost.reset_passes,
        epilogue_in_store=cost.in_store,
        shares_parameters=cost.shares_parameters,
        can_add_by_product=can_add_by_product(config),
        stored_bytes=stored_element_bytes(workload, config),
        **_windows(workload),
    )
    if not extra_taps:
        return shape
    values = {one: getattr(shape, one) for one in field_names(shape)}
    return DepthwiseShape(**(values | {"kernel": (kernel_rows, 1), "extra_taps": extra_taps}))


def _windows(workload: Workload) -> dict[str, Any]:
    sizes = workload.parameters
    _, _, rows, columns = workload.output.shape
    loaded_rows = workload.data.tensor.shape[2]
    kernel, stride = tuple(sizes["kernel"]), tuple(sizes["stride"])
    is_transposed = workload.name == "conv2d_transpose"
    vertical, horizontal = (1, 1) if is_transposed else stride
    dilation = tuple(sizes.get("dilation", (1, 1)))
    reach = (kernel[0] - 1) * dilation[0] + 1
    skips_rows = not is_transposed and rows > 1 and loaded_rows < (rows - 1) * vertical + reach
    row_step = vertical if skips_rows else 1
    top, left, _, _ = sizes["padding"]
    return {
        "rows": rows,
        "columns": columns,
        "height": sizes["H"],
        "width": sizes["W"],
        "kernel": kernel,
        "stride": (vertical // row_step, horizontal),
        "row_step": row_step,
        "dilation": dilation,
        "is_transposed": is_transposed,
        "upsampling": stride if is_transposed else (1, 1),
        "top": top,
        "left": left,
    }
