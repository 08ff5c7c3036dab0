"""Max pooling as the model of the machine sees it: what its tiles load, compute and store.

Where the compute unit itself loads what the ALU reads, it waits for that. So loads and ALU take turns, and
only stores go on beside them; what counts is that loads are few and large, and that a tile need not wait till
the one before is stored. Where products with an identity matrix bring it into the accumulators, loads go
ahead, and what counts is the slots.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from accel.compiler.ops.pool import Taps, sliding_of
from accel.compiler.ops.sliding import Sliding
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.arrays import BoolArray, FloatArray, IntArray
from accel.compiler.plans.blocking import adds_by_product
from accel.compiler.plans.clocks import TURNS, Predictions, Turns, Work, fetched_first, predict
from accel.compiler.plans.pool_schedule import PoolPlan
from accel.compiler.plans.tiles import parts
from accel.compiler.plans.transfers import Moved, moved
from accel.compiler.target.emitters import overwrites
from accel.core.config import INSTRUCTION_BYTES, UOP_BYTES, Config
from accel.core.memories import SCRATCHPADS
from accel.core.timing_rules import WRITE_DELAY, compute_depth

_COPY = 2
"""Passes that copy accumulators."""
_DISPATCH = 12
"""Cycles after which the load unit has its first instruction, at most."""


@dataclass(frozen=True, kw_only=True)
class PoolShape:
    """A max pooling in blocks of the accumulators.

    Attributes:
        batches, channels: blocks.
        slide: its windows.
        signed: whether its values are int8.
        square: whether the GEMM core's blocks are.
    """

    batches: int
    channels: int
    slide: Sliding
    signed: bool
    square: bool

    @property
    def slots(self) -> int:
        """Micro-ops that any plan takes: maxima of the rows of windows, and of those."""
        down, across = self.steps
        height, width = self.slide.outputs
        if self.slide.kernel[0] > 1 and self.slide.kernel[1] > 1:
            places = np.arange(height)[:, None] * self.slide.stride[0]
            taps = np.arange(self.slide.kernel[0]) * self.slide.dilation[0] - self.slide.padding[0]
            seen = len(np.intersect1d(places + taps, np.arange(self.slide.size[0])))
        else:
            seen = height
        each = seen * int(across[-1]) + width * int(down[-1])
        return self.batches * self.channels * each

    @cached_property
    def steps(self) -> tuple[IntArray, IntArray]:
        """For all outputs before each, down and across, pairs with an element of the window that lies in the
        input, but for the one that maxima start from."""
        found = []
        for way in range(2):
            places = np.arange(self.slide.outputs[way])[:, None] * self.slide.stride[way]
            places = places + np.array(Taps.of(self.slide, way).others, dtype=np.int64)
            inside = ((places >= 0) & (places < self.slide.size[way])).sum(axis=1)
            found.append(np.concatenate([[0], inside.cumsum()]))
        return found[0], found[1]

    @property
    def choices(self) -> tuple[bool, ...]:
        """Whether products may bring elements into the accumulators; always they need not."""
        slide = self.slide
        windows = zip(slide.kernel, slide.stride, slide.dilation, strict=True)
        dense = all(size > 1 and size >= step and apart == 1 for size, step, apart in windows)
        able = self.signed and self.square and dense and all(Taps.of(slide, way).whole for way in range(2))
        return (False, True) if able else (False,)


def pool_shape(workload: Workload, config: Config) -> PoolShape:
    """The shape of a max pooling on a machine."""
    sizes = workload.parameters
    return PoolShape(
        batches=-(-sizes["N"] // config.batch),
        channels=-(-sizes["C"] // config.block_out),
        slide=sliding_of(workload),
        signed=workload.output.dtype == "int8",
        square=adds_by_product(config),
    )


class PoolTable(NamedTuple):
    """Many plans at once, one array per attribute; ``along_rows`` is the choice of what threads run along.
    ``products`` is the same for all plans that a model looks at."""

    channels: IntArray
    rows: IntArray
    columns: IntArray
    threads: IntArray
    along_rows: BoolArray
    products: BoolArray

    @classmethod
    def of(cls, plans: list[PoolPlan]) -> PoolTable:
        """The table of some plans."""
        rows = [
            (p.channels, p.rows, p.columns, p.threads, p.thread_axis == "rows", p.products) for p in plans
        ]
        table = np.array(rows, dtype=np.int64).reshape(-1, len(cls._fields)).T
        channels, lines, columns, threads, along_rows, products = table
        return cls(channels, lines, columns, threads, along_rows > 0, products > 0)

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
                products=products,
            )
            for channels, rows, columns, threads, along_rows, products in zip(
                *(array.tolist() for array in self), strict=True
            )
        ]


class _Lines(NamedTuple):
    """What tiles have in one direction.

    Attributes:
        outputs: rows or columns.
        begin: the first output.
        part: how many there are in a whole part.
        inputs: that their windows see.
        steps: of the ALU for all of them, besides copies.
    """

    begin: IntArray
    part: IntArray
    outputs: IntArray
    inputs: IntArray
    steps: IntArray


class _Phases:
    """Rows (``way`` 0) or columns (1) of the input by their place modulo the stride, as windows read them.

    Attributes:
        in_place: whether maxima take the place of the phase that they start from.
    """

    def __init__(self, slide: Sliding, way: int) -> None:
        taps, self.step = Taps.of(slide, way), slide.stride[way]
        self.size, self.outputs = slide.size[way], slide.outputs[way]
        self.in_place = taps.own and 0 <= taps.first < self.step
        self.ends_with_outputs = self._whole(taps.first % self.step) == self.outputs
        """Whether the phase that maxima start from has no more elements than there are outputs."""
        self.alone = all(tap % self.step != taps.first % self.step for tap in taps.others)
        """Whether that phase has no other element of a window."""
        every = (taps.first, *taps.others)
        self.read = {
            phase: [tap // self.step for tap in every if tap % self.step == phase]
            for phase in sorted({tap % self.step for tap in every})
        }

    def _whole(self, phase: int) -> int:
        return -(-(self.size - phase) // self.step)

    def held(self, part: IntArray) -> IntArray:
        """Most of all phases together that so many outputs read."""
        return np.asarray(sum(self._held(phase, part) for phase in self.read))

    def _held(self, phase: int, part: IntArray) -> IntArray:
        places = self.read[phase]
        return np.minimum(self._whole(phase), part + (max(places) - min(places)))

    def held_by(self, begin: IntArray, part: IntArray, *, cut: bool) -> IntArray:
        """Of all phases together, what stages hold for outputs from one on.

        Args:
            begin: the first of a part of the outputs.
            part: how many there are in a part; the last one may have fewer, and holds what there is.
            cut: whether what lies in front of the input is left out, and not made up for behind.
        """
        found = []
        for phase, places in self.read.items():
            first = np.maximum(begin + min(places), 0)
            end = (begin + min(places) if cut else first) + part + max(places) - min(places)
            found.append(np.maximum(np.minimum(end, self._whole(phase)) - first, 0))
        return np.asarray(sum(found))

    def loaded(self, part: IntArray) -> IntArray:
        """Most of the input that lies between the first and the last that so many outputs read, where the
        first of all parts begins at the first element."""
        spans: list[IntArray] = []
        for first in (True, False):
            starts = {
                phase: phase + self.step * (max(min(places), 0) if first else min(places))
                for phase, places in self.read.items()
            }
            ends = [at + self.step * (self._held(phase, part) - 1) for phase, at in starts.items()]
            spans.append(np.max(ends, axis=0) - min(starts.values()) + 1)
        several = part < self.outputs
        return np.asarray(np.minimum(self.size, np.where(several, np.maximum(*spans), spans[0])))

    def loaded_by(self, begin: IntArray, part: IntArray) -> IntArray:
        """What of the input is loaded for a part of the outputs that begins at one."""
        starts = [phase + self.step * np.maximum(begin + min(q), 0) for phase, q in self.read.items()]
        return np.asarray(np.minimum(self.loaded(part), self.size - np.min(starts, axis=0)))


class PoolModel:
    """A max pooling on a machine, and its plans: which fit, and what they do. All of them use products, or
    none."""

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
        self.products = bool(table.products.any())
        self.phases = _Phases(shape.slide, 0), _Phases(shape.slide, 1)
        self.copy_slots = 1 if overwrites(config) else 2

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
        """Whether the scratchpads have room."""
        found = self._stored_at_once() if self.products else np.full(self.table.channels.shape, True)
        for name, elements in self.needs().items():
            found = found & (elements <= SCRATCHPADS[name].depth(self.config))
        return found

    def needs(self) -> dict[str, IntArray]:
        """Elements that plans take, by scratchpad."""
        table = self.table
        each = table.channels * table.threads
        if self.products:
            down, across = self.phases
            rows, columns = down.held(table.rows), across.held(table.columns)
            needed = rows * columns + rows * table.columns * (not across.in_place)
            needed = needed + table.rows * table.columns * (not down.in_place)
            loaded = down.loaded(table.rows) * across.loaded(table.columns)
            return {"inp": each * loaded, "wgt": np.ones_like(each), "acc": each * needed}
        rows, columns = self._seen(0, table.rows), self._seen(1, table.columns)
        apart = rows * table.columns if self.both and not self.taps[1].own else 0
        return {"acc": each * (rows * columns + apart + table.rows * table.columns)}

    def _stored_at_once(self) -> BoolArray:
        """Whether tiles that take the place of what products have copied lie there without gaps: they, and
        the last ones, hold no more of it than there are outputs."""
        down, across = self.phases
        rows = (self.height % self.table.rows == 0) & down.alone | down.ends_with_outputs
        columns = (self.width % self.table.columns == 0) & across.alone | across.ends_with_outputs
        return np.asarray(
            (rows | (not down.in_place)) & (columns | (not (down.in_place and across.in_place)))
        )

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
        return found if self.products else replace(found, compute=found.compute + found.load)

    def _start(self) -> tuple[FloatArray, FloatArray]:
        """When compute unit and port are free, where products copy: behind the first instructions and the
        micro-ops, which all loops of an instruction but the two longest need."""
        table, config = self.table, self.config
        sides = np.sort(np.stack([table.channels, table.rows, table.columns]), axis=0)
        uops = np.minimum(table.threads * self._instructions * sides[0], config.uop_depth)
        first = fetched_first(config)
        moved = uops * UOP_BYTES + config.wgt_element_bytes + config.fetch_buffer * INSTRUCTION_BYTES
        port = first + moved / config.bus_bytes
        return np.maximum(port, first + 3.0 + config.read_latency) + WRITE_DELAY + 1, port

    def _lines(self, way: int, number: IntArray, part: IntArray) -> _Lines:
        """Tiles of so many rows or columns, by number."""
        slide, size, before = self.slide, self.slide.size[way], self.slide.padding[way]
        begin = np.minimum(number * part, slide.outputs[way])
        end = np.minimum(begin + part, slide.outputs[way])
        first = np.maximum(0, begin * slide.stride[way] - before)
        last = np.minimum(size, (end - 1) * slide.stride[way] + slide.reach[way] - before)
        seen = last - first if self.taps[way].whole else np.full_like(begin, size)
        if self.products:
            seen = self.phases[way].loaded_by(begin, part)
        steps = self.shape.steps[way]
        return _Lines(begin, part, end - begin, seen, steps[end] - steps[begin])

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
        steps_down, steps_across = (int(steps[-1]) for steps in self.shape.steps)
        copies = self.height * self.width * _COPY
        slots = np.full(count, copies + steps_down * self.width)
        if self.both:
            slots = slots + down * (steps_across + (0 if self.taps[1].own else self.width * _COPY))
        else:
            slots = slots + steps_across * self.height
        if self.products:
            slots = self._product_slots()
        rows = np.where(table.along_rows, parts(self.down_rows, table.threads), self.down_rows)
        channels = np.where(
            table.along_rows, self.across_channels, parts(self.across_channels, table.threads)
        )
        start = np.full(count, 2.0 * config.read_latency + compute_depth(config))
        port = 0 * start
        if self.products:
            start, port = self._start()
        return Work(
            turns=self.shape.batches * channels * rows * self.across_columns * table.threads,
            period=table.threads * self.across_columns,
            round=table.threads * self.across_columns,
            anew=np.zeros(count),
            filling=np.zeros(count, dtype=np.int64),
            threads=table.threads,
            slots=1.0 * blocks * slots,
            load_bytes=1.0 * blocks * down * across * config.out_element_bytes,
            store_bytes=np.full(count, 1.0 * blocks * self.height * self.width * config.out_element_bytes),
            compute_start=start,
            port_start=port,
            load_start=port * 0 + (fetched_first(config) + _DISPATCH) * self.products,
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
        if self.products:
            copies, maxima = self._of_products(down, across)
            resets = blocks * copies * (self.copy_slots - 1.0)
            ahead = resets / self._copied_phases
            return Turns(
                valid=valid,
                first=valid,
                last=valid,
                set=slot,
                loads=load,
                clear=ahead,
                slots=blocks * copies + resets - ahead,
                tail=blocks * maxima * 1.0,
                stored=store.beats,
                stored_bursts=store.bursts,
                fetched=valid * (self._instructions + load.instructions + store.instructions),
            )
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

    def _of_products(self, down: _Lines, across: _Lines) -> tuple[IntArray, IntArray]:
        """Of one block of channels: elements that products copy, and slots of the ALU."""
        by_rows, by_columns = self.phases
        rows = by_rows.held_by(down.begin, down.part, cut=False)
        columns = by_columns.held_by(across.begin, across.part, cut=True)
        maxima = by_rows.held_by(down.begin, down.part, cut=True)
        first = across.steps + across.outputs * _COPY * (not by_columns.in_place)
        second = down.steps + down.outputs * _COPY * (not by_rows.in_place)
        return rows * columns, maxima * first + across.outputs * second

    @property
    def _copied_phases(self) -> int:
        """Phases, down times across; each is reset right before it is copied."""
        down, across = self.phases
        return len(down.read) * len(across.read)

    @property
    def _instructions(self) -> int:
        """Of the compute unit for a tile, where products copy: for phases, and for steps of the ALU."""
        down, across = self.phases
        copies = self._copied_phases * self.copy_slots
        first, second = (len(taps.others) for taps in reversed(self.taps))
        first, second = first + _COPY * (not across.in_place), second + _COPY * (not down.in_place)
        return copies + len(down.read) * first + second

    def _product_slots(self) -> IntArray:
        """Of all tiles together, for one block of channels and of the batch."""
        table, (down, across) = self.table, self.phases
        rows = self._held_by_all(0, table.rows, cut=False)
        columns = self._held_by_all(1, table.columns, cut=True)
        maxima = self._held_by_all(0, table.rows, cut=True)
        second, first = (
            int(self.shape.steps[way][-1]) + phases.outputs * _COPY * (not phases.in_place)
            for way, phases in enumerate((down, across))
        )
        return rows * columns * self.copy_slots + maxima * first + self.width * second

    def _held_by_all(self, way: int, part: IntArray, *, cut: bool) -> IntArray:
        """What all parts hold together."""
        phases = self.phases[way]
        sums = {
            size: int(phases.held_by(np.arange(0, phases.outputs, size), np.array(size), cut=cut).sum())
            for size in np.unique(part).tolist()
        }
        return np.array([sums[size] for size in part.tolist()], dtype=np.int64)

    def _moved(self, channels: IntArray, sizes: tuple[int, int], rows: IntArray, columns: IntArray) -> Moved:
        """A box of a tensor of such a size."""
        height, width = sizes
        size = self.config.out_element_bytes
        return moved(self.config, size, (channels, height * width), (rows, width), columns)
