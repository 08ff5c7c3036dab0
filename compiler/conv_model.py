"""An analytical model of convolutions: how many cycles a tiled one takes.

Like :mod:`accel.compiler.model` for matrix products, it steps through tiles and steps of the sum, not
instructions, and knows what each load, GEMM and store takes and which of them wait for one another. Long
programs settle down: of their middle only the length is reckoned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from accel.access import DramRows
from accel.compiler.conv_schedule import ConvPlan
from accel.compiler.model import Prediction
from accel.compiler.startup import holds_last
from accel.compiler.workload import Workload
from accel.config import INSTRUCTION_BYTES, UOP_BYTES, Config
from accel.timing import (
    FETCH_STARTUP,
    REQUEST_STARTUP,
    STORE_READ_DELAY,
    WRITE_DELAY,
    burst_beats,
    compute_depth,
)

_TOKEN = 1
"""Cycles from a push to the pop it allows."""
_WALKED = 160
"""Steps that are gone through one by one before the rest is reckoned."""
_LAST = 3
"""Groups of tiles at the end that are gone through one by one."""


@dataclass(frozen=True, kw_only=True)
class ConvShape:
    """A convolution in blocks of the GEMM core.

    Attributes:
        batches, channels, depth: blocks of the batch, of output and of input channels.
        rows, columns: of the output.
        height, width: of the input.
        kernel: rows and columns.
        stride: of the output in rows and columns of what is loaded.
        skip: distance of the rows that are loaded.
        top, left: zeros in front of the input.
        bias: whether there is one.
        folded: whether reset and bias are one operation.
        passes: operations on each accumulator besides GEMM.
    """

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
    top: int
    left: int
    bias: bool
    folded: bool
    passes: int

    @property
    def taps(self) -> int:
        """GEMMs per output element and block of input channels."""
        return self.kernel[0] * self.kernel[1]

    @property
    def slots(self) -> int:
        """Micro-ops that any plan takes."""
        outputs = self.batches * self.channels * self.rows * self.columns
        return outputs * (self.depth * self.taps + self.passes)


def conv_shape(workload: Workload, config: Config) -> ConvShape:
    """The shape of a convolution on a machine."""
    sizes = workload.parameters
    _, channels, rows, columns = workload.output.shape
    data, _ = workload.factors
    window = data.tensor.shape
    kernel = tuple(sizes["kernel"])
    vertical, horizontal = sizes["stride"]
    skip = vertical if rows > 1 and window[2] < (rows - 1) * vertical + kernel[0] else 1
    top, left, _, _ = sizes["padding"]
    length = sizes["IC"] * kernel[0] * kernel[1]
    return ConvShape(
        batches=-(-sizes["N"] // config.batch),
        channels=-(-channels // config.block_out),
        depth=-(-sizes["IC"] // config.block_in),
        rows=rows,
        columns=columns,
        height=sizes["H"],
        width=sizes["W"],
        kernel=(kernel[0], kernel[1]),
        stride=(vertical // skip, horizontal),
        skip=skip,
        top=top,
        left=left,
        bias=workload.bias is not None,
        folded=workload.epilogue.folds(length),
        passes=workload.epilogue.passes(length),
    )



@dataclass(frozen=True)
class Moved:
    """One or several LOADs or STOREs together.

    Attributes:
        beats: on the bus.
        bursts, instructions: how many.
        zeros: elements of padding that are written.
    """

    beats: int
    bursts: int
    instructions: int
    zeros: int = 0


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
        """``rows`` and ``columns`` of what is read of the padded input, from ``top`` and ``left`` on, in
        ``depth`` blocks of channels."""
        shape = self.shape
        if shape.skip == 1:
            held_rows = min(top + rows, shape.top + shape.height) - max(top, shape.top)
        else:
            held_rows = rows
        held_columns = min(left + columns, shape.left + shape.width) - max(left, shape.left)
        key = ("inp", rows, columns, held_rows, held_columns, depth)
        if key not in self._known:
            self._known[key] = self._boxes(
                self.config.inp_element_bytes,
                (depth, shape.height * shape.width),
                (held_rows, shape.skip * shape.width),
                held_columns,
                zeros=depth * (rows * columns - max(0, held_rows) * max(0, held_columns)),
            )
        return self._known[key]

    def weights(self, channels: int, depth: int, kernel_rows: int) -> Moved:
        """Weights of blocks of output and input channels and of some rows of the kernel."""
        shape = self.shape
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
        """A tile of the output."""
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

    def _boxes(
        self, element: int, boxes: tuple[int, int], rows: tuple[int, int], row: int, zeros: int = 0
    ) -> Moved:
        """Runs of ``row`` elements in as few instructions as possible.

        Args:
            element: bytes.
            boxes, rows: how often the runs repeat, and how far apart, in elements.
            row: elements.
            zeros: around the runs.
        """
        dims = [dim for dim in (boxes, rows) if dim[0] != 1]
        while dims and dims[-1][1] == row and not zeros:
            row *= dims.pop()[0]
        repeats = dims[0][0] if len(dims) > 1 else 1
        count, stride = dims[-1] if dims else (1, row)
        if min(count, row) < 1:
            return Moved(0, 0, repeats, zeros)
        beats = burst_beats(DramRows(0, count, row * element, stride * element), self.config)
        return Moved(repeats * sum(beats), repeats * len(beats), repeats, zeros)


class _Tile(NamedTuple):
    """Where a tile is, in tiles."""

    batch: int
    row: int
    column: int
    channel: int


class _Part(NamedTuple):
    """A part of a dimension that was cut."""

    begin: int
    size: int


class _Walk:
    """One pass through the tiles of a plan."""

    def __init__(self, model: ConvModel, plan: ConvPlan) -> None:
        self.model, self.plan = model, plan
        self.shape, self.config = model.shape, model.config
        shape = self.shape
        self.channels = _cuts(shape.channels, plan.channels)
        self.rows = _cuts(shape.rows, plan.rows)
        self.columns = _cuts(shape.columns, plan.columns)
        self.steps = [
            (depth, kernel)
            for depth in _cuts(shape.depth, plan.depth)
            for kernel in _cuts(shape.kernel[0], plan.kernel_rows)
        ]
        if plan.thread_axis == "depth":  # the loop over input channels is inside
            self.steps.sort(key=lambda step: (step[1].begin, step[0].begin))
        self.load_free = self.port_free = self.compute_free = self.write_free = 0.0
        self.compute_busy = self.load_busy = self.store_busy = 0.0
        self.fetched = 0
        self.flying: deque[tuple[float, int]] = deque()
        """When operand loads in flight are done, and their bursts."""
        self.used: dict[int, float] = {}
        """By buffers: when the GEMM that read them last is done."""
        self.stored: dict[int, float] = {}
        """By accumulators: when the last tile in them is stored."""
        self.held: dict[tuple[str, int], object] = {}
        self.waiting = False
        """Whether a bias that stays is still to be loaded."""
        self.cleared = 0
        """Accumulators that are cleared before."""

    def predict(self) -> Prediction:
        groups = list(self._groups())
        self._startup()
        work = [self._work(group) for group in groups]
        jumped, before, number = False, (0.0, 0.0), 0
        most = max(4, _WALKED // (self.plan.threads * len(self.steps)))
        while number < len(groups):
            self._group(groups[number])
            number += 1
            if number == most // 2:
                before = (self.compute_free, self.compute_busy)
            if not jumped and number == most and len(groups) - number > _LAST:
                jumped = True
                skipped, done = sum(work[number:-_LAST]), self.compute_busy - before[1]
                cycles = (self.compute_free - before[0]) * skipped / done
                self._jump(skipped / self.compute_busy, cycles)
                number = len(groups) - _LAST
        end = max(self.compute_free + self.model.drain, *self.stored.values())
        return Prediction(
            cycles=end + 1, compute=self.compute_busy, load=self.load_busy, store=self.store_busy
        )

    def _jump(self, share: float, cycles: float) -> None:
        """Leave out some groups."""
        self.compute_busy += self.compute_busy * share
        self.load_busy += self.load_busy * share
        self.store_busy += self.store_busy * share
        self.load_free += cycles
        self.port_free += cycles
        self.compute_free += cycles
        self.write_free += cycles
        self.flying = deque((end + cycles, bursts) for end, bursts in self.flying)
        self.used = {key: end + cycles for key, end in self.used.items()}
        self.stored = {key: end + cycles for key, end in self.stored.items()}

    # --- tiles -------------------------------------------------------------------------------------

    def _groups(self) -> Iterator[list[_Tile]]:
        """The tiles, in groups that are interleaved."""
        plan = self.plan
        together = plan.threads if plan.thread_axis != "depth" else 1
        rows, channels = range(len(self.rows)), range(len(self.channels))
        along_rows = plan.thread_axis == "rows"
        row_groups = list(_chunks(rows, together if along_rows else 1))
        channel_groups = list(_chunks(channels, 1 if along_rows else together))
        for outer in channel_groups if plan.outer == "channels" else [None]:
            for n in range(self.shape.batches):
                for ys in row_groups:
                    for x in range(len(self.columns)):
                        for os in channel_groups if outer is None else [outer]:
                            yield [_Tile(n, y, x, o) for y in ys for o in os]

    def _elements(self, tile: _Tile) -> int:
        """Accumulators of a tile."""
        return self.rows[tile.row].size * self.columns[tile.column].size * self.channels[tile.channel].size

    def _work(self, group: list[_Tile]) -> int:
        slots = self.shape.depth * self.shape.taps + self.shape.passes
        return slots * sum(map(self._elements, group))

    def _group(self, group: list[_Tile]) -> None:
        plan, shape = self.plan, self.shape
        for number, (depth, kernel) in enumerate(self.steps):
            for slot, tile in enumerate(group):
                elements = self._elements(tile)
                buffers = number % plan.threads if plan.thread_axis == "depth" else slot
                if not number:
                    self._begin(slot, tile)
                loads = self._loads(buffers, tile, number, depth, kernel)
                ready = self._load(buffers, loads)
                if not number:
                    self._compute(elements, self.stored.get(slot, 0.0))
                slots = elements * depth.size * kernel.size * shape.kernel[1]
                self.used[buffers] = self._compute(slots, ready + _TOKEN)
                self._fetch(1)
                if number == len(self.steps) - 1:
                    done = self._compute(elements * (shape.passes - 1), 0.0)
                    self._store(slot, tile, done)
                    self._fetch(shape.passes)

    # --- units -------------------------------------------------------------------------------------

    def _startup(self) -> None:
        """Fetching the first instructions, micro-ops, clearing of accumulators, and the first bias."""
        config, plan, shape = self.config, self.plan, self.shape
        first = FETCH_STARTUP + config.read_latency + WRITE_DELAY
        self.port_free = first + config.fetch_buffer * INSTRUCTION_BYTES / config.bus_bytes
        self.load_free = first + 12
        loops = sorted((plan.channels, plan.rows, plan.columns, plan.depth, plan.kernel_rows, shape.kernel[1]))
        uops = plan.threads * (prod(loops[:-2]) + 2)
        self.port_free += uops * UOP_BYTES / config.bus_bytes
        self.compute_free = self.port_free + WRITE_DELAY + 1
        if shape.folded:
            sets = 1 if plan.thread_axis == "depth" else plan.threads
            self.cleared = sets * plan.channels * plan.rows * plan.columns
            self.compute_free += self.cleared + self.model.drain
        self.waiting = shape.bias and plan.bias_stays

    def _begin(self, slot: int, tile: _Tile) -> None:
        """LOAD of the bias of a tile, where it does not stay."""
        if not self.shape.bias or self.plan.bias_stays:
            return
        part = self.channels[tile.channel]
        if self.plan.outer == "channels" and self.plan.thread_axis == "channels":
            begin = tile.channel // self.plan.threads
            slot, part = 0, _Part(begin, part.size * self.plan.threads)
        if self.held.get(("bias", slot)) != part:
            self.held["bias", slot] = part
            self._bias(self.model.bias(part.size), self.compute_free + self.model.drain)

    def _bias(self, bias: Moved, start: float) -> None:
        """A LOAD of the compute unit; it is empty before and after."""
        first = max(start + REQUEST_STARTUP + self.config.read_latency, self.port_free)
        self.port_free = first + bias.beats
        self.compute_free = self.port_free + WRITE_DELAY + 1
        self._fetch(1)

    def _fetch(self, instructions: int) -> None:
        """Reading instructions, which takes the port from others once the first buffer is used up."""
        self.fetched += instructions
        if self.fetched > self.config.fetch_buffer:
            self.port_free += instructions * INSTRUCTION_BYTES / self.config.bus_bytes

    def _compute(self, slots: float, ready: float) -> float:
        """Run micro-ops once they may start; returns when their results are there."""
        self.compute_free = max(self.compute_free, ready) + slots
        self.compute_busy += slots
        return self.compute_free + self.model.drain

    def _loads(self, buffers: int, tile: _Tile, step: int, depth: _Part, kernel: _Part) -> list[Moved]:
        """What a step has to load: input and weights that its buffers do not hold already."""
        shape, model = self.shape, self.model
        found = []
        content: object = (tile.batch, tile.row, tile.column, step)
        if self.held.get(("inp", buffers)) != content:
            self.held["inp", buffers] = content
            row, column = self.rows[tile.row], self.columns[tile.column]
            found.append(
                model.loaded(
                    row.begin * shape.stride[0] + kernel.begin,
                    (row.size - 1) * shape.stride[0] + kernel.size,
                    column.begin * shape.stride[1],
                    (column.size - 1) * shape.stride[1] + shape.kernel[1],
                    depth.size,
                )
            )
        content = (tile.channel, step)
        if self.held.get(("wgt", buffers)) != content:
            self.held["wgt", buffers] = content
            found.append(model.weights(self.channels[tile.channel].size, depth.size, kernel.size))
        return found

    def _load(self, buffers: int, loads: list[Moved]) -> float:
        """Operands of a step; returns when they are there."""
        free = self.used.get(buffers, 0.0)
        if self.waiting:
            self.waiting = False
            return self._first_load(loads)
        return max([self._transfer(moved, free) for moved in loads], default=0.0)

    def _first_load(self, loads: list[Moved]) -> float:
        """Operands of the first step, and the bias, as :mod:`accel.compiler.startup` orders them."""
        bias, start = self.model.bias(self.shape.channels), self.compute_free
        last = holds_last(
            self.config,
            before=self.cleared,
            behind=self.plan.channels * self.plan.rows * self.plan.columns,
            needed=sum(moved.beats for moved in loads),
            last=loads[-1].beats,
        )
        done = [self._transfer(moved, 0.0) for moved in loads[: len(loads) - last]]
        self._bias(bias, start)
        self.load_free = max(self.load_free, start)
        return max([*done, *(self._transfer(moved, 0.0) for moved in loads[len(loads) - last :])])

    def _transfer(self, moved: Moved, free: float) -> float:
        """LOADs into buffers that are free from some cycle on; returns when they have retired."""
        config = self.config
        start = max(self.load_free, free + _TOKEN)
        while self.flying and self.flying[0][0] < start:
            self.flying.popleft()
        bursts = moved.bursts + sum(b for _, b in self.flying)
        for end, others in self.flying:
            if bursts <= config.outstanding:
                break
            start, bursts = max(start, end - moved.bursts), bursts - others
        first = max(start + REQUEST_STARTUP + config.read_latency, self.port_free)
        data = max(
            moved.beats,
            moved.bursts * config.read_latency / config.outstanding,
            moved.instructions * config.read_latency / config.loads_in_flight,
        )
        self.port_free = first + data
        self.load_free = max(start + 1 + moved.bursts, self.port_free - config.read_latency - 256)
        self.load_busy += moved.beats
        self.flying.append((self.port_free, moved.bursts))
        self._fetch(moved.instructions)
        return max(self.port_free, start + moved.zeros) + WRITE_DELAY

    def _store(self, slot: int, tile: _Tile, ready: float) -> None:
        config = self.config
        moved = self.model.stored(
            self.channels[tile.channel].size, self.rows[tile.row].size, self.columns[tile.column].size
        )
        first = max(ready + _TOKEN + REQUEST_STARTUP + STORE_READ_DELAY, self.write_free)
        self.write_free = first + max(moved.beats, moved.bursts * config.write_latency / config.outstanding)
        self.store_busy += moved.beats
        self.stored[slot] = self.write_free + config.write_latency


def _cuts(size: int, part: int) -> list[_Part]:
    """The parts that ``size`` is cut into; the last one may be shorter."""
    return [_Part(begin, min(part, size - begin)) for begin in range(0, size, part)]


def _chunks(numbers: range, size: int) -> Iterator[range]:
    """``numbers``, ``size`` of them at a time."""
    for begin in range(0, len(numbers), size):
        yield numbers[begin : begin + size]
