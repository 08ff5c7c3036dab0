"""Convolutions as the model of the machine sees them: what a part of the output meets, and where it lies.

Transposed convolutions, and means over windows, are such sums, too.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar

import numpy as np

from accel.compiler.ops.workload import Workload
from accel.compiler.plans.arrays import BoolArray, IntArray
from accel.compiler.plans.blocking import adds_by_product, passes_of
from accel.compiler.plans.conv_schedule import merged_groups, taps_at_once
from accel.compiler.plans.sums import Sums, part_sizes
from accel.compiler.plans.transfers import Count, Moved, moved
from accel.core.config import Config


@dataclass(frozen=True, kw_only=True)
class ConvShape(Sums):
    """A convolution in blocks of the GEMM core.

    Attributes:
        height, width: of the input.
        stride: of the output in rows and columns of what is loaded.
        skip: distance of the rows that are loaded.
        dilation: of the kernel in rows and columns of the input.
        is_transposed: whether it is a transposed convolution.
        up: rows and columns of the output for each of the input, in such a one.
        top, left: zeros in front of the input, which are neither loaded nor multiplied.
    """

    height: int
    width: int
    stride: tuple[int, int]
    skip: int
    dilation: tuple[int, int]
    is_transposed: bool
    up: tuple[int, int]
    top: int
    left: int
    bias_first: ClassVar[bool] = True

    @cached_property
    def _met(self) -> tuple[IntArray, IntArray]:
        if self.is_transposed:
            down = _meet_transposed(self.rows, self.kernel[0], self.up[0], self.top, self.height)
            across = _meet_transposed(self.columns, self.kernel[1], self.up[1], self.left, self.width)
        else:
            stride = self.stride[0] * self.skip
            down = _meet(self.rows, self.kernel[0], stride, self.dilation[0], self.top, self.height)
            across = _meet(
                self.columns, self.kernel[1], self.stride[1], self.dilation[1], self.left, self.width
            )
        return _before(down), _before(across)

    @property
    def cut(self) -> bool:
        """Whether padding is cut off in front of columns, or behind them."""
        whole = self.columns * self.kernel[1]
        return not self.is_transposed and int(self.met(1)[-1, -1]) < whole

    def met(self, way: int) -> IntArray:
        """How many pairs of an output and a tap before a place meet in an element of the input."""
        return self._met[way]

    def reach(self, way: int, outputs: Count, taps: Count) -> IntArray:
        """Rows (``way`` 0) or columns (1) of what is loaded that so many neighbours of the output and of the
        kernel meet, and what lies between."""
        if self.is_transposed:
            low, high = self._phases(way)
            return np.asarray(-(-outputs // self.up[way]) - (-taps // self.up[way]) - 1 + high - low)
        return np.asarray((outputs - 1) * self.stride[way] + (taps - 1) * self.dilation[way] + 1)

    def start(self, way: int, output: Count, tap: Count) -> IntArray:
        """The first row or column of the padded input that outputs and taps from these on meet."""
        if not self.is_transposed:
            return np.asarray(output * self.stride[way] + tap * self.dilation[way])
        before, up = (self.top, self.left)[way], self.up[way]
        last = -(-self.kernel[way] // up) - 1
        return np.asarray(output // up + before // up - last + self._phases(way)[0] + before)

    def _phases(self, way: int) -> tuple[int, int]:
        """What differences of phases add to places in the input."""
        up, before = self.up[way], (self.top, self.left)[way] % self.up[way]
        return (before - up + 1) // up, (before + up - 1) // up

    def seen(self, way: int, outputs: Count, taps: Count) -> IntArray:
        """Most rows or columns of the input that so many outputs and taps side by side load."""
        whole = self.width if way else -(-self.height // self.skip)
        return np.minimum(self.reach(way, outputs, taps), whole)

    def loaded(self, way: int, output: Count, outputs: Count, tap: Count, taps: Count) -> IntArray:
        """Rows or columns of the input that outputs and taps from these on load, without padding."""
        size = self.reach(way, outputs, taps)
        if not way and self.skip > 1:
            return size
        start = self.start(way, output, tap)
        before, whole = (self.top, self.height) if not way else (self.left, self.width)
        return np.asarray(np.maximum(np.minimum(start + size, before + whole) - np.maximum(start, before), 0))

    def same_rows(self, below: IntArray, taps: IntArray) -> BoolArray:
        """Whether the last ones of the kernel's rows, so many at a time, meet the same rows of the input as
        the first ones of outputs so many rows below."""
        whole = (taps < self.kernel[0]) & (self.kernel[0] % taps == 0)
        apart = (self.kernel[0] - taps) * self.dilation[0] == below * self.stride[0]
        return np.asarray(whole & apart & (not self.is_transposed))

    def sizes(self, way: int, most: int) -> list[int]:
        """Rows or columns of tiles of the output that are worth trying; whole phases of transposed ones."""
        size, up = (self.rows, self.columns)[way], self.up[way]
        return [min(size, part * up) for part in part_sizes(-(-size // up), most)]

    def inputs_moved(self, config: Config, rows: IntArray, columns: IntArray, depth: IntArray) -> Moved:
        """Of the input."""
        boxes, lines = (depth, self.height * self.width), (rows, self.skip * self.width)
        return moved(config, config.inp_element_bytes, boxes, lines, columns)

    def weights_moved(self, config: Config, channels: IntArray, depth: IntArray, taps: IntArray) -> Moved:
        """Of the weights; ``taps`` are rows of the kernel."""
        size = config.wgt_element_bytes
        if not self.weighted:
            return moved(config, size, (1, 1), (1, 1), channels * depth)
        boxes, lines = (channels, self.depth * self.taps), (depth, self.taps)
        return moved(config, size, boxes, lines, taps * self.kernel[1])

    def outputs_moved(self, config: Config, channels: IntArray, rows: IntArray, columns: IntArray) -> Moved:
        """Of the output, or of the residual."""
        boxes, lines = (channels, self.rows * self.columns), (rows, self.columns)
        return moved(config, config.out_element_bytes, boxes, lines, columns)


@dataclass(frozen=True, kw_only=True)
class DepthwiseShape(ConvShape):
    """A depthwise convolution, whose micro-ops multiply a whole row of the kernel: that has one column.

    Zeros around the input are multiplied, as they are in the scratchpad.

    Attributes:
        beside: columns of the kernel behind the first.
    """

    beside: int
    padded: ClassVar[bool] = True

    @cached_property
    def _met(self) -> tuple[IntArray, IntArray]:
        down, across = (self.rows, self.kernel[0]), (self.columns, self.kernel[1])
        return _before(np.ones(down, dtype=np.int64)), _before(np.ones(across, dtype=np.int64))

    def reach(self, way: int, outputs: Count, taps: Count) -> IntArray:
        return super().reach(way, outputs, taps) + self.beside * way

    def seen(self, way: int, outputs: Count, taps: Count) -> IntArray:
        return self.reach(way, outputs, taps)

    def zeros(
        self,
        row: Count,
        rows: Count,
        column: Count,
        columns: Count,
        tap: Count,
        taps: Count,
        *,
        between: BoolArray,
    ) -> IntArray:
        down, across = (
            self.loaded(0, row, rows, tap, taps),
            self.loaded(1, column, columns, 0, self.kernel[1]),
        )
        written = np.where(between, down, self.reach(0, rows, taps))
        return np.asarray(written * self.reach(1, columns, self.kernel[1]) - down * across)


def _before(met: IntArray) -> IntArray:
    """Sums over all that lies before each place, in both directions."""
    found = np.zeros((met.shape[0] + 1, met.shape[1] + 1), dtype=np.int64)
    found[1:, 1:] = met.cumsum(axis=0).cumsum(axis=1)
    return found


def _meet(outputs: int, kernel: int, stride: int, dilation: int, before: int, size: int) -> IntArray:
    place = np.arange(outputs)[:, None] * stride + np.arange(kernel) * dilation - before
    return ((place >= 0) & (place < size)).astype(np.int64)


def _meet_transposed(outputs: int, kernel: int, up: int, before: int, size: int) -> IntArray:
    place = np.arange(outputs)[:, None] + before - np.arange(kernel)
    met: IntArray = ((place % up == 0) & (place >= 0) & (place < size * up)).astype(np.int64)
    return met


def conv_shape(workload: Workload, config: Config) -> ConvShape:
    """The shape of a convolution on a machine."""
    sizes = workload.parameters
    _, _, rows, columns = workload.output.shape
    window = workload.data.tensor.shape
    kernel = tuple(sizes["kernel"])
    vertical, horizontal = up = sizes["stride"]
    transposed = workload.name == "conv2d_transpose"
    if transposed:
        vertical = horizontal = 1
    dilation = tuple(sizes.get("dilation", (1, 1)))
    reach = (kernel[0] - 1) * dilation[0] + 1
    skip = vertical if not transposed and rows > 1 and window[2] < (rows - 1) * vertical + reach else 1
    top, left, _, _ = sizes["padding"]
    merged = merged_groups(workload, config)
    beside = max(0, taps_at_once(workload, config) - 1)
    length = (1 if beside else merged.inputs) * kernel[0] * kernel[1]
    cost = passes_of(workload, config, length)
    diagonal = merged.is_diagonal(config)
    found = ConvShape(
        groups=1 if diagonal else merged.count,
        diagonal=diagonal,
        weighted=workload.is_product,
        batches=-(-sizes["N"] // config.batch),
        channels=merged.count if diagonal else -(-merged.outputs // config.block_out),
        depth=-(-merged.inputs // config.block_in),
        rows=rows,
        columns=columns,
        height=sizes["H"],
        width=sizes["W"],
        kernel=(kernel[0], kernel[1]),
        stride=(vertical // skip, horizontal),
        skip=skip,
        dilation=(dilation[0], dilation[1]),
        is_transposed=transposed,
        up=(up[0], up[1]) if transposed else (1, 1),
        top=top,
        left=left,
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
    if not beside:
        return found
    values = {one.name: getattr(found, one.name) for one in fields(found)}
    return DepthwiseShape(**(values | {"kernel": (kernel[0], 1), "beside": beside}))
