"""The position of each step in the loops of a plan, and the operands that its buffers hold already."""

from __future__ import annotations

import numpy as np

from accel.compiler.plans.operand_traffic import OperandTraffic
from accel.compiler.plans.plan_arrays import BoolArray, FloatArray, IntArray, ceil_div, divide
from accel.compiler.plans.tile_sizes import TileSizes


class LoopRounds:
    """Iterations of a plan's loops. The loop over threads is the innermost one: a *round* is all its threads.

    ``positions`` are rounds over the pixels of the output.
    """

    def __init__(self, sizes: TileSizes) -> None:
        self.sizes, self.shape, self.table = sizes, sizes.shape, sizes.table
        self.traffic = OperandTraffic(sizes)
        threads = self.table.threads
        self.rows = sizes.rounds(sizes.along_rows, sizes.row_tiles)
        self.channels = sizes.rounds(sizes.along_channels, sizes.channel_tiles)
        self.groups = np.where(sizes.along_groups, ceil_div(self.shape.groups, threads), self.shape.groups)
        self.depths = sizes.rounds(sizes.along_depth, sizes.depth_steps)
        self.steps = self.depths * sizes.kernel_steps
        self.positions = sizes.batch_tiles * self.rows * sizes.column_tiles
        self.tiles = self.groups * self.channels * self.positions


class StepPositions:
    """The tile, and the step of its sum, of each pipeline step. Arrays have shape (steps, plans).

    Attributes:
        exists: whether there is such a tile and step. The last round of a loop can lack some threads.
        position, channel_round: rounds of the tile over pixels, and over channels.
        row, column, first_channel, tap: the first of the tile's rows, columns and blocks of output channels,
            and of the kernel's rows in the step. ``rows``, ``columns``, ``channels`` and ``taps`` are their
            numbers.
        batches, depth, input_blocks: blocks of the batch, of the sum, and of the step's input channels.
        has_one_channel: whether the thread has the same channels in all tiles.
        loaded_inputs, loaded_weights: loaded share of an operand, for this step or a later one.
    """

    def __init__(self, loops: LoopRounds, numbers: IntArray) -> None:
        sizes, shape, table = loops.sizes, loops.shape, loops.table
        threads, pixels_outer = table.threads, sizes.pixels_outer
        rounds, self.thread = divide(numbers, threads)
        tile, step = divide(rounds, loops.steps)
        thread = self.thread
        self.is_last_round = tile == loops.tiles - 1
        self.steps_left = loops.steps - 1 - step
        inner = np.where(sizes.along_depth, loops.depths, sizes.kernel_steps)
        quotient, rest = divide(step, inner)
        kernel_step = np.where(sizes.along_depth, quotient, rest)
        depth_step = np.where(sizes.along_depth, rest * threads + thread, quotient)
        inner = np.where(pixels_outer, loops.channels, loops.positions)
        outer = np.where(pixels_outer, loops.positions, loops.channels)
        quotient, low = divide(tile, inner)
        group_round, high = divide(quotient, outer)
        self.channel_round = np.where(pixels_outer, low, high)
        self.position = np.where(pixels_outer, high, low)
        quotient, column = divide(self.position, sizes.column_tiles)
        batch, row_round = divide(quotient, loops.rows)
        channel = np.where(sizes.along_channels, self.channel_round * threads + thread, self.channel_round)
        row = np.where(sizes.along_rows, row_round * threads + thread, row_round)
        group = np.where(sizes.along_groups, group_round * threads + thread, group_round)
        self.exists = exists = (
            (group_round < loops.groups)
            & (group < shape.groups)
            & (channel < sizes.channel_tiles)
            & (row < sizes.row_tiles)
            & (depth_step < sizes.depth_steps)
        )
        self.is_first = exists & (depth_step == 0) & (kernel_step == 0)
        is_last = (depth_step == sizes.depth_steps - 1) & (kernel_step == sizes.kernel_steps - 1)
        self.is_last = exists & is_last
        channel, row, column, depth_step, kernel_step, batch = (
            np.where(exists, one, 0) for one in (channel, row, column, depth_step, kernel_step, batch)
        )
        self.first_channel, self.row, self.column = (
            *(channel * table.channels, row * table.rows, column * table.columns),
        )
        self.tap = kernel_step * table.kernel_rows
        self.channels = np.minimum(table.channels, shape.channels - self.first_channel)
        self.rows = np.minimum(table.rows, shape.rows - self.row)
        self.columns = np.minimum(table.columns, shape.columns - self.column)
        self.depth = np.minimum(table.depth, shape.depth - depth_step * table.depth)
        self.batches = np.minimum(table.batches, shape.batches - batch * table.batches)
        self.taps = np.minimum(table.kernel_rows, shape.kernel[0] - self.tap)
        self.input_blocks = self.channels if shape.is_diagonal else self.depth
        self._find_held_operands(loops, numbers)
        self._spread_prefetches(loops)

    def _find_held_operands(self, loops: LoopRounds, numbers: IntArray) -> None:
        """A buffer holds the operand of the thread's previous step if this step needs the same, and resident
        operands after the first tile that needs them.
        """
        sizes, shape, thread, threads = loops.sizes, loops.shape, self.thread, loops.table.threads

        def of_thread(along: BoolArray, iterations: IntArray) -> IntArray:
            return np.where(along, divide(iterations - thread + threads - 1, threads)[0], iterations)

        has_one_step = of_thread(sizes.along_depth, sizes.depth_steps) * sizes.kernel_steps == 1
        rows = of_thread(sizes.along_rows, sizes.row_tiles)
        has_one_position = sizes.batch_tiles * sizes.column_tiles * rows == 1
        self.has_one_channel = of_thread(sizes.along_channels, sizes.channel_tiles) == 1
        self.holds_inputs = has_one_step & (self.channel_round > 0) & (sizes.pixels_outer | has_one_position)
        if shape.is_diagonal:
            self.holds_inputs = np.zeros_like(self.holds_inputs)
        self.holds_weights = has_one_step & (self.position > 0) & (~sizes.pixels_outer | self.has_one_channel)
        is_below = (self.tap == 0) & (self.row >= sizes.rows_apart) & (self.rows == loops.table.rows)
        self.holds_inputs |= loops.traffic.reuses_rows & is_below
        other_thread_loads = sizes.along_channels & (thread > 0)
        self.holds_inputs |= sizes.inputs_resident & ((self.channel_round > 0) | other_thread_loads)
        other_thread_loads = sizes.along_rows & (thread > 0)
        self.holds_weights |= sizes.weights_resident & ((self.position > 0) | other_thread_loads)
        if not shape.has_weights:
            self.holds_weights = numbers > 0

    def _spread_prefetches(self, loops: LoopRounds) -> None:
        """Prefetched data of the outermost loop's first iteration is loaded at once, that of later ones
        during the tiles of the iteration before.
        """
        sizes, shape, config = loops.sizes, loops.shape, loops.sizes.config
        channels, threads = loops.table.channels, loops.table.threads
        slots = shape.slots / sizes.tiles
        inputs = sizes.step_inputs * sizes.steps * (config.inp_element_bytes / config.bus_bytes)
        weights = sizes.step_weights * sizes.steps * (config.wgt_element_bytes / config.bus_bytes)
        is_first_tile = (self.channel_round == 0) & (self.position == 0)
        channels_per_round = np.where(sizes.along_channels, threads, 1) * channels
        next_channels = np.clip(shape.channels - self.first_channel - channels_per_round, 0, channels)
        share = _prefetch_share(
            tiles=sizes.pixel_tiles,
            first_tiles=np.where(sizes.along_rows, np.minimum(threads, sizes.row_tiles), 1),
            outer=self.channel_round,
            inner=self.position,
            next_share=next_channels / np.maximum(self.channels, 1),
            is_shared=sizes.along_rows & (self.thread > 0),
            idle_slots=slots - inputs,
            beats=weights,
        )
        share = np.where(self.position == 0, is_first_tile * 1.0, 0.0) * ~self.holds_weights + share
        self.loaded_weights = np.where(sizes.weights_prefetched, share, ~self.holds_weights * 1.0)
        share = _prefetch_share(
            tiles=sizes.channel_tiles,
            first_tiles=np.where(sizes.along_channels, np.minimum(threads, sizes.channel_tiles), 1),
            outer=self.position,
            inner=self.channel_round,
            next_share=1.0 * (self.position + 1 < loops.positions),
            is_shared=sizes.along_channels & (self.thread > 0),
            idle_slots=slots - weights,
            beats=inputs,
        )
        share = np.where(self.channel_round == 0, is_first_tile * 1.0, 0.0) * ~self.holds_inputs + share
        self.loaded_inputs = np.where(sizes.inputs_prefetched, share, ~self.holds_inputs * 1.0)


