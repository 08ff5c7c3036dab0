"""Sizes that follow from plans of sums of products: tiles, steps, buffers, and plans that fit."""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np

from accel.compiler.plans.plan_arrays import BoolArray, FloatArray, IntArray, ceil_div, map_pairs
from accel.compiler.plans.plan_table import OUTER_LOOPS, RESIDENT, THREAD_AXES, PlanTable
from accel.compiler.plans.sum_shape import SumShape
from accel.core.config import Config
from accel.core.scratchpad_specs import SCRATCHPADS

_CLIPPED_UOP_FACTOR = 2
"""Micro-ops of a loop that padding clips, relative to one without clipping (a rough average)."""
_MAX_FINAL_PIECES = 16
"""Most pieces of the products of the last tiles, each with its own micro-ops."""
_EPILOGUE_UOPS = 8
"""Micro-ops other than those of products (a rough average)."""


class TileSizes:
    """Sizes of tiles, steps and buffers for each plan of a table.

    Attributes:
        depth_steps, kernel_steps: parts of the depth, and of the kernel's rows.
        accumulators: those of all threads, without a residual's.
        weights_resident, inputs_resident: whether scratchpads keep them for all steps.
        residual_inputs: ``inp`` elements of a residual, for all threads.
    """

    def __init__(self, shape: SumShape, config: Config, table: PlanTable) -> None:
        self.shape, self.config, self.table = shape, config, table
        self.along_channels, self.along_rows, self.along_depth, self.along_groups = (
            table.thread_axis == THREAD_AXES.index(axis) for axis in ("channels", "rows", "depth", "groups")
        )
        self.pixels_outer = table.outer == OUTER_LOOPS.index("pixels")
        self.channel_tiles = ceil_div(shape.channels, table.channels)
        self.row_tiles = ceil_div(shape.rows, table.rows)
        self.column_tiles = ceil_div(shape.columns, table.columns)
        self.batch_tiles = ceil_div(shape.batches, table.batches)
        self.pixel_tiles = self.batch_tiles * self.row_tiles * self.column_tiles
        self.tiles = shape.groups * self.channel_tiles * self.pixel_tiles
        self.depth_steps = ceil_div(shape.depth, table.depth)
        self.kernel_steps = ceil_div(shape.kernel[0], table.kernel_rows)
        self.steps = self.depth_steps * self.kernel_steps
        self.tile_accumulators = table.channels * table.batches * table.rows * table.columns
        self.accumulators = np.where(self.along_depth, 1, table.threads) * self.tile_accumulators
        self.step_inputs = (
            (table.channels if shape.is_diagonal else table.depth)
            * table.batches
            * shape.input_extent(0, table.rows, table.kernel_rows)
            * shape.input_extent(1, table.columns, shape.kernel[1])
        )
        taps = table.kernel_rows * shape.kernel[1]
        self.step_weights = table.channels * table.depth * taps if shape.has_weights else 0 * table.depth
        self.weights_resident = table.resident % 2 == RESIDENT.index("weights")
        self.inputs_resident = table.resident >= RESIDENT.index("inputs")
        prefetches = table.prefetch > 0
        self.weights_prefetched = prefetches & self.weights_resident & ~self.pixels_outer
        self.inputs_prefetched = (
            prefetches & self.inputs_resident & self.pixels_outer & (not shape.is_diagonal)
        )
        self.residual_inputs = self.accumulators * shape.residual_product

    def fits(self) -> BoolArray:
        return self.buffers_fit() & self.micro_ops_fit()

    def micro_ops_fit(self) -> BoolArray:
        """Only plans with resident operands can need too many."""
        if not self.table.resident.any():
            return np.full(self.acc_elements.shape, True)
        return np.asarray((self.table.resident == 0) | (self.micro_ops <= self.config.uop_depth))

    def buffers_fit(self) -> BoolArray:
        """The tokens must also fit the counters."""
        fits: BoolArray = self.table.threads + self._initial_loads <= self.config.token_limit
        for name, elements in self.buffer_elements().items():
            fits = fits & (elements <= SCRATCHPADS[name].depth(self.config))
        return fits

    def buffer_elements(self) -> dict[str, IntArray]:
        bias_resident, table, elements = self.bias_resident, self.table, {}
        bias: IntArray | int = 0
        if self.shape.epilogue_in_store:
            elements["par"] = np.where(bias_resident, 0, table.threads * table.channels)
        else:
            tiles_bias = self._bias_of_tiles()
            tiles_bias = tiles_bias * self.shape.biases
            bias = np.where(bias_resident, self.shape.bias_blocks, tiles_bias) * self.shape.has_bias
        return elements | {
            "inp": self.input_buffers * self.step_inputs + self.residual_inputs,
            "wgt": self.weight_buffers * self.step_weights + self.shape.identity_blocks,
            "acc": self.acc_elements + bias,
        }

    @property
    def bias_resident(self) -> BoolArray:
        """Whether the bias, or the store unit's parameters, of all channels stay in their scratchpad."""
        if self.shape.epilogue_in_store:
            return np.full(self.acc_elements.shape, self.shape.bias_blocks <= self.config.par_depth)
        fits = self.acc_elements + self.shape.bias_blocks <= self.config.acc_depth
        return self.shape.bias_is_resident(self.pixels_outer, fits)

    @property
    def acc_elements(self) -> IntArray:
        elements: IntArray = self.accumulators * (1 + self.shape.residual_in_accumulators)
        return elements

    def _bias_of_tiles(self) -> IntArray:
        threads: IntArray = np.where(
            ~self.along_depth & (self.pixels_outer | self.along_channels | self.along_groups),
            self.table.threads,
            1,
        )
        return threads * self.table.channels

    @cached_property
    def input_buffers(self) -> IntArray:
        threads = self._threads_if(self.along_rows | self.along_groups)
        positions = self.batch_tiles * self.column_tiles * self.rounds(self.along_rows, self.row_tiles)
        copies = np.where(self.pixels_outer, 1 + self.inputs_prefetched, positions)
        return np.where(self.inputs_resident, self._resident_steps * threads * copies, self.table.threads)

    @cached_property
    def weight_buffers(self) -> IntArray:
        threads = self._threads_if(self.along_channels | self.along_groups)
        channels = self.rounds(self.along_channels, self.channel_tiles)
        copies = np.where(self.pixels_outer, channels, 1 + self.weights_prefetched)
        return np.where(self.weights_resident, self._resident_steps * threads * copies, self.table.threads)

    @cached_property
    def _resident_steps(self) -> IntArray:
        depths = self.rounds(self.along_depth, self.depth_steps) * self._threads_if(self.along_depth)
        return np.asarray(depths * self.kernel_steps)

    @property
    def _initial_loads(self) -> IntArray:
        """LOADs of resident operands that wait for no computation. Each pushes a token."""
        inputs = self.inputs_resident * self.input_buffers
        weights = self.weights_resident * self.weight_buffers
        return np.asarray(inputs + weights)

    @cached_property
    def micro_ops(self) -> FloatArray:
        """Estimate of the micro-ops that a plan loads.

        An instruction's two loops replace the micro-ops of a tile's two longest loops. Each thread and each
        pattern of executed products has its own micro-ops. Resident operands lie at a different address in
        each step, which multiplies the patterns. The products of the last tiles are split into pieces, with
        further micro-ops.
        """
        table, shape = self.table, self.shape
        kernel_columns = np.full_like(table.depth, shape.kernel[1])
        blocks = (table.channels, table.batches, table.rows, table.depth)
        loops = np.stack([*blocks, table.columns, table.kernel_rows, kernel_columns])
        per_pattern = np.prod(np.sort(loops, axis=0)[:-2], axis=0)
        row_patterns = map_pairs(partial(shape.distinct_tiles, 0), table.rows, table.kernel_rows)
        column_patterns = map_pairs(partial(shape.distinct_tiles, 1), table.columns, kernel_columns)
        patterns = row_patterns * column_patterns
        per_pattern = per_pattern * np.where(patterns > 1, _CLIPPED_UOP_FACTOR, 1)
        if shape.clips_columns:
            unrolled = np.prod(np.sort(np.stack(blocks), axis=0)[:-2], axis=0)
            unrolled = unrolled * table.columns * table.kernel_rows * kernel_columns
            per_pattern = np.maximum(per_pattern, unrolled)
        addresses = np.where(self.weights_resident & self.pixels_outer, self.channel_tiles, 1)
        addresses = addresses * np.where(self.inputs_resident & ~self.pixels_outer, self.pixel_tiles, 1)
        rounds = ceil_div(self.pixel_tiles, self._threads_if(self.along_rows))
        step_patterns = np.minimum(ceil_div(row_patterns, self.kernel_steps) * column_patterns, rounds)
        resident_patterns = self.steps * addresses * (1 + table.prefetch) * step_patterns
        patterns = np.where(table.resident > 0, resident_patterns, patterns)
        pieces = np.where(table.columns < shape.columns, table.channels * table.rows, table.channels)
        final = 0 if shape.reset_passes else np.minimum(pieces, _MAX_FINAL_PIECES) * (pieces > 1)
        return np.asarray(table.threads * per_pattern * (patterns + final) + _EPILOGUE_UOPS)

    def _threads_if(self, along: BoolArray) -> IntArray:
        return np.where(along, self.table.threads, 1)

    def rounds(self, along: BoolArray, iterations: IntArray) -> IntArray:
        """Return the iterations of a loop. If threads run along it, each takes one of them per round."""
        return np.where(along, ceil_div(iterations, self.table.threads), iterations)

    @property
    def threaded_iterations(self) -> IntArray:
        others = np.where(self.along_groups, self.shape.groups, self.channel_tiles)
        return np.where(self.along_depth, self.depth_steps, np.where(self.along_rows, self.row_tiles, others))

    @property
    def rows_apart(self) -> IntArray:
        """Output rows between two tiles that use the same buffer one after the other."""
        return self.table.rows * self._threads_if(self.along_rows)

    def has_work_for_threads(self, threads: int | None = None) -> BoolArray:
        needed = 2 if threads is None else self.table.threads
        has_work: BoolArray = np.where(
            self.table.threads == 1, self.along_channels, self.threaded_iterations >= needed
        )
        if self.shape.groups > 1:  # a tile's channels belong to one group
            is_whole = self.shape.channels % self.table.channels == 0
            has_work &= is_whole & ((self.table.threads == 1) | ~self.along_channels)
        return has_work

    def instructions(self) -> IntArray:
        shape = self.shape
        per_step = 2 + np.where(shape.taps > 1, self.table.depth, 1)
        number: IntArray = self.tiles * (self.steps * per_step + shape.passes + 1 + shape.has_residual)
        return number
