"""Features of an operator that sums up products: a matrix product, a convolution, or a mean over windows.

The output has channels and pixels (rows and columns). A sum runs over blocks of input channels, the *depth*,
and over the taps of a kernel. In a matrix product rows are pixels, columns are channels, and there is one
tap.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import ClassVar, TypeVar

import numpy as np

from accel.base.records import AbstractRecord, replace
from accel.compiler.plans.plan_arrays import BoolArray, FloatArray, IntArray
from accel.compiler.plans.transfer_cost import Count, Transfer, box_transfer
from accel.core.config import Config

SumShapeT = TypeVar("SumShapeT", bound="SumShape")
_RESIDUAL_AND_LATER_SLOTS = 3
"""ALU slots of an accumulator from the addition of a residual to the end: the addition and two clamps."""


class SumShape(AbstractRecord, frozen=True, kw_only=True):
    """An operator's sizes in blocks of the GEMM core, and its epilogue.

    Axis 0 of a picture is its rows, axis 1 its columns.

    Attributes:
        batches, channels, depth: blocks of the batch, and of a group's output and input channels.
        biases: number of int32 tensors with one value per channel: the bias, and operands of operations. The
            model calls all of them bias.
        has_weights: False for means, whose products all need the same block.
        is_diagonal: whether each block of output channels sums up one block of input channels, as in a
            depthwise convolution. Then ``depth`` is 1.
        holds_residual: whether the residual has one element for all pixels of a block of channels.
        stored_bytes: bytes of an element of the output, and of the residual.
        residual_product: as in ``ConvPlan``.
    """

    groups: int
    batches: int
    channels: int
    depth: int
    rows: int
    columns: int
    kernel: tuple[int, int]
    has_weights: bool
    biases: int
    has_residual: bool
    folds_bias: bool
    passes: int
    pass_slots: int
    reset_passes: int
    epilogue_in_store: bool
    shares_parameters: bool
    can_add_by_product: bool
    stored_bytes: int
    residual_product: bool = False
    holds_residual: bool = False
    is_diagonal: bool = False
    loads_padding: ClassVar[bool] = False
    """Whether LOADs of the input write zeros around it, because products with padding are executed."""
    loads_bias_first: ClassVar[bool] = False
    """Whether LOADs of operands wait until a resident bias is loaded."""

    @property
    def clips_columns(self) -> bool:
        """Whether some taps of a row fall into padding, whose products are not executed."""
        return False

    @property
    def has_bias(self) -> bool:
        return self.biases > 0

    @property
    def taps(self) -> int:
        return self.kernel[0] * self.kernel[1]

    @property
    def output_blocks(self) -> int:
        return self.groups * self.batches * self.channels * self.rows * self.columns

    @property
    def bias_blocks(self) -> int:
        if self.epilogue_in_store:
            return 1 if self.shares_parameters else self.groups * self.channels
        return max(1, self.biases) * self.groups * self.channels

    @property
    def residual_blocks(self) -> int:
        if not self.has_residual:
            return 0
        return self.groups * self.batches * self.channels if self.holds_residual else self.output_blocks

    @property
    def identity_blocks(self) -> int:
        """Blocks of the identity matrix in ``wgt``: one for a residual, those of a group for a mean."""
        if self.has_weights:
            return int(self.residual_product)
        return 1 if self.is_diagonal else self.channels * self.depth

    @property
    def gemm_slots(self) -> int:
        """Slots of all GEMM micro-ops."""
        blocks = self.groups * self.batches * self.channels * self.depth
        down, across = (int(self.tap_counts(axis)[-1, -1]) for axis in (0, 1))
        return blocks * down * across

    @property
    def slots(self) -> int:
        """Slots of the compute unit."""
        return self.gemm_slots + self.output_blocks * self.pass_slots

    @property
    def residual_in_accumulators(self) -> bool:
        return self.has_residual and not self.epilogue_in_store and not self.residual_product

    @property
    def slots_before_residual(self) -> int:
        """Slots of an accumulator between the products and the addition of a residual."""
        return self.pass_slots - self.reset_passes - _RESIDUAL_AND_LATER_SLOTS

    def store_pace(self, config: Config) -> float:
        """Requantization takes several cycles per beat if it has few lanes."""
        return config.bus_bytes / config.lanes if self.epilogue_in_store else 1.0

    def residual_variants(self: SumShapeT) -> list[SumShapeT]:
        has_choice = self.has_residual and self.can_add_by_product and not self.epilogue_in_store
        return [self, replace(self, residual_product=True)] if has_choice else [self]

    @abstractmethod
    def tap_counts(self, axis: int) -> IntArray:
        """Return prefix sums of the executed products along an axis.

        Element [o, t] counts the pairs of one of the first ``o`` outputs and one of the first ``t`` taps that
        meet in the input. The shape is (outputs + 1, taps + 1).
        """

    @abstractmethod
    def input_extent(self, axis: int, outputs: Count, taps: Count) -> IntArray:
        """Return the most rows or columns of the input that adjacent outputs and taps can need."""

    @abstractmethod
    def loaded_extent(self, axis: int, output: Count, outputs: Count, tap: Count, taps: Count) -> IntArray:
        """Return the rows or columns that a tile's step loads, without padding.

        ``output`` and ``tap`` are its first, ``outputs`` and ``taps`` their numbers.
        """

    @abstractmethod
    def tile_extents(self, axis: int, count: int) -> list[int]:
        """Return about ``count`` numbers of rows or columns of a tile that are worth trying."""

    def reuses_rows_of_tile_above(self, rows_apart: IntArray, taps: IntArray) -> BoolArray:
        """Return whether a tile's last step and the first step of the tile below need the same input.

        ``taps`` are the rows of the kernel in a step.
        """
        del rows_apart
        return np.zeros_like(taps, dtype=bool)

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
        """Return the zero elements that a LOAD writes around the input of one block of depth.

        Args:
            row, rows, column, columns: first row and column, and size, of the tile's outputs.
            tap, taps: first row of the kernel in the step, and number of rows.
            keeps_rows: whether the buffer still holds the rows of zeros above and below.
        """
        del rows, column, columns, tap, taps, keeps_rows
        return np.asarray(0 * row)

    def distinct_tiles(self, axis: int, part: int, taps: int) -> int:
        """Return the number of patterns of executed products among tiles of ``part`` outputs.

        Steps of ``taps`` taps count separately. Each pattern needs its own micro-ops.
        """
        return _distinct_tiles(self, axis, part, taps)

    def total_extent(self, axis: int, part: int, taps: int) -> int:
        return _total_extent(self, axis, part, taps)

    def residual_beats(
        self, config: Config, batches: IntArray, channels: IntArray, output: Transfer
    ) -> FloatArray:
        """Return the beats of the store unit's LOADs."""
        if not self.has_residual:
            return 0.0 * output.beats
        if not self.holds_residual:
            return output.beats
        one = self.channel_transfer(config.out_element_bytes, config, np.ones_like(channels))
        return one.beats * channels * batches

    @abstractmethod
    def input_transfer(
        self, config: Config, rows: IntArray, columns: IntArray, depth: IntArray
    ) -> Transfer: ...

    @abstractmethod
    def weight_transfer(
        self, config: Config, channels: IntArray, depth: IntArray, taps: IntArray
    ) -> Transfer:
        """``taps`` counts rows of the kernel."""

    @abstractmethod
    def output_transfer(
        self, config: Config, channels: IntArray, rows: IntArray, columns: IntArray
    ) -> Transfer:
        """It is also the cost of loading a residual."""

    def channel_transfer(self, element_bytes: int, config: Config, channels: IntArray) -> Transfer:
        """One element per block of channels, such as a bias."""
        return box_transfer(config, element_bytes, (1, 1), (1, 1), channels)

    def bias_is_resident(self, pixels_outer: BoolArray, fits: BoolArray) -> BoolArray:
        """Return whether the bias of all channels stays in accumulators, by loop order and free space."""
        del pixels_outer
        return fits


@lru_cache(maxsize=1 << 14)
def _distinct_tiles(shape: SumShape, axis: int, part: int, taps: int) -> int:
    counts = shape.tap_counts(axis)
    whole, kernel = counts.shape[0] - 1, counts.shape[1] - 1
    if int(counts[-1, -1]) == whole * kernel:
        return 2 if whole % part else 1
    is_executed = np.diff(np.diff(counts, axis=0), axis=1) > 0
    boxes = (
        is_executed[output : output + part, tap : tap + taps]
        for output in range(0, whole, part)
        for tap in range(0, kernel, taps)
    )
    return len({(box.shape, box.tobytes()) for box in boxes})


@lru_cache(maxsize=1 << 14)
def _total_extent(shape: SumShape, axis: int, part: int, taps: int) -> int:
    whole = (shape.rows, shape.columns)[axis]
    output = np.arange(0, whole, part)[:, None]
    tap = np.arange(0, shape.kernel[axis], taps)
    outputs, step_taps = np.minimum(part, whole - output), np.minimum(taps, shape.kernel[axis] - tap)
    return int(shape.loaded_extent(axis, output, outputs, tap, step_taps).sum())