def _prefetch_share(
    *,
    tiles: IntArray,
    first_tiles: IntArray,
    outer: IntArray,
    inner: IntArray,
    next_share: FloatArray,
    is_shared: BoolArray,
    idle_slots: FloatArray,
    beats: FloatArray,
) -> FloatArray:
    """Return the share of a step's resident operand that is prefetched during the step.

    If the first iteration of the outermost loop is too short, the rest is loaded with the first tile of the
    second one.

    Args:
        tiles: number of tiles in an iteration of the outermost loop.
        first_tiles: number of these with which all threads start.
        outer, inner: rounds of these loops.
        next_share: size of the next iteration's data, relative to this one's.
        idle_slots: slots of a tile in which the port need not load the other operand.
    """
    has_later_tiles = tiles > first_tiles
    free_tiles = np.where(has_later_tiles, tiles - first_tiles, tiles)
    time = free_tiles * idle_slots - np.where(has_later_tiles, 0.0, beats)
    in_time = np.clip(time / np.maximum(beats, 1e-9), 0.0, 1.0)
    first = in_time * np.where(has_later_tiles, inner > 0, 1.0) / free_tiles
    late = ((outer == 1) & (inner == 0) & ~is_shared) * (1 - in_time)
    return np.asarray(np.where(outer == 0, first, 1 / tiles) * next_share + late)
