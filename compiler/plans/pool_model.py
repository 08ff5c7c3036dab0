"""Max pooling as the model of the machine sees it: what its tiles load, compute and store.

The compute unit itself loads what the ALU reads, and waits for it. So loads and ALU take turns, and only
stores go on beside them; what counts is that loads are few and large, and that a tile need not wait till the
one before is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from accel.compiler.ops.pool import Taps
from accel.compiler.ops.sliding import Sliding
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.arrays import BoolArray, IntArray
from accel.compiler.plans.clocks import TURNS, Predictions, Turns, Work, predict
from accel.compiler.plans.pool_schedule import PoolPlan
from accel.compiler.plans.tiles import parts
from accel.compiler.plans.transfers import Moved, moved
from accel.core.config import Config
from accel.core.timing_rules import compute_depth

_COPY = 2
"""Passes that copy accumulators."""


@dataclass(frozen=True, kw_only=True)
class PoolShape:
    """A max pooling in blocks of the accumulators.

    Attributes:
        batches, channels: blocks.
        slide: its windows.
    """

    batches: int
    channels: int
    slide: Sliding


def pool_shape(workload: Workload, config: Config) -> PoolShape:
    """The shape of a max pooling on a machine."""
    sizes = workload.parameters
    pairs = {key: (sizes[key][0], sizes[key][1]) for key in ("kernel", "stride", "dilation")}
    top, left, bottom, right = sizes["padding"]
    return PoolShape(
        batches=-(-sizes["N"] // config.batch),
        channels=-(-sizes["C"] // config.block_out),
        slide=Sliding(size=(sizes["H"], sizes["W"]), padding=(top, left, bottom, right), **pairs),
    )


class PoolTable(NamedTuple):
    """Many plans at once, one array per attribute; ``along_rows`` is the choice of what threads run along."""

    channels: IntArray
    rows: IntArray
    columns: IntArray
    threads: IntArray
    along_rows: BoolArray

    @classmethod
    def of(cls, plans: list[PoolPlan]) -> PoolTable:
        """The table of some plans."""
        rows = [(p.channels, p.rows, p.columns, p.threads, p.thread_axis == "rows") for p in plans]
        table = np.array(rows, dtype=np.int64).reshape(-1, len(cls._fields)).T
        channels, lines, columns, threads, along_rows = table
        return cls(channels, lines, columns, threads, along_rows > 0)

    def take(self, chosen: IntArray | BoolArray) -> PoolTable:
        """Some of the plans."""
        return PoolTable(*(array[chosen] for array in self))  # type: ignore[arg-type]

    def plans(self) -> list[PoolPlan]:
        """The plans one by one."""
        return [
            PoolPlan(
                channels=channels,
                rows=rows,
                columns=columns,
                threads=threads,
                thread_axis="rows" if along_rows else "channels",
            )
            for channels, rows, columns, threads, along_rows in zip(
                *(array.tolist() for array in self), strict=True
            )
        ]


class _Lines(NamedTuple):
    """What tiles have in one direction.

    Attributes:
        outputs: rows or columns.
        inputs: that their windows see.
        steps: of the ALU for all of them, besides copies.
    """

    outputs: IntArray
    inputs: IntArray
    steps: IntArray


class PoolModel:
    """A max pooling on a machine, and its plans: which fit, and what they do."""

    store_pace = 1.0

    def __init__(self, shape: PoolShape, config: Config, table: PoolTable) -> None:
        self.shape, self.config, self.table = shape, config, table
        self.slide = shape.slide
        self.height, self.width = self.slide.outputs
        self.both = min(self.slide.kernel) > 1
        """Whether maxima across are a stage of their own."""
        self.across_channels = parts(shape.channels, table.channels)
        self.down_rows = parts(self.height, table.rows)
        self.across_columns = parts(self.width, table.columns)

    @cached_property
    def taps(self) -> tuple[Taps, Taps]:
        """The elements of windows, down and across."""
        return Taps.of(self.slide, 0), Taps.of(self.slide, 1)

    # --- which plans there are ---------------------------------------------------------------------------

    @property
    def turns_of_threads(self) -> IntArray:
        """Iterations of the loop that threads share."""
        return np.where(self.table.along_rows, self.down_rows, self.across_channels)

    def useful(self, threads: int | None) -> BoolArray:
        """Whether there is something to do for each thread, or for several if no number was asked for."""
        least = 2 if threads is None else threads
        several = (self.table.threads <= self.config.token_limit) & (self.turns_of_threads >= least)
        return np.where(self.table.threads == 1, ~self.table.along_rows, several)

    def fits(self) -> BoolArray:
        """Whether the accumulators have room."""
        table = self.table
        rows, columns = self._seen(0, table.rows), self._seen(1, table.columns)
        apart = rows * table.columns if self.both and not self.taps[1].own else 0
        needed = table.channels * (rows * columns + apart + table.rows * table.columns)
        return np.asarray(needed * table.threads <= self.config.acc_depth)

    def _seen(self, way: int, part: IntArray) -> IntArray:
        """Most rows or columns of the input that so many windows see; all if they start anywhere."""
        size = self.slide.size[way]
        if not self.taps[way].whole:
            return np.full_like(part, size)
        return np.minimum(size, (part - 1) * self.slide.stride[way] + self.slide.reach[way])

    # --- what they do ------------------------------------------------------------------------------------

    def predict(self, most: int = TURNS) -> Predictions:
        """What plans take; the compute unit is at work while it loads."""
        found = predict(self, most)
        return replace(found, compute=found.compute + found.load)

    @cached_property
    def _steps_before(self) -> tuple[IntArray, IntArray]:
        """For all outputs before each, pairs with an element of the window that lies in the input."""
        found = []
        for way in range(2):
            places = np.arange(self.slide.outputs[way])[:, None] * self.slide.stride[way]
            places = places + np.array(self.taps[way].others, dtype=np.int64)
            inside = ((places >= 0) & (places < self.slide.size[way])).sum(axis=1)
            found.append(np.concatenate([[0], inside.cumsum()]))
        return found[0], found[1]

    def _lines(self, way: int, number: IntArray, part: IntArray) -> _Lines:
        """Tiles of so many rows or columns, by number."""
        slide, size, before = self.slide, self.slide.size[way], self.slide.padding[way]
        begin = np.minimum(number * part, slide.outputs[way])
        end = np.minimum(begin + part, slide.outputs[way])
        first = np.maximum(0, begin * slide.stride[way] - before)
        last = np.minimum(size, (end - 1) * slide.stride[way] + slide.reach[way] - before)
        seen = last - first if self.taps[way].whole else np.full_like(begin, size)
        steps = self._steps_before[way]
        return _Lines(end - begin, seen, steps[end] - steps[begin])

    def _all_inputs(self, way: int, part: IntArray) -> IntArray:
        """Rows or columns of the input that all tiles see together."""
        sums = {
            size: int(
                self._lines(way, np.arange(-(-self.slide.outputs[way] // size)), np.array(size)).inputs.sum()
            )
            for size in np.unique(part).tolist()
        }
        return np.array([sums[size] for size in part.tolist()], dtype=np.int64)

    def work(self) -> Work:
        """Of each plan as a whole."""
        table, config, count = self.table, self.config, len(self.table.rows)
        blocks = self.shape.batches * self.shape.channels
        down, across = self._all_inputs(0, table.rows), self._all_inputs(1, table.columns)
        steps_down, steps_across = (int(steps[-1]) for steps in self._steps_before)
        copies = self.height * self.width * _COPY
        slots = np.full(count, copies + steps_down * self.width)
        if self.both:
            slots = slots + down * (steps_across + (0 if self.taps[1].own else self.width * _COPY))
        else:
            slots = slots + steps_across * self.height
        rows = np.where(table.along_rows, parts(self.down_rows, table.threads), self.down_rows)
        channels = np.where(
            table.along_rows, self.across_channels, parts(self.across_channels, table.threads)
        )
        start = np.full(count, 2.0 * config.read_latency + compute_depth(config))
        return Work(
            turns=self.shape.batches * channels * rows * self.across_columns * table.threads,
            period=table.threads * self.across_columns,
            round=table.threads * self.across_columns,
            anew=np.zeros(count),
            threads=table.threads,
            slots=1.0 * blocks * slots,
            load_bytes=1.0 * blocks * down * across * config.out_element_bytes,
            store_bytes=np.full(count, 1.0 * blocks * self.height * self.width * config.out_element_bytes),
            compute_start=start,
            port_start=0 * start,
            load_start=0 * start,
            late=0 * start,
        )

    def turns(self, numbers: IntArray, plans: IntArray) -> Turns:
        """What tiles do, in order, those of threads one behind the other."""
        table = self.table.take(plans)
        across_channels, down_rows, across_columns = (
            one[plans] for one in (self.across_channels, self.down_rows, self.across_columns)
        )
        threads, along_rows = table.threads, table.along_rows
        slot, rest = numbers % threads, numbers // threads
        column, rest = rest % across_columns, rest // across_columns
        rows = np.where(along_rows, parts(down_rows, threads), down_rows)
        channels = np.where(along_rows, across_channels, parts(across_channels, threads))
        row, channel = rest % rows, rest // rows % channels
        batch = rest // rows // channels
        row = np.where(along_rows, row * threads + slot, row)
        channel = np.where(along_rows, channel, channel * threads + slot)
        valid = (batch < self.shape.batches) & (row < down_rows) & (channel < across_channels)
        blocks = np.where(
            valid, np.minimum(table.channels, self.shape.channels - channel * table.channels), 0
        )
        down = self._lines(0, np.where(valid, row, 0), table.rows)
        across = self._lines(1, np.where(valid, column, 0), table.columns)
        first, second = self._slots(down, across)
        load = self._moved(blocks, self.slide.size, down.inputs, across.inputs)
        store = self._moved(blocks, self.slide.outputs, down.outputs, across.outputs)
        none = np.zeros(valid.shape)
        return Turns(
            valid=valid,
            first=valid,
            last=valid,
            set=slot,
            before=load,
            head=blocks * first * 1.0,
            slots=blocks * second * 1.0,
            tail=none,
            stored=store.beats,
            stored_bursts=store.bursts,
            fetched=none,
        )

    def _slots(self, down: _Lines, across: _Lines) -> tuple[IntArray, IntArray]:
        """Of the ALU, for one block of channels: for maxima across, and for those down."""
        copies = down.outputs * across.outputs * _COPY
        if not self.both:
            return 0 * copies, copies + down.steps * across.outputs + across.steps * down.outputs
        first = 0 if self.taps[1].own else across.outputs * _COPY
        return down.inputs * (first + across.steps), copies + down.steps * across.outputs

    def _moved(self, channels: IntArray, sizes: tuple[int, int], rows: IntArray, columns: IntArray) -> Moved:
        """A box of a tensor of such a size."""
        height, width = sizes
        size = self.config.out_element_bytes
        return moved(self.config, size, (channels, height * width), (rows, width), columns)
