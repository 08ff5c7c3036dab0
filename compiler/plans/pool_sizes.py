"""Sizes that follow from plans of max pooling: tiles, buffers, slots, and plans that fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from accel.base.fast_unique import distinct
from accel.compiler.ops.pool2d import Taps
from accel.compiler.plans.plan_arrays import BoolArray, IntArray, ceil_div
from accel.compiler.plans.pool_model import PoolShape
from accel.compiler.plans.pool_plan import PoolTable
from accel.compiler.plans.stride_phases import StridePhases
from accel.compiler.target.builtin_emitters import overwrites
from accel.core.config import Config
from accel.core.scratchpad_specs import SCRATCHPADS

COPY_SLOTS = 2
"""Slots in which the ALU copies an accumulator element."""


class TileSpan(NamedTuple):
    """The part of an axis that a tile covers.

    Attributes:
        part: outputs of a tile that is not the last.
        inputs: rows or columns of the input that it needs.
    """

    begin: IntArray
    part: IntArray
    outputs: IntArray
    inputs: IntArray
    comparisons: IntArray


class PoolSizes:
    """Sizes of tiles for each plan of a table.

    Attributes:
        has_two_stages: whether maxima across a window's rows are a separate stage.
        product_copy_slots: slots in which a product copies an element, with a reset.
    """

    def __init__(self, shape: PoolShape, config: Config, table: PoolTable) -> None:
        self.shape, self.config, self.table = shape, config, table
        self.slide = shape.slide
        self.height, self.width = self.slide.outputs
        self.has_two_stages = min(self.slide.kernel) > 1
        self.channel_tiles = ceil_div(shape.channels, table.channels)
        self.row_tiles = ceil_div(self.height, table.rows)
        self.column_tiles = ceil_div(self.width, table.columns)
        self.uses_products = bool(table.identity_products.any())
        self.phases = StridePhases(shape.slide, 0), StridePhases(shape.slide, 1)
        self.product_copy_slots = 1 if overwrites(config) else 2

    @cached_property
    def taps(self) -> tuple[Taps, Taps]:
        return Taps.of(self.slide, 0), Taps.of(self.slide, 1)

    @property
    def threaded_iterations(self) -> IntArray:
        return np.where(self.table.along_rows, self.row_tiles, self.channel_tiles)

    def has_work_for_threads(self, threads: int | None) -> BoolArray:
        needed = 2 if threads is None else threads
        has_work = (self.table.threads <= self.config.token_limit) & (self.threaded_iterations >= needed)
        return np.where(self.table.threads == 1, ~self.table.along_rows, has_work)

    def fits(self) -> BoolArray:
        fits = self._stores_contiguously() if self.uses_products else np.full(self.row_tiles.shape, True)
        for name, elements in self.buffer_elements().items():
            fits = fits & (elements <= SCRATCHPADS[name].depth(self.config))
        return fits

    def buffer_elements(self) -> dict[str, IntArray]:
        table = self.table
        copies = table.channels * table.threads
        if self.uses_products:
            down, across = self.phases
            rows, columns = down.max_elements(table.rows), across.max_elements(table.columns)
            needed = rows * columns + rows * table.columns * (not across.is_in_place)
            needed = needed + table.rows * table.columns * (not down.is_in_place)
            loaded = down.max_loaded(table.rows) * across.max_loaded(table.columns)
            return {"inp": copies * loaded, "wgt": np.ones_like(copies), "acc": copies * needed}
        rows, columns = self._max_inputs(0, table.rows), self._max_inputs(1, table.columns)
        apart = rows * table.columns if self.has_two_stages and not self.taps[1].own else 0
        return {"acc": copies * (rows * columns + apart + table.rows * table.columns)}

    def _stores_contiguously(self) -> BoolArray:
        """Return which plans' maxima lie without gaps, although they overwrite copied elements.

        A phase with more elements than its tile has outputs would leave gaps.
        """
        down, across = self.phases
        rows = (self.height % self.table.rows == 0) & down.has_one_start | down.starts_with_outputs
        columns = (self.width % self.table.columns == 0) & across.has_one_start | across.starts_with_outputs
        columns_stay = down.is_in_place and across.is_in_place
        return np.asarray((rows | (not down.is_in_place)) & (columns | (not columns_stay)))

    def _max_inputs(self, axis: int, part: IntArray) -> IntArray:
        """Return the most rows or columns of the input that tiles need, or all if windows start anywhere."""
        size = self.slide.size[axis]
        if not self.taps[axis].whole:
            return np.full_like(part, size)
        return np.minimum(size, (part - 1) * self.slide.stride[axis] + self.slide.reach[axis])

    def span(self, axis: int, number: IntArray, part: IntArray) -> TileSpan:
        """``number`` is the tile's along an axis, ``part`` a tile's outputs."""
        slide, size, before = self.slide, self.slide.size[axis], self.slide.padding[axis]
        begin = np.minimum(number * part, slide.outputs[axis])
        end = np.minimum(begin + part, slide.outputs[axis])
        first = np.maximum(0, begin * slide.stride[axis] - before)
        last = np.minimum(size, (end - 1) * slide.stride[axis] + slide.reach[axis] - before)
        inputs = last - first if self.taps[axis].whole else np.full_like(begin, size)
        if self.uses_products:
            inputs = self.phases[axis].loaded(begin, part)
        comparisons = self.shape.comparisons[axis]
        return TileSpan(begin, part, end - begin, inputs, comparisons[end] - comparisons[begin])

    def total_inputs(self, axis: int, part: IntArray) -> IntArray:
        outputs = self.slide.outputs[axis]

        def inputs(size: int) -> int:
            return int(self.span(axis, np.arange(-(-outputs // size)), np.array(size)).inputs.sum())

        return _for_each_size(inputs, part)

    def alu_slots(self, down: TileSpan, across: TileSpan) -> tuple[IntArray, IntArray]:
        """Return a tile's slots per block of channels: of maxima across, and of those down."""
        copies = down.outputs * across.outputs * COPY_SLOTS
        if not self.has_two_stages:
            slots = copies + down.comparisons * across.outputs + across.comparisons * down.outputs
            return 0 * copies, slots
        first = 0 if self.taps[1].own else across.outputs * COPY_SLOTS
        return down.inputs * (first + across.comparisons), copies + down.comparisons * across.outputs

    def product_slots(self, down: TileSpan, across: TileSpan) -> tuple[IntArray, IntArray]:
        """Return the elements that products copy, and the ALU's slots, per tile and block of channels."""
        by_rows, by_columns = self.phases
        rows = by_rows.elements(down.begin, down.part, clips_front=False)
        columns = by_columns.elements(across.begin, across.part, clips_front=True)
        rows_across = by_rows.elements(down.begin, down.part, clips_front=True)
        first = across.comparisons + across.outputs * COPY_SLOTS * (not by_columns.is_in_place)
        second = down.comparisons + down.outputs * COPY_SLOTS * (not by_rows.is_in_place)
        return rows * columns, rows_across * first + across.outputs * second

    def total_slots(self) -> IntArray:
        """Return the slots of all tiles, per block of channels and of the batch."""
        return self._total_product_slots() if self.uses_products else self._total_alu_slots()

    def _total_alu_slots(self) -> IntArray:
        comparisons_down, comparisons_across = (int(sums[-1]) for sums in self.shape.comparisons)
        slots = self.height * self.width * COPY_SLOTS + comparisons_down * self.width
        if not self.has_two_stages:
            return np.full(len(self.table.rows), slots + comparisons_across * self.height)
        copies = 0 if self.taps[1].own else self.width * COPY_SLOTS
        return slots + self.total_inputs(0, self.table.rows) * (comparisons_across + copies)

    def _total_product_slots(self) -> IntArray:
        table, (down, across) = self.table, self.phases
        rows = self._total_elements(0, table.rows, clips_front=False)
        columns = self._total_elements(1, table.columns, clips_front=True)
        rows_across = self._total_elements(0, table.rows, clips_front=True)
        second, first = (
            int(self.shape.comparisons[axis][-1]) + phases.outputs * COPY_SLOTS * (not phases.is_in_place)
            for axis, phases in enumerate((down, across))
        )
        return rows * columns * self.product_copy_slots + rows_across * first + self.width * second

    def _total_elements(self, axis: int, part: IntArray, *, clips_front: bool) -> IntArray:
        phases = self.phases[axis]

        def elements(size: int) -> int:
            begin = np.arange(0, phases.outputs, size)
            return int(phases.elements(begin, np.array(size), clips_front=clips_front).sum())

        return _for_each_size(elements, part)

    @property
    def copied_phases(self) -> int:
        """Pairs of a phase of rows and one of columns. Each is reset right before it is copied."""
        down, across = self.phases
        return len(down.taps) * len(across.taps)

    @property
    def tile_instructions(self) -> int:
        """Instructions of the compute unit per tile, if products copy."""
        down, across = self.phases
        first, second = (len(taps.others) for taps in reversed(self.taps))
        first = first + COPY_SLOTS * (not across.is_in_place)
        second = second + COPY_SLOTS * (not down.is_in_place)
        return self.copied_phases * self.product_copy_slots + len(down.taps) * first + second


def _for_each_size(function: Callable[[int], int], sizes: IntArray) -> IntArray:
    values = {size: function(size) for size in distinct(sizes).tolist()}
    return np.array([values[size] for size in sizes.tolist()], dtype=np.int64)
