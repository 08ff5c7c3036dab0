"""Many plans of a convolution at once: which fit, and a rough bound of what each takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, get_args

import numpy as np

from accel.base.errors import ScheduleError
from accel.compiler.plans.conv_model import ConvShape, part_sizes
from accel.compiler.plans.conv_schedule import ConvPlan, Outer, ThreadAxis
from accel.compiler.plans.gemm_plans import BoolArray, FloatArray, IntArray
from accel.compiler.plans.planner import Blocks
from accel.core.config import Config
from accel.core.timing_rules import compute_depth

THREAD_AXES = get_args(ThreadAxis)
OUTERS = get_args(Outer)


class ConvTable(NamedTuple):
    """One array per attribute of :class:`~accel.compiler.plans.conv_schedule.ConvPlan`; choices by number."""

    channels: IntArray
    rows: IntArray
    columns: IntArray
    depth: IntArray
    kernel_rows: IntArray
    threads: IntArray
    thread_axis: IntArray
    outer: IntArray

    @classmethod
    def grid(cls, *choices: Sequence[int]) -> ConvTable:
        """All combinations of choices for each attribute."""
        return cls(*(axis.reshape(-1) for axis in np.meshgrid(*choices, indexing="ij")))

    @classmethod
    def of(cls, plans: Sequence[ConvPlan]) -> ConvTable:
        """The table of some plans."""
        rows = [
            (
                *(p.channels, p.rows, p.columns, p.depth, p.kernel_rows, p.threads),
                THREAD_AXES.index(p.thread_axis),
                OUTERS.index(p.outer),
            )
            for p in plans
        ]
        return cls(*np.array(rows, dtype=np.int64).reshape(-1, len(cls._fields)).T)

    def take(self, chosen: IntArray | BoolArray) -> ConvTable:
        """Some of the plans."""
        return ConvTable(*(array[chosen] for array in self))

    def plans(self, shape: ConvShape, config: Config) -> list[ConvPlan]:
        """The plans one by one."""
        stays = Sizes(shape, config, self).bias_stays
        return [
            ConvPlan(
                channels=channels,
                rows=rows,
                columns=columns,
                depth=depth,
                kernel_rows=kernel_rows,
                threads=threads,
                thread_axis=THREAD_AXES[axis],
                outer=OUTERS[outer],
                bias_stays=stay,
            )
            for channels, rows, columns, depth, kernel_rows, threads, axis, outer, stay in zip(
                *(array.tolist() for array in self), stays.tolist(), strict=True
            )
        ]


class Sizes:
    """What follows from a table of plans: numbers of tiles and steps, sizes of buffers."""

    def __init__(self, shape: ConvShape, config: Config, table: ConvTable) -> None:
        self.shape, self.config, self.table = shape, config, table
        self.along_channels = table.thread_axis == THREAD_AXES.index("channels")
        self.along_rows = table.thread_axis == THREAD_AXES.index("rows")
        self.along_depth = table.thread_axis == THREAD_AXES.index("depth")
        self.along_groups = table.thread_axis == THREAD_AXES.index("groups")
        self.pixels_outer = table.outer == OUTERS.index("pixels")
        self.across_channels = -(-shape.channels // table.channels)
        self.down_rows = -(-shape.rows // table.rows)
        self.pixel_tiles = shape.batches * self.down_rows * -(-shape.columns // table.columns)
        self.tiles = shape.groups * self.across_channels * self.pixel_tiles
        self.depths = -(-shape.depth // table.depth)
        self.steps = self.depths * -(-shape.kernel[0] // table.kernel_rows)
        self.elements = table.channels * table.rows * table.columns
        """Accumulators of a tile."""
        self.accumulators = np.where(self.along_depth, 1, table.threads) * self.elements
        """Of all threads, without a residual's."""
        self.inputs = (
            table.depth
            * np.minimum(shape.reach(0, table.rows, table.kernel_rows), -(-shape.height // shape.skip))
            * np.minimum(shape.reach(1, table.columns, shape.kernel[1]), shape.width)
        )
        """Elements of a step."""
        taps = table.kernel_rows * shape.kernel[1] if shape.weighted else 1
        self.weights = table.channels * table.depth * taps
        """Elements of a step."""

    @property
    def bias_stays(self) -> BoolArray:
        """Whether the bias of all channels fits beside the tiles."""
        if self.shape.stored:
            return np.full(len(self.tiled), self.shape.biases <= self.config.par_depth)
        stays: BoolArray = self.tiled + self.shape.biases <= self.config.acc_depth
        return stays

    @property
    def tiled(self) -> IntArray:
        """Elements of acc_buffer that tiles take."""
        tiled: IntArray = self.accumulators * (1 + (self.shape.residual and not self.shape.stored))
        return tiled

    def fits(self) -> BoolArray:
        """Which plans' buffers fit the scratchpads, and their tokens the counters."""
        config, table = self.config, self.table
        room: BoolArray = self.bias_stays | (table.threads * table.channels <= config.par_depth)
        if not self.shape.stored:
            bias = np.where(self.bias_stays, self.shape.biases, self._bias_of_tiles()) * self.shape.bias
            room = self.tiled + bias <= config.acc_depth
        fitting: BoolArray = (
            (table.threads * self.inputs <= config.inp_depth)
            & (table.threads * self.weights <= config.wgt_depth)
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
        turns: IntArray = np.where(
            self.along_depth,
            self.depths,
            np.where(
                self.along_rows,
                self.down_rows,
                np.where(self.along_groups, self.shape.groups, self.across_channels),
            ),
        )
        return turns

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
        per_step = 2 + np.where(self.shape.taps > 1, self.table.depth, 1)
        shape = self.shape
        number: IntArray = self.tiles * (self.steps * per_step + shape.passes + 1 + shape.residual)
        return number

    def quick(self) -> FloatArray:
        """Rough cycles of each plan, for sorting out those that cannot be good."""
        shape, config, table = self.shape, self.config, self.table
        latency = config.read_latency + compute_depth(config) + 8
        inputs = self.inputs * (config.inp_element_bytes / config.bus_bytes)
        weights = self.weights * (config.wgt_element_bytes / config.bus_bytes)
        once = self.steps == 1
        fills = self.tiles * self.steps
        apart = np.where(self.along_depth, 1, table.threads)
        input_fills = np.where(
            once & self.pixels_outer,
            shape.groups
            * self.pixel_tiles
            * np.where(self.along_channels, np.minimum(apart, self.across_channels), 1),
            fills,
        )
        weight_fills = np.where(
            once & (~self.pixels_outer | (self.across_channels == 1)),
            shape.groups
            * self.across_channels
            * np.where(self.along_rows, np.minimum(apart, self.down_rows), 1),
            fills,
        )
        if not shape.weighted:
            weight_fills = apart
        load = inputs * input_fills + weights * weight_fills
        if shape.stored:
            load = load + shape.residual * shape.outputs * (config.out_element_bytes / config.bus_bytes)
        store = self.elements * (
            config.out_element_bytes / (config.lanes if shape.stored else config.bus_bytes)
        )
        sums = shape.slots + (shape.residual and not shape.stored) * self.tiles * (latency + store)
        alone = table.threads == 1
        waits = latency * np.maximum(input_fills, weight_fills)
        stored = np.where(alone | self.along_depth, self.tiles * (store + config.write_latency), 0)
        chained = (sums + load + waits) / table.threads
        busy = np.maximum(np.maximum(sums, load), np.maximum(chained, self.tiles * store)) + stored
        cleared = self.elements * shape.resets + self.accumulators * shape.folded
        element = config.par_element_bytes if shape.stored else config.acc_element_bytes * shape.bias
        bias = shape.biases * element / config.bus_bytes
        biases = np.where(self.bias_stays, 0, self.tiles * latency) * (shape.bias and not shape.stored)
        start = np.maximum(inputs + weights + bias, cleared)
        quick: FloatArray = busy + start + store + biases + 2.0 * latency
        return quick


def fitting(
    shape: ConvShape, config: Config, threads: int | Sequence[int], fixed: Blocks | None = None
) -> ConvTable:
    """All plans that fit and are useful.

    Args:
        shape: of the convolution.
        config: the machine.
        threads: how many virtual threads there are to be, or numbers that may be tried.
        fixed: sizes by the plan's attributes; those that exceed the whole are cut to it.
    """
    table = ConvTable.grid(
        *_sizes(shape, fixed or {}),
        (threads,) if isinstance(threads, int) else threads,
        range(len(THREAD_AXES)),
        range(len(OUTERS)),
    )
    sizes = Sizes(shape, config, table)
    return table.take(sizes.fits() & sizes.useful(threads if isinstance(threads, int) else None))


def _sizes(shape: ConvShape, fixed: Blocks) -> Iterator[Sequence[int]]:
    """What is tried for each size of a plan, in order.

    Raises:
        ScheduleError: a size of a transposed convolution that splits its phases.
    """
    kernel = shape.kernel[0]
    kernel_rows = [kernel] if shape.is_transposed else sorted({1, kernel})
    tried: dict[str, tuple[int, Sequence[int], int]] = {
        "channels": (shape.channels, part_sizes(shape.channels, 16), 1),
        "rows": (shape.rows, shape.tile_sizes(0, 24), shape.up[0]),
        "columns": (shape.columns, shape.tile_sizes(1, 8), shape.up[1]),
        "depth": (shape.depth, part_sizes(shape.depth, 12), 1),
        "kernel_rows": (kernel, kernel_rows, kernel if shape.is_transposed else 1),
    }
    for name, (whole, sizes, step) in tried.items():
        size = min(fixed.get(name, whole), whole)
        if size != whole and size % step:
            raise ScheduleError(
                f"a tile has {size} {name.replace('_', ' ')}; of this transposed convolution it must have a "
                f"multiple of {step}, or all {whole}"
            )
        yield [size] if name in fixed else sizes
