"""An analytical model of convolutions: how many cycles a tiled one takes.

Like :mod:`accel.compiler.plans.gemm_model` for matrix products, it steps through tiles and steps of the sum,
not instructions, and knows what each load, GEMM and store takes and which of them wait for one another. Long
programs settle down: once the pace of like tiles is known, they are not gone through any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import NamedTuple, TypeVar

import numpy as np

from accel.compiler.ops.workload import Workload
from accel.compiler.plans.blocking import passes_of
from accel.compiler.plans.candidate import Prediction
from accel.compiler.plans.conv_schedule import ConvPlan, merged_groups
from accel.compiler.plans.gemm_plans import IntArray
from accel.core.access import DramRows
from accel.core.config import INSTRUCTION_BYTES, UOP_BYTES, Config
from accel.core.timing_rules import (
    FETCH_STARTUP,
    REQUEST_STARTUP,
    WRITE_DELAY,
    burst_beats,
    compute_depth,
    store_depth,
)

Number = TypeVar("Number", int, IntArray)
"""One, or one for each of many plans."""

_TOKEN = 1
"""Cycles from a push to the pop it allows."""
_STEADY = 3
"""How often a kind of tiles is gone through before its pace is known."""
_ALIKE = 1e-6
"""Paces are equal that differ by less."""


@dataclass(frozen=True, kw_only=True)
class ConvShape:
    """A convolution in blocks of the GEMM core.

    Attributes:
        groups: of channels, merged to whole blocks.
        batches, channels, depth: blocks of the batch, and of a group's output and input channels.
        rows, columns: of the output.
        height, width: of the input.
        kernel: rows and columns.
        stride: of the output in rows and columns of what is loaded.
        skip: distance of the rows that are loaded.
        dilation: of the kernel in rows and columns of the input.
        is_transposed: whether it is a transposed convolution.
        up: rows and columns of the output for each of the input, in such a one.
        top, left: zeros in front of the input, which are neither loaded nor multiplied.
        weighted: whether there are weights; else one block is all that products need.
        bias: whether there is one.
        residual: whether another tensor is added to each tile.
        folded: whether reset and bias are one operation.
        passes: operations on each accumulator besides GEMM.
        resets: those of them in front of the sums, 0 or 1.
        stored: whether the store unit finishes the sums, with parameters that it loads.
    """

    groups: int
    batches: int
    channels: int
    depth: int
    rows: int
    columns: int
    height: int
    width: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    skip: int
    dilation: tuple[int, int]
    is_transposed: bool
    up: tuple[int, int]
    top: int
    left: int
    weighted: bool
    bias: bool
    residual: bool
    folded: bool
    passes: int
    resets: int
    stored: bool

    @property
    def taps(self) -> int:
        """Elements of the kernel."""
        return self.kernel[0] * self.kernel[1]

    @cached_property
    def down(self) -> IntArray:
        """For each row of the output and of the kernel, whether they meet in a row of the input."""
        stride = self.stride[0] * self.skip
        if self.is_transposed:
            return _meet_transposed(self.rows, self.kernel[0], self.up[0], self.top, self.height)
        return _meet(self.rows, self.kernel[0], stride, self.dilation[0], self.top, self.height)

    @cached_property
    def across(self) -> IntArray:
        """For each column of the output and of the kernel, whether they meet in a column of the input."""
        if self.is_transposed:
            return _meet_transposed(self.columns, self.kernel[1], self.up[1], self.left, self.width)
        return _meet(self.columns, self.kernel[1], self.stride[1], self.dilation[1], self.left, self.width)

    def reach(self, way: int, outputs: Number, taps: Number | int) -> Number:
        """Rows (``way`` 0) or columns (1) of what is loaded that so many neighbours of the output and of the
        kernel meet, and what lies between."""
        if self.is_transposed:
            low, high = self._phases(way)
            return -(-outputs // self.up[way]) - (-taps // self.up[way]) - 1 + high - low
        return (outputs - 1) * self.stride[way] + (taps - 1) * self.dilation[way] + 1

    def start(self, way: int, output: int, tap: int) -> int:
        """The first row or column of the padded input that outputs and taps from these on meet."""
        if not self.is_transposed:
            return output * self.stride[way] + tap * self.dilation[way]
        before, up = (self.top, self.left)[way], self.up[way]
        last = -(-self.kernel[way] // up) - 1
        return output // up + before // up - last + self._phases(way)[0] + before

    def _phases(self, way: int) -> tuple[int, int]:
        """What differences of phases add to places in the input."""
        up, before = self.up[way], (self.top, self.left)[way] % self.up[way]
        return (before - up + 1) // up, (before + up - 1) // up

    def tile_sizes(self, way: int, most: int) -> list[int]:
        """Rows or columns of tiles of the output."""
        size, up = (self.rows, self.columns)[way], self.up[way]
        return [min(size, part * up) for part in part_sizes(-(-size // up), most)]

    @property
    def gemms(self) -> int:
        """Micro-ops of GEMM that any plan takes."""
        blocks = self.groups * self.batches * self.channels * self.depth
        return blocks * int(self.down.sum()) * int(self.across.sum())

    @property
    def outputs(self) -> int:
        """Blocks of the output."""
        return self.groups * self.batches * self.channels * self.rows * self.columns

    @property
    def biases(self) -> int:
        """Blocks of the bias."""
        return self.groups * self.channels

    @property
    def slots(self) -> int:
        """Micro-ops that any plan takes."""
        return self.gemms + self.outputs * self.passes


def _meet(outputs: int, kernel: int, stride: int, dilation: int, before: int, size: int) -> IntArray:
    place = np.arange(outputs)[:, None] * stride + np.arange(kernel) * dilation - before
    return ((place >= 0) & (place < size)).astype(np.int64)


def _meet_transposed(outputs: int, kernel: int, up: int, before: int, size: int) -> IntArray:
    place = np.arange(outputs)[:, None] + before - np.arange(kernel)
    met: IntArray = ((place % up == 0) & (place >= 0) & (place < size * up)).astype(np.int64)
    return met


def part_sizes(size: int, most: int) -> list[int]:
    """Sizes that cut ``size`` into different numbers of parts, ``most`` of them, spread evenly by ratio."""
    every = sorted({-(-size // parts) for parts in range(1, size + 1)})
    if len(every) <= most:
        return every
    picked = np.unique(np.geomspace(1, len(every), most).round().astype(int)) - 1
    return [every[i] for i in picked]


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
    length = merged.inputs * kernel[0] * kernel[1]
    cost = passes_of(workload, config, length)
    return ConvShape(
        groups=merged.count,
        weighted=workload.is_product,
        batches=-(-sizes["N"] // config.batch),
        channels=-(-merged.outputs // config.block_out),
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
        resets=cost.resets,
        stored=cost.stored,
    )


@dataclass(frozen=True)
class Moved:
    """One or several LOADs or STOREs together.

    Attributes:
        beats: on the bus.
        bursts, instructions: how many.
    """

    beats: int
    bursts: int
    instructions: int


def moved(config: Config, element: int, boxes: tuple[int, int], rows: tuple[int, int], row: int) -> Moved:
    """Runs of ``row`` elements in as few instructions as possible.

    Args:
        config: the machine.
        element: bytes.
        boxes, rows: how often the runs repeat, and how far apart, in elements.
        row: elements.
    """
    dims = [dim for dim in (boxes, rows) if dim[0] != 1]
    while dims and dims[-1][1] == row:
        row *= dims.pop()[0]
    repeats = dims[0][0] if len(dims) > 1 else 1
    count, stride = dims[-1] if dims else (1, row)
    if min(count, row) < 1:
        return Moved(0, 0, 0)
    beats = burst_beats(DramRows(0, count, row * element, stride * element), config)
    return Moved(repeats * sum(beats), repeats * len(beats), repeats)


class ConvModel:
    """Predicts plans for one convolution on one machine."""

    def __init__(self, shape: ConvShape, config: Config) -> None:
        self.shape = shape
        self.config = config
        self.drain = compute_depth(config)
        self._known: dict[tuple[object, ...], Moved] = {}

    def predict(self, plan: ConvPlan) -> Prediction:
        """The cycles of a plan, and how busy it keeps each unit."""
        return _Walk(self, plan).predict()

    # --- transfers ---------------------------------------------------------------------------------

    def loaded(self, top: int, rows: int, left: int, columns: int, depth: int) -> Moved:
        """``rows`` and ``columns`` of the padded input, without the padding, from ``top`` and ``left`` on, in
        ``depth`` blocks of channels."""
        shape = self.shape
        if shape.skip == 1:
            rows = min(top + rows, shape.top + shape.height) - max(top, shape.top)
        columns = min(left + columns, shape.left + shape.width) - max(left, shape.left)
        key = ("inp", rows, columns, depth)
        if key not in self._known:
            self._known[key] = self._boxes(
                self.config.inp_element_bytes,
                (depth, shape.height * shape.width),
                (rows, shape.skip * shape.width),
                columns,
            )
        return self._known[key]

    def weights(self, channels: int, depth: int, kernel_rows: int) -> Moved:
        """Weights of blocks of output and input channels and of some rows of the kernel."""
        shape = self.shape
        if not shape.weighted:
            return self._boxes(self.config.wgt_element_bytes, (1, 1), (1, 1), channels * depth)
        key = ("wgt", channels, depth, kernel_rows)
        if key not in self._known:
            self._known[key] = self._boxes(
                self.config.wgt_element_bytes,
                (channels, shape.depth * shape.taps),
                (depth, shape.taps),
                kernel_rows * shape.kernel[1],
            )
        return self._known[key]

    def stored(self, channels: int, rows: int, columns: int) -> Moved:
        """A tile of the output, or of the residual."""
        shape = self.shape
        key = ("out", channels, rows, columns)
        if key not in self._known:
            self._known[key] = self._boxes(
                self.config.out_element_bytes,
                (channels, shape.rows * shape.columns),
                (rows, shape.columns),
                columns,
            )
        return self._known[key]

    def bias(self, channels: int) -> Moved:
        """The bias of some blocks of channels."""
        return self._boxes(self.config.acc_element_bytes, (1, 1), (1, 1), channels)

    def parameters(self, channels: int) -> Moved:
        """The store unit's parameters of some blocks of channels."""
        return self._boxes(self.config.par_element_bytes, (1, 1), (1, 1), channels)

    def _boxes(self, element: int, boxes: tuple[int, int], rows: tuple[int, int], row: int) -> Moved:
        return moved(self.config, element, boxes, rows, row)


