"""Bytes of operands that plans load, without data that buffers still hold."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from accel.compiler.plans.plan_arrays import BoolArray, FloatArray, IntArray, ceil_div, map_pairs
from accel.compiler.plans.tile_sizes import TileSizes


class OperandTraffic:
    """The inputs and weights that each plan loads."""

    def __init__(self, sizes: TileSizes) -> None:
        self.sizes, self.shape, self.table = sizes, sizes.shape, sizes.table

    def read_bytes(self) -> FloatArray:
        inputs, weights = self._elements_without_residency
        inputs = np.where(self.sizes.inputs_resident, self._unique_inputs, inputs)
        weights = np.where(self.sizes.weights_resident, self._unique_weights, weights)
        config = self.sizes.config
        read: FloatArray = np.rint(inputs * config.inp_element_bytes + weights * config.wgt_element_bytes)
        return read

    def residency_pays(self) -> BoolArray:
        """Return which plans save loads by each resident operand.

        It pays if the plan would otherwise load the operand repeatedly, and its replacement waits for at most
        one step. A prefetched operand pays if both loops over tiles repeat.
        """
        sizes, shape = self.sizes, self.shape
        prefetches, has_one_group = self.table.prefetch > 0, shape.groups == 1
        has_several_steps = (sizes.steps > 1) | prefetches
        inputs, weights = self._elements_without_residency
        weights_stay = has_one_group & (sizes.pixels_outer | (sizes.channel_tiles == 1))
        inputs_stay = has_one_group & (~sizes.pixels_outer | (sizes.pixel_tiles == 1))
        weights_pay = (weights > self._unique_weights) | sizes.weights_prefetched
        inputs_pay = (inputs > self._unique_inputs) | sizes.inputs_prefetched
        weights_pay &= (has_several_steps | weights_stay) & shape.has_weights
        inputs_pay &= has_several_steps | inputs_stay
        pays: BoolArray = (~sizes.weights_resident | weights_pay) & (~sizes.inputs_resident | inputs_pay)
        rounds, positions = sizes.rounds(sizes.along_channels, sizes.channel_tiles), sizes.pixel_tiles
        outer, inner = np.where(sizes.pixels_outer, (positions, rounds), (rounds, positions))
        prefetch_pays = (sizes.weights_prefetched | sizes.inputs_prefetched) & has_one_group
        pays &= (prefetch_pays & (outer > 1) & (inner > 1)) | ~prefetches
        return pays

    @cached_property
    def buffered_depth(self) -> IntArray:
        """Blocks of depth with their own buffer, which still holds them if the next tile needs the same."""
        threads = np.where(self.sizes.along_depth, self.table.threads, 1)
        buffered = _own_buffer(self.shape.depth, self.table.depth, threads)
        return np.where(self.sizes.kernel_steps == 1, buffered, 0)

    @cached_property
    def reuses_rows(self) -> BoolArray:
        """Whether a tile's first step finds its input in the buffer of the last step of the tile above."""
        sizes = self.sizes
        channel_rounds = sizes.rounds(sizes.along_channels, sizes.channel_tiles)
        is_next = np.where(sizes.pixels_outer, channel_rounds == 1, True)
        has_one_depth = sizes.rounds(sizes.along_depth, sizes.depth_steps) == 1
        is_same = self.shape.reuses_rows_of_tile_above(sizes.rows_apart, self.table.kernel_rows)
        is_one_column = sizes.column_tiles == 1
        return np.asarray(is_next & has_one_depth & is_one_column & is_same & ~sizes.inputs_resident)

    @cached_property
    def _plane(self) -> IntArray:
        """Input elements per block of depth for one block of channels."""
        shape, table, sizes = self.shape, self.table, self.sizes
        rows = map_pairs(lambda part, taps: shape.total_extent(0, part, taps), table.rows, table.kernel_rows)
        tiles_below = np.maximum(shape.rows // table.rows - np.where(sizes.along_rows, table.threads, 1), 0)
        rows = rows - self.reuses_rows * tiles_below * shape.input_extent(0, table.rows, table.kernel_rows)
        columns = map_pairs(
            lambda part, taps: shape.total_extent(1, part, taps),
            table.columns,
            np.full_like(table.columns, shape.kernel[1]),
        )
        return np.asarray(shape.groups * shape.batches * rows * columns)

    @property
    def _unique_inputs(self) -> IntArray:
        """Elements of inputs if each tile loads its own once for all channels."""
        return (self.shape.channels if self.shape.is_diagonal else self.shape.depth) * self._plane

    @property
    def _unique_weights(self) -> int:
        shape = self.shape
        return shape.groups * shape.taps * shape.depth * shape.channels

    @cached_property
    def _elements_without_residency(self) -> tuple[FloatArray, FloatArray]:
        """Elements of inputs and of weights that plans load if no operand is resident."""
        shape, table, sizes = self.shape, self.table, self.sizes
        if not shape.has_weights:
            return self._inputs_without_residency(), np.full(len(table.rows), 1.0 * shape.identity_blocks)
        threads_across = np.where(sizes.along_channels, table.threads, 1)
        threads_down = np.where(sizes.along_rows, table.threads, 1)
        rounds = sizes.row_tiles * (sizes.batch_tiles * sizes.column_tiles)
        own_channels = _own_buffer(shape.channels, table.channels, threads_across)
        channels = np.where(sizes.pixels_outer, own_channels, shape.channels)
        kept = channels * np.minimum(threads_down, sizes.row_tiles)
        reloaded = (shape.channels - channels) * rounds
        buffered = self.buffered_depth * (kept + reloaded)
        elements = buffered + (shape.depth - self.buffered_depth) * shape.channels * rounds
        return self._inputs_without_residency(), 1.0 * shape.groups * shape.taps * elements

    def _inputs_without_residency(self) -> FloatArray:
        shape, table, sizes, plane = self.shape, self.table, self.sizes, self._plane
        if shape.is_diagonal:
            return np.asarray(1.0 * plane * shape.channels)
        threads_across = np.where(sizes.along_channels, table.threads, 1)
        threads_down = np.where(sizes.along_rows, table.threads, 1)
        is_one_column = (sizes.batch_tiles == 1) & (sizes.column_tiles == 1)
        own_rows = is_one_column * _own_buffer(shape.rows, table.rows, threads_down)
        share = 1.0 * np.where(sizes.pixels_outer, shape.rows, own_rows) / shape.rows
        kept = np.minimum(threads_across, sizes.channel_tiles)
        buffered = plane * (share * kept + (1 - share) * sizes.channel_tiles)
        unbuffered = (shape.depth - self.buffered_depth) * (plane * sizes.channel_tiles)
        return np.asarray(self.buffered_depth * buffered + unbuffered)


def _own_buffer(size: int, part: IntArray, buffers: IntArray) -> IntArray:
    """Return how much of ``size``, split into parts that use buffers in turn, has its own buffer.

    For example, 5 parts in 4 buffers: the first and the fifth share a buffer, the other 3 do not.
    """
    count = ceil_div(size, part)
    own: IntArray = np.where(count <= buffers, size, np.maximum(0, 2 * buffers - count) * part)
    return own
