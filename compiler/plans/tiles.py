"""Plans of sums of products, many at once: tiles of the output, steps of the sum, threads.

What matrix products and convolutions share: which plans fit, what they load, and a rough bound of what each
takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from accel.compiler.plans.arrays import BoolArray, FloatArray, IntArray
from accel.compiler.plans.sums import Sums
from accel.core.config import INSTRUCTION_BYTES, Config
from accel.core.timing_rules import compute_depth

THREAD_AXES = ("channels", "rows", "depth", "groups")
"""``channels`` and ``rows``: tiles side by side in that direction; ``depth``: the steps of one tile;
``groups``: the same tile of neighbouring groups."""
OUTERS = ("channels", "pixels")
"""The loop over tiles that is outermost: all tiles of some channels come before those of the next ones, or
all channels of a place before the next place."""


class Tiling(NamedTuple):
    """One array per attribute of a plan; choices by number.

    Attributes:
        channels, depth: blocks in a tile of the output, and in a step of the sum.
        rows, columns: of a tile.
        kernel_rows: in a step.
        threads: virtual threads.
        thread_axis: index into :data:`THREAD_AXES`.
        outer: index into :data:`OUTERS`.
        batches: blocks of the batch in a tile.
    """

    channels: IntArray
    rows: IntArray
    columns: IntArray
    depth: IntArray
    kernel_rows: IntArray
    threads: IntArray
    thread_axis: IntArray
    outer: IntArray
    batches: IntArray

    @classmethod
    def grid(cls, *choices: Sequence[int]) -> Tiling:
        """All combinations of choices for each attribute."""
        return cls(*(axis.reshape(-1) for axis in np.meshgrid(*choices, indexing="ij")))

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Tiling:
        """Of plans that are rows of a table."""
        return cls(*np.array(rows, dtype=np.int64).reshape(-1, len(cls._fields)).T)

    def take(self, chosen: IntArray | BoolArray) -> Tiling:
        """Some of the plans."""
        return Tiling(*(array[chosen] for array in self))

    def rows_of(self) -> list[tuple[int, ...]]:
        """The plans as rows of a table."""
        return list(zip(*(array.tolist() for array in self), strict=True))

    def join(self, other: Tiling) -> Tiling:
        """These and others."""
        return Tiling(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


def parts(a: IntArray | int, b: IntArray | int) -> IntArray:
    """How many parts of size ``b`` there are of ``a``, the last one maybe smaller."""
    return np.asarray(-(-a // b))


class Sizes:
    """What follows from a table of plans: numbers of tiles and steps, sizes of buffers, bytes."""

    def __init__(self, shape: Sums, config: Config, table: Tiling) -> None:
        self.shape, self.config, self.table = shape, config, table
        self.along_channels = table.thread_axis == THREAD_AXES.index("channels")
        self.along_rows = table.thread_axis == THREAD_AXES.index("rows")
        self.along_depth = table.thread_axis == THREAD_AXES.index("depth")
        self.along_groups = table.thread_axis == THREAD_AXES.index("groups")
        self.pixels_outer = table.outer == OUTERS.index("pixels")
        self.across_channels = parts(shape.channels, table.channels)
        self.down_rows = parts(shape.rows, table.rows)
        self.across_columns = parts(shape.columns, table.columns)
        self.across_batches = parts(shape.batches, table.batches)
        self.pixel_tiles = self.across_batches * self.down_rows * self.across_columns
        self.tiles = shape.groups * self.across_channels * self.pixel_tiles
        self.depths = parts(shape.depth, table.depth)
        self.kernel_parts = parts(shape.kernel[0], table.kernel_rows)
        self.steps = self.depths * self.kernel_parts
        self.elements = table.channels * table.batches * table.rows * table.columns
        """Accumulators of a tile."""
        self.accumulators = np.where(self.along_depth, 1, table.threads) * self.elements
        """Of all threads, without a residual's."""
        self.inputs = (
            (table.channels if shape.diagonal else table.depth)
            * table.batches
            * shape.seen(0, table.rows, table.kernel_rows)
            * shape.seen(1, table.columns, shape.kernel[1])
        )
        """Elements of a step."""
        taps = table.kernel_rows * shape.kernel[1]
        self.weights = table.channels * table.depth * taps if shape.weighted else 0 * table.depth
        """Elements of a step."""
        self.units = 0 if shape.weighted and not shape.residual_product else 1
        """Blocks of the identity matrix, which stay in wgt_buffer throughout."""
        self.residuals = self.accumulators * shape.residual_product
        """Elements that the load unit brings of a residual, for all threads."""

    @property
    def bias_stays(self) -> BoolArray:
        """Whether the bias of all channels lies beside the tiles throughout."""
        if self.shape.stored:
            return np.full(len(self.tiled), self.shape.biases <= self.config.par_depth)
        room = self.tiled + self.shape.biases <= self.config.acc_depth
        return self.shape.bias_stays(self.pixels_outer, room)

    @property
    def tiled(self) -> IntArray:
        """Elements of acc_buffer that tiles take."""
        tiled: IntArray = self.accumulators * (1 + self.shape.residual_loaded)
        return tiled

    def fits(self) -> BoolArray:
        """Which plans' buffers fit the scratchpads, and their tokens the counters."""
        config, table = self.config, self.table
        stays = self.bias_stays
        if self.shape.stored:
            room: BoolArray = stays | (table.threads * table.channels <= config.par_depth)
        else:
            bias = np.where(stays, self.shape.biases, self._bias_of_tiles()) * self.shape.bias
            room = self.tiled + bias <= config.acc_depth
        fitting: BoolArray = (
            (table.threads * self.inputs + self.residuals <= config.inp_depth)
            & (table.threads * self.weights + self.units <= config.wgt_depth)
            & (self.tiled <= config.acc_depth)
            & room
            & (table.threads <= config.token_limit)
        )
        return fitting

    def _bias_of_tiles(self) -> IntArray:
        threads: IntArray = np.where(
            ~self.along_depth & (self.pixels_outer | self.along_channels | self.along_groups),
            self.table.threads,
            1,
        )
        return threads * self.table.channels

    @property
    def turns(self) -> IntArray:
        """Iterations of the loop that threads share."""
        return np.select(
            [self.along_depth, self.along_rows, self.along_groups],
            [self.depths, self.down_rows, np.full_like(self.depths, self.shape.groups)],
            self.across_channels,
        )

    def useful(self, threads: int | None = None) -> BoolArray:
        """Whether there is something to do for each thread, or for several if no number of ``threads`` was
        asked for."""
        least = 2 if threads is None else self.table.threads
        useful: BoolArray = np.where(self.table.threads == 1, self.along_channels, self.turns >= least)
        if self.shape.groups > 1:  # tiles of channels do not reach into the next group
            whole = self.shape.channels % self.table.channels == 0
            useful &= whole & ((self.table.threads == 1) | ~self.along_channels)
        return useful

    def instructions(self) -> IntArray:
        """About how many instructions each plan takes."""
        shape = self.shape
        per_step = 2 + np.where(shape.taps > 1, self.table.depth, 1)
        number: IntArray = self.tiles * (self.steps * per_step + shape.passes + 1 + shape.residual)
        return number

    # --- bytes -----------------------------------------------------------------------------------------

    @cached_property
    def alone(self) -> IntArray:
        """Blocks of depth that have a buffer of their own, so that it may still hold them later."""
        threads = np.where(self.along_depth, self.table.threads, 1)
        own = _alone(self.shape.depth, self.table.depth, threads)
        return np.where(self.kernel_parts == 1, own, 0)

    def read_bytes(self) -> FloatArray:
        """Bytes of both operands that each plan loads. What a buffer holds is not loaded again."""
        shape, config, table = self.shape, self.config, self.table
        down = each(lambda rows, taps: shape.loaded_by(0, rows, taps), table.rows, table.kernel_rows)
        across = each(
            lambda columns, taps: shape.loaded_by(1, columns, taps),
            table.columns,
            np.full_like(table.columns, shape.kernel[1]),
        )
        plane = shape.groups * shape.batches * down * across
        beside = np.where(self.along_channels, table.threads, 1)
        above = np.where(self.along_rows, table.threads, 1)
        held, again = np.minimum(beside, self.across_channels), self.across_channels
        one_place = (self.across_batches == 1) & (self.across_columns == 1)
        rows = np.where(self.pixels_outer, shape.rows, one_place * _alone(shape.rows, table.rows, above))
        stays = plane * (1.0 * rows / shape.rows * held + (1 - 1.0 * rows / shape.rows) * again)
        inputs = self.alone * stays + (shape.depth - self.alone) * (plane * again)
        if shape.diagonal:
            inputs = np.asarray(1.0 * plane * shape.channels)
        if shape.weighted:
            places = self.across_batches * self.across_columns
            held, again = np.minimum(above, self.down_rows), self.down_rows * places
            own = _alone(shape.channels, table.channels, beside)
            channels = np.where(self.pixels_outer, own, shape.channels)
            stays = channels * held + (shape.channels - channels) * again
            steps = self.alone * stays + (shape.depth - self.alone) * shape.channels * again
            weights = shape.groups * shape.taps * steps
        else:
            weights = np.full(len(table.rows), self.units)
        read: FloatArray = np.rint(
            1.0 * inputs * config.inp_element_bytes + 1.0 * weights * config.wgt_element_bytes
        )
        return read

    # --- time ------------------------------------------------------------------------------------------

    def quick(self) -> FloatArray:
        """Rough cycles of each plan, for sorting out those that cannot be good."""
        shape, config, table = self.shape, self.config, self.table
        latency = config.read_latency + compute_depth(config) + 8
        inputs = self.inputs * (config.inp_element_bytes / config.bus_bytes)
        weights = self.weights * (config.wgt_element_bytes / config.bus_bytes)
        fills = self.tiles * self.steps
        load = self.read_bytes() / config.bus_bytes
        fetched = self.instructions() * (INSTRUCTION_BYTES / config.bus_bytes)
        biases = shape.bias and not shape.stored
        if shape.stored or shape.residual_product:
            load = load + shape.residual * shape.outputs * (config.out_element_bytes / config.bus_bytes)
        if shape.stored:
            fetched = fetched + np.where(
                self.bias_stays, 0, self.tiles * table.channels * config.par_element_bytes / config.bus_bytes
            )
        pace = config.bus_bytes / config.lanes if shape.stored else 1.0
        store = self.elements * (config.out_element_bytes / config.bus_bytes) * pace
        sums = shape.slots + shape.residual_loaded * self.tiles * (latency + store)
        kept = np.where(self.bias_stays, 0, np.where(self.pixels_outer, self.tiles, self.across_channels))
        sums = sums + biases * kept * latency
        alone = table.threads == 1
        waits = latency * np.where(self.alone > 0, np.maximum(self.tiles, 1), fills)
        stored = np.where(alone | self.along_depth, self.tiles * (store + config.write_latency), 0)
        chained = (sums + load + waits) / table.threads
        port = load + np.maximum(0, fetched - config.fetch_buffer * INSTRUCTION_BYTES / config.bus_bytes)
        busy = np.maximum(np.maximum(sums, port), np.maximum(chained, self.tiles * store)) + stored
        cleared = self.elements * shape.resets + self.accumulators * shape.folded
        element = config.par_element_bytes if shape.stored else config.acc_element_bytes * shape.bias
        bias = shape.biases * element / config.bus_bytes
        start = np.maximum(inputs + weights + bias, cleared)
        quick: FloatArray = busy + start + store + 2.0 * latency
        return quick


def _alone(size: int, parts: IntArray, buffers: IntArray) -> IntArray:
    """How much of ``size``, cut into parts that take turns in the buffers, has a buffer of its own."""
    count = -(-size // parts)
    own: IntArray = np.where(count <= buffers, size, np.maximum(0, 2 * buffers - count) * parts)
    return own


def each(of: Callable[[int, int], int], first: IntArray, second: IntArray) -> IntArray:
    """A function of two sizes, of each pair that there is once."""
    base = int(second.max(initial=0)) + 1
    keys, places = np.unique(first * base + second, return_inverse=True)
    values = [of(int(key) // base, int(key) % base) for key in keys]
    return np.array(values, dtype=np.int64)[places]