class _Tile(NamedTuple):
    """Where a tile is, in tiles."""

    batch: int
    row: int
    column: int
    channel: int
    group: int


class _Part(NamedTuple):
    """A part of a dimension that was cut."""

    begin: int
    size: int

    @property
    def span(self) -> slice:
        return slice(self.begin, self.begin + self.size)


@dataclass
class _Pace:
    """What groups of tiles, or steps, of one kind take, and how often in a row that was the same."""

    of: object = None
    seen: int = 0
    cycles: float = 0.0
    busy: Sequence[float] = ()

    def take(self, of: object, before: tuple[float, ...], after: tuple[float, ...]) -> None:
        """Another one has been gone through; ``before`` and ``after`` are the walk's clocks.

        As long as loads take more than GEMM, what was loaded ahead is used up; that is not steady.
        """
        cycles, loading, *busy = (b - a for a, b in zip(before, after, strict=True))
        steady = of == self.of and abs(cycles - self.cycles) < _ALIKE and loading < cycles + _ALIKE
        self.seen = self.seen + 1 if steady else 1
        self.of, self.cycles, self.busy = of, cycles, busy


class _Walk:
    """One pass through the tiles of a plan."""

    def __init__(self, model: ConvModel, plan: ConvPlan) -> None:
        self.model, self.plan = model, plan
        self.shape, self.config = model.shape, model.config
        shape = self.shape
        self.channels = _cuts(shape.channels, plan.channels)
        self.rows = _cuts(shape.rows, plan.rows)
        self.columns = _cuts(shape.columns, plan.columns)
        self.along_depth = plan.thread_axis == "depth"
        self.row_kinds = [shape.down[part.span].tobytes() for part in self.rows]
        self.column_kinds = [shape.across[part.span].tobytes() for part in self.columns]
        self.steps = [
            (depth, kernel)
            for depth in _cuts(shape.depth, plan.depth)
            for kernel in _cuts(shape.kernel[0], plan.kernel_rows)
        ]
        if self.along_depth:  # the loop over input channels is inside
            self.steps.sort(key=lambda step: step[1].begin)
        self.stays = len(self.steps) <= (plan.threads if self.along_depth else 1)
        """Whether buffers may still hold what is needed next."""
        self.load_free = self.port_free = self.compute_free = self.write_free = 0.0
        self.busy = [0.0, 0.0, 0.0]
        """Cycles in which compute, load and store unit are at work."""
        self.fetched = 0
        self.gemm_instructions = 1 if shape.gemms == shape.outputs * shape.depth * shape.taps else 2
        """Of each step."""
        self.down: dict[tuple[int, _Part], int] = {}
        self.across: dict[int, int] = {}
        self.flying: deque[_Flight] = deque()
        self.bursts = self.instructions = 0
        """In flight."""
        self.used: dict[int, float] = {}
        """By buffers: when the GEMM that read them last is done."""
        self.stored: dict[int, float] = {}
        """By accumulators: when the last tile in them is stored."""
        self.held: dict[tuple[str, int], object] = {}
        """What buffers hold."""
        self.paces: dict[object, _Pace] = {}
        """By kinds of tiles and of those before them."""
        self.before: object = None
        """The kind of tiles gone through last."""
        self.waiting = False
        """Whether a bias that stays is still to be loaded."""

    def predict(self) -> Prediction:
        self._startup()
        rounds = self._chunks("groups", self.shape.groups)
        pace = _Pace()
        for number, groups in enumerate(rounds):
            tiles = list(self._tiles(groups))
            last = number == len(rounds) - 1
            if pace.seen >= _STEADY and not last:
                self._skip(pace)
                self.held.update(self._held_after(tiles[-1]))
                continue
            start = self.clocks
            fetching = self.fetched > self.config.fetch_buffer  # from then on, as one goes along
            self._round(tiles, last=last)
            if fetching:
                pace.take(len(groups), start, self.clocks)
        end = max(self.compute_free + self.model.drain, *self.stored.values())
        compute, load, store = self.busy
        return Prediction(cycles=end + 1, compute=compute, load=load, store=store)

    def _round(self, tiles: list[list[_Tile]], *, last: bool) -> None:
        """All tiles of some groups of channels; the last ones of all are gone through in any case."""
        for number, group in enumerate(tiles):
            kind = self._kind(group)
            pace = self.paces.setdefault((self.before, kind), _Pace())
            self.before = kind
            if pace.seen >= _STEADY and not (last and number == len(tiles) - 1):
                self._skip(pace)
                self.held.update(self._held_after(group))
                continue
            start = self.clocks
            self._group(group, ends=last and number == len(tiles) - 1 and not self.shape.resets)
            pace.take(kind, start, self.clocks)

    @property
    def clocks(self) -> tuple[float, ...]:
        """How far computing and loading have come, and how long each unit was at work."""
        return self.compute_free, self.port_free, *self.busy

    # --- tiles -------------------------------------------------------------------------------------

    def _chunks(self, axis: str, number: int) -> list[range]:
        """Numbers of tiles in one direction, those of threads together."""
        return list(_chunks(range(number), self.plan.threads if self.plan.thread_axis == axis else 1))

    def _tiles(self, groups: range) -> Iterator[list[_Tile]]:
        """The tiles of some groups of channels; those that are interleaved come together."""
        channels = self._chunks("channels", len(self.channels))
        turns = [[c] for c in channels] if self.plan.outer == "channels" else [channels]
        rows = self._chunks("rows", len(self.rows))
        for outer, n, ys, x in product(turns, range(self.shape.batches), rows, range(len(self.columns))):
            for os in outer:
                yield [_Tile(n, y, x, o, g) for g in groups for y in ys for o in os]

    def _kind(self, group: list[_Tile]) -> object:
        """Groups of one kind take the same time if the one before them is of the same kind."""
        sizes = tuple(
            (self.row_kinds[tile.row], self.column_kinds[tile.column], self.channels[tile.channel].size)
            for tile in group
        )
        return sizes, tuple(self.held.get(key) == value for key, value in self._held_after(group))

    def _held_after(self, group: list[_Tile]) -> Iterator[tuple[tuple[str, int], object]]:
        """What buffers hold behind a group, as far as that may stay."""
        for slot, tile in enumerate(group):
            yield from self._bias_of(slot, tile)
            if self.stays:
                for step in range(len(self.steps)):
                    yield from self._operands(slot, tile, step)

    def _buffers(self, slot: int, step: int) -> int:
        """Which pair of buffers a step of a tile uses."""
        return step % self.plan.threads if self.along_depth else slot

    def _operands(self, slot: int, tile: _Tile, step: int) -> Iterator[tuple[tuple[str, int], object]]:
        """What the buffers of a step are to hold."""
        buffers = self._buffers(slot, step)
        yield ("inp", buffers), (tile.group, tile.batch, tile.row, tile.column, step)
        if self.shape.weighted:
            yield ("wgt", buffers), (tile.group, tile.channel, step)
        else:
            yield ("wgt", buffers), (tile.channel, self.steps[step][0].begin)

    def _bias_of(self, slot: int, tile: _Tile) -> Iterator[tuple[tuple[str, int], object]]:
        """What a bias that does not stay is to hold for a tile."""
        if self.shape.bias and not self.shape.stored and not self.plan.bias_stays:
            shared = self.plan.outer == "channels" and self.plan.thread_axis == "channels"
            yield (
                ("bias", 0 if shared or self.plan.thread_axis == "depth" else slot),
                (tile.group, tile.channel // self.plan.threads if shared else tile.channel),
            )

    def _elements(self, tile: _Tile) -> int:
        """Accumulators of a tile."""
        return self.rows[tile.row].size * self.columns[tile.column].size * self.channels[tile.channel].size

    def _gemms(self, tile: _Tile, depth: _Part, kernel: _Part) -> int:
        """Micro-ops of GEMM in a step of a tile."""
        key = (tile.row, kernel)
        if key not in self.down:
            rows = self.rows[tile.row].span, kernel.span
            self.down[key] = int(self.shape.down[rows].sum())
        if tile.column not in self.across:
            self.across[tile.column] = int(self.shape.across[self.columns[tile.column].span].sum())
        channels = self.channels[tile.channel].size
        return channels * depth.size * self.down[key] * self.across[tile.column]

    def _skip(self, pace: _Pace) -> None:
        """Go on as if something of a known pace had been gone through."""
        self.busy = [a + b for a, b in zip(self.busy, pace.busy, strict=True)]
        self.load_free += pace.cycles
        self.port_free += pace.cycles
        self.compute_free += pace.cycles
        self.write_free += pace.cycles
        for flight in self.flying:
            flight.end += pace.cycles
        self.used = {key: end + pace.cycles for key, end in self.used.items()}
        self.stored = {key: end + pace.cycles for key, end in self.stored.items()}

    def _group(self, group: list[_Tile], *, ends: bool = False) -> None:
        """Tiles that are interleaved; ``ends``: products of the last ones are cut up for the store unit."""
        pace = _Pace()
        for number, (depth, kernel) in enumerate(self.steps):
            if pace.seen >= _STEADY and number < len(self.steps) - 1 and pace.of == (depth.size, kernel):
                self._skip(pace)
                continue
            start = self.clocks
            last = number == len(self.steps) - 1
            early: dict[int, float] = {}
            if (
                last and self.shape.residual and not self.shape.stored
            ):  # operands are on their way before the first tile's residual
                early = {slot: self._load(slot, tile, number) for slot, tile in enumerate(group)}
            for slot, tile in enumerate(group):
                elements = self._elements(tile)
                if not number:
                    self._bias_of_tile(slot, tile)
                ready = early[slot] if early else self._load(slot, tile, number)
                if not number:
                    self._compute(elements * self.shape.resets, self.stored.get(slot, 0.0))
                self.used[self._buffers(slot, number)] = self._compute(
                    self._gemms(tile, depth, kernel), ready + _TOKEN
                )
                self._fetch(self.gemm_instructions)
                if last:
                    if self.shape.residual and not self.shape.stored:
                        self._accumulators(self._outputs(tile), self.compute_free + self.model.drain)
                    done = self._compute(elements * (self.shape.passes - self.shape.resets), 0.0)
                    self._store(slot, tile, done, self._gemms(tile, depth, kernel) if ends else 0)
                    self._fetch(self.shape.passes)
            pace.take((depth.size, kernel), start, self.clocks)

    # --- units -------------------------------------------------------------------------------------

    def _startup(self) -> None:
        """Fetching the first instructions, micro-ops, clearing of accumulators."""
        config, plan, shape = self.config, self.plan, self.shape
        first = FETCH_STARTUP + config.read_latency + WRITE_DELAY
        tiles = shape.groups * len(self.channels) * len(self.rows) * len(self.columns) * shape.batches
        instructions = 3 + tiles * (3 * len(self.steps) + shape.passes + 1)
        ahead = min(config.fetch_buffer, instructions)
        self.port_free = first + ahead * INSTRUCTION_BYTES / config.bus_bytes
        self.load_free = first + 12
        loops = sorted(
            (plan.channels, plan.rows, plan.columns, plan.depth, plan.kernel_rows, shape.kernel[1])
        )
        uops = plan.threads * (prod(loops[:-2]) + 2)
        self.port_free += uops * UOP_BYTES / config.bus_bytes
        self.compute_free = self.port_free + WRITE_DELAY + 1
        if shape.folded:
            sets = 1 if self.along_depth else plan.threads
            self.compute_free += sets * plan.channels * plan.rows * plan.columns + self.model.drain
        self.waiting = shape.bias and plan.bias_stays and not shape.stored
        if shape.stored and plan.bias_stays:
            self.port_free += self.model.parameters(shape.biases).beats

    def _bias_of_tile(self, slot: int, tile: _Tile) -> None:
        """LOAD of a bias that does not stay."""
        for key, value in self._bias_of(slot, tile):
            if self.held.get(key) != value:
                self.held[key] = value
                size = self.channels[tile.channel].size
                self._accumulators(self.model.bias(size), self.compute_free + self.model.drain)

    def _accumulators(self, moved: Moved, start: float) -> None:
        """LOADs of the compute unit, one after the other; it is empty before and after."""
        waits = (moved.instructions - 1) * (REQUEST_STARTUP + self.config.read_latency + WRITE_DELAY + 1)
        first = max(start + REQUEST_STARTUP + self.config.read_latency, self.port_free)
        self.port_free = first + moved.beats + waits
        self.compute_free = self.port_free + WRITE_DELAY + 1
        self._fetch(moved.instructions)

    def _outputs(self, tile: _Tile) -> Moved:
        """A tile of the output."""
        return self.model.stored(
            self.channels[tile.channel].size, self.rows[tile.row].size, self.columns[tile.column].size
        )

    def _fetch(self, instructions: int) -> None:
        """Reading instructions, which takes the port from others once the first buffer is used up."""
        self.fetched += instructions
        if self.fetched > self.config.fetch_buffer:
            self.port_free += instructions * INSTRUCTION_BYTES / self.config.bus_bytes

    def _compute(self, slots: float, ready: float) -> float:
        """Run micro-ops once they may start; returns when their results are there."""
        self.compute_free = max(self.compute_free, ready) + slots
        self.busy[0] += slots
        return self.compute_free + self.model.drain

    def _loads(self, slot: int, tile: _Tile, step: int) -> list[Moved]:
        """What a step has to load: input and weights that its buffers do not hold already."""
        shape, model = self.shape, self.model
        depth, kernel = self.steps[step]
        found = []
        for key, content in self._operands(slot, tile, step):
            if self.held.get(key) == content:
                continue
            self.held[key] = content
            if key[0] == "wgt":
                found.append(model.weights(self.channels[tile.channel].size, depth.size, kernel.size))
                continue
            row, column = self.rows[tile.row], self.columns[tile.column]
            found.append(
                model.loaded(
                    shape.start(0, row.begin, kernel.begin),
                    shape.reach(0, row.size, kernel.size),
                    shape.start(1, column.begin, 0),
                    shape.reach(1, column.size, shape.kernel[1]),
                    depth.size,
                )
            )
        return found

    def _load(self, slot: int, tile: _Tile, step: int) -> float:
        """Operands of a step; returns when they are there."""
        loads = self._loads(slot, tile, step)
        free = self.used.get(self._buffers(slot, step), 0.0)
        if self.waiting and loads:
            self.waiting = False
            return self._first_load(loads)
        return max([self._transfer(moved, free) for moved in loads], default=0.0)

    def _first_load(self, loads: list[Moved]) -> float:
        """Operands of the first step, and in front of the last of them the bias."""
        start = self.compute_free
        done = [self._transfer(moved, 0.0) for moved in loads[:-1]]
        self._accumulators(self.model.bias(self.shape.biases), start)
        self.load_free = max(self.load_free, start)
        return max([*done, self._transfer(loads[-1], 0.0)])

    def _transfer(self, moved: Moved, free: float) -> float:
        """LOADs into buffers that are free from some cycle on; returns when they have retired."""
        config = self.config
        start = max(self.load_free, free + _TOKEN)
        while self.flying and self.flying[0].end < start:
            landed = self.flying.popleft()
            self.bursts -= landed.bursts
            self.instructions -= landed.instructions
        start = max(start, self._landed("instructions", 1 - config.loads_in_flight))
        asked = max(start + REQUEST_STARTUP, self._landed("bursts", 1 - config.outstanding))
        first = max(asked + config.read_latency, self.port_free)
        beats = moved.beats / max(1, moved.bursts)
        data = float(moved.beats)
        if moved.bursts > config.outstanding:
            data = max(data, moved.bursts * (config.read_latency + beats) / config.outstanding)
        if moved.instructions > config.loads_in_flight:
            each = config.read_latency + moved.beats / moved.instructions + 3
            data = max(data, moved.instructions * each / config.loads_in_flight)
        self.port_free = first + data
        flight = _Flight(self.port_free, data, moved.bursts, moved.instructions)
        self.flying.append(flight)
        self.bursts += moved.bursts
        self.instructions += moved.instructions
        self.load_free = max(
            asked + moved.bursts,
            self._landed("bursts", -config.outstanding),
            self._landed("instructions", -config.loads_in_flight),
        )
        self.busy[1] += moved.beats
        self._fetch(moved.instructions)
        return self.port_free + WRITE_DELAY

    def _landed(self, what: str, excess: int) -> float:
        """When so few are in flight that ``excess`` and all of them together are none too many."""
        excess += self.bursts if what == "bursts" else self.instructions
        if excess <= 0:
            return 0.0
        for flight in self.flying:
            number = flight.bursts if what == "bursts" else flight.instructions
            if excess <= number:
                return flight.end - flight.data * (1 - excess / number)
            excess -= number
        return self.port_free

    def _store(self, slot: int, tile: _Tile, ready: float, beside: int) -> None:
        """STOREs of a tile, block of channels by block of channels.

        Args:
            slot: the accumulators.
            tile: which one.
            ready: when its sums are there.
            beside: the last of its products, beside which earlier blocks are stored.
        """
        config, blocks = self.config, self.channels[tile.channel].size
        moved = self._outputs(tile)
        slow = config.bus_bytes / config.lanes if self.shape.stored else 1.0
        data = max(moved.beats * slow, moved.bursts * config.write_latency / config.outstanding)
        early = beside * (1 - 1 / blocks)
        first = max(ready - early + _TOKEN + REQUEST_STARTUP + store_depth(config), self.write_free)
        self.write_free = max(first + data, first + early + data / blocks)
        self.busy[2] += moved.beats
        self.stored[slot] = self.write_free + config.write_latency
        if self.shape.stored:
            if self.shape.residual:
                self.port_free += moved.beats
            if not self.plan.bias_stays:
                self.port_free += self.model.parameters(blocks).beats


@dataclass
class _Flight:
    """LOADs in flight: when the last of their data is there, how long it takes, bursts and instructions."""

    end: float
    data: float
    bursts: int
    instructions: int


def _cuts(size: int, part: int) -> list[_Part]:
    """The parts that ``size`` is cut into; the last one may be shorter."""
    return [_Part(begin, min(part, size - begin)) for begin in range(0, size, part)]


def _chunks(numbers: range, size: int) -> Iterator[range]:
    """``numbers``, ``size`` of them at a time."""
    for begin in range(0, len(numbers), size):
        yield numbers[begin : begin + size]
