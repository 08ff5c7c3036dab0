"""Schedules of max pooling for those who bring none, chosen by an analytical model.

The compute unit itself loads what the ALU reads, and waits for it. So loads and ALU take turns, and only
stores go on beside them; what counts is that loads are few and large, and that a tile need not wait till the
one before is stored.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple, get_args

from accel.compiler.ops.pool import Taps
from accel.compiler.ops.sliding import Sliding
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.candidate import Candidate, unfit
from accel.compiler.plans.conv_model import Moved, moved, part_sizes
from accel.compiler.plans.model import Prediction
from accel.compiler.plans.pool_schedule import PoolPlan, PoolThreadAxis
from accel.core.config import Config
from accel.core.timing_rules import REQUEST_STARTUP, STORE_READ_DELAY, WRITE_DELAY, compute_depth

_THREADS = (1, 2)
_SIZES = 12
"""Sizes of tiles that are tried in each direction."""
_FINALISTS = 16
"""Plans that the model looks at."""
_CLOSE = 0.002
"""Plans whose cycles differ by less than this share are as good as one another; fewer threads decide."""
_COPY = 2
"""Passes that copy accumulators."""


def pool_candidates(
    workload: Workload, config: Config, threads: int | None = None
) -> list[Candidate[PoolPlan]]:
    """The most promising plans, best first.

    Args:
        workload: max pooling.
        config: the machine.
        threads: only plans with so many virtual threads; any number if not given.

    Raises:
        ScheduleError: no plan fits, or none with so many threads.
    """
    model = _Model(workload, config)
    plans = list(model.fitting(_THREADS if threads is None else (threads,)))
    if not plans:
        raise unfit("pooling", config, threads, lambda n: any(True for _ in model.fitting((n,))))
    finalists = sorted(plans, key=model.quick)[:_FINALISTS]
    found = [Candidate.predicted(plan, model.predict(plan), config) for plan in finalists]
    close = min(c.prediction.cycles for c in found) * (1 + _CLOSE)
    return sorted(found, key=partial(_rank, close))


def _rank(close: float, candidate: Candidate[PoolPlan]) -> tuple[bool, int, float]:
    """Plans that are about as good as the best come first, those with the fewest threads in front."""
    cycles = candidate.prediction.cycles
    return (False, candidate.plan.threads, cycles) if cycles <= close else (True, 0, cycles)


class _Line(NamedTuple):
    """What a tile has in one direction.

    Attributes:
        outputs: rows or columns.
        inputs: that its windows see.
        steps: of the ALU for all of them, besides copies.
    """

    outputs: int
    inputs: int
    steps: int


class _Model:
    """Predicts plans for one max pooling on one machine."""

    def __init__(self, workload: Workload, config: Config) -> None:
        self.config = config
        sizes = workload.parameters
        pairs = {key: (sizes[key][0], sizes[key][1]) for key in ("kernel", "stride", "dilation")}
        top, left, bottom, right = sizes["padding"]
        self.slide = Sliding(size=(sizes["H"], sizes["W"]), padding=(top, left, bottom, right), **pairs)
        self.taps = tuple(Taps.of(self.slide, way) for way in range(2))
        self.batches = -(-sizes["N"] // config.batch)
        self.channels = -(-sizes["C"] // config.block_out)
        self.both = min(self.slide.kernel) > 1
        """Whether maxima across are a stage of their own."""
        self._lines: dict[tuple[int, int], list[_Line]] = {}
        self._moved: dict[object, Moved] = {}

    def fitting(self, threads: Sequence[int]) -> Iterator[PoolPlan]:
        """All plans that fit and are useful."""
        height, width = self.slide.outputs
        choices = (
            part_sizes(self.channels, _SIZES),
            part_sizes(height, _SIZES),
            part_sizes(width, _SIZES),
            threads,
            get_args(PoolThreadAxis),
        )
        for channels, rows, columns, number, axis in product(*choices):
            plan = PoolPlan(channels=channels, rows=rows, columns=columns, threads=number, thread_axis=axis)
            if self._useful(plan) and self._accumulators(plan) * number <= self.config.acc_depth:
                yield plan

    def _useful(self, plan: PoolPlan) -> bool:
        """Whether there is something to do for each thread."""
        if plan.threads == 1:
            return plan.thread_axis == "channels"
        if plan.threads > self.config.token_limit:
            return False
        tiles = -(-self.channels // plan.channels), -(-self.slide.outputs[0] // plan.rows)
        single = (self.channels, *self.slide.outputs) == (1, 1, 1)
        return tiles[plan.thread_axis == "rows"] > 1 or single

    def _accumulators(self, plan: PoolPlan) -> int:
        """Of one thread."""
        rows, columns = (self._seen(way, part) for way, part in enumerate((plan.rows, plan.columns)))
        apart = rows * plan.columns if self.both and not self.taps[1].own else 0
        return plan.channels * (rows * columns + apart + plan.rows * plan.columns)

    def _seen(self, way: int, part: int) -> int:
        """Most rows or columns of the input that so many windows see; all if they start anywhere."""
        if not self.taps[way].whole:
            return self.slide.size[way]
        return min(self.slide.size[way], (part - 1) * self.slide.stride[way] + self.slide.reach[way])

    def lines(self, way: int, part: int) -> list[_Line]:
        """Tiles of so many rows or columns, one behind the other."""
        if (way, part) not in self._lines:
            size, step, taps = self.slide.size[way], self.slide.stride[way], self.taps[way]
            ends = -self.slide.padding[way], self.slide.reach[way] - self.slide.padding[way]
            found = []
            for begin in range(0, self.slide.outputs[way], part):
                end = min(begin + part, self.slide.outputs[way])
                seen = min(size, (end - 1) * step + ends[1]) - max(0, begin * step + ends[0])
                seen = seen if taps.whole else size
                steps = sum(0 <= n * step + tap < size for n in range(begin, end) for tap in taps.others)
                found.append(_Line(end - begin, seen, steps))
            self._lines[way, part] = found
        return self._lines[way, part]

    def slots(self, down: _Line, across: _Line) -> tuple[int, int]:
        """Of the ALU, for one block of channels: for maxima across, and for those down."""
        copies = down.outputs * across.outputs * _COPY
        if not self.both:
            steps = down.steps * across.outputs + across.steps * down.outputs
            return 0, copies + steps
        first = 0 if self.taps[1].own else across.outputs * _COPY
        return down.inputs * (first + across.steps), copies + down.steps * across.outputs

    def _transfer(self, element: int, channels: int, sizes: tuple[int, int], box: tuple[int, int]) -> Moved:
        key = (element, channels, sizes, box)
        if key not in self._moved:
            height, width = sizes
            self._moved[key] = moved(
                self.config, element, (channels, height * width), (box[0], width), box[1]
            )
        return self._moved[key]

    def loaded(self, channels: int, down: _Line, across: _Line) -> Moved:
        """What a tile's windows see."""
        return self._transfer(
            self.config.out_element_bytes, channels, self.slide.size, (down.inputs, across.inputs)
        )

    def stored(self, channels: int, down: _Line, across: _Line) -> Moved:
        """A tile of the output."""
        return self._transfer(
            self.config.out_element_bytes, channels, self.slide.outputs, (down.outputs, across.outputs)
        )

    def _parts(self, plan: PoolPlan) -> list[int]:
        """Blocks of channels in the tiles one behind the other."""
        size, part = self.channels, plan.channels
        return [min(part, size - begin) for begin in range(0, size, part)]

    @property
    def _wait(self) -> int:
        """Of a LOAD in the compute unit, besides data."""
        return compute_depth(self.config) + REQUEST_STARTUP + self.config.read_latency + WRITE_DELAY + 1

    def quick(self, plan: PoolPlan) -> float:
        """Rough cycles, as if stores were never waited for."""
        cycles = 0.0
        downs, acrosses = self.lines(0, plan.rows), self.lines(1, plan.columns)
        for channels in dict.fromkeys(self._parts(plan)):
            tiles = self._parts(plan).count(channels) * self.batches
            for down, across in product(downs, acrosses):
                load = self.loaded(channels, down, across)
                slots = channels * sum(self.slots(down, across))
                cycles += tiles * (load.instructions * self._wait + load.beats + slots)
        return cycles

    def predict(self, plan: PoolPlan) -> Prediction:
        """The cycles of a plan, and how busy it keeps each unit."""
        config, drain = self.config, compute_depth(self.config)
        compute_free = 2.0 * config.read_latency + drain
        write_free = 0.0
        stored = [0.0] * plan.threads
        busy = [0.0, 0.0, 0.0]
        for number, (channels, down, across) in enumerate(self._tiles(plan)):
            load = self.loaded(channels, down, across)
            first, second = (channels * slots for slots in self.slots(down, across))
            compute_free += load.instructions * self._wait + load.beats + first
            slot = number % plan.threads
            compute_free = max(compute_free, stored[slot] + 1) + second
            store = self.stored(channels, down, across)
            begin = max(compute_free + drain + 1 + REQUEST_STARTUP + STORE_READ_DELAY, write_free)
            write_free = begin + max(
                store.beats + store.instructions, store.bursts * config.write_latency / config.outstanding
            )
            stored[slot] = write_free + config.write_latency
            busy = [
                a + b
                for a, b in zip(busy, (first + second + load.beats, load.beats, store.beats), strict=True)
            ]
        return Prediction(cycles=max(stored) + 1, compute=busy[0], load=busy[1], store=busy[2])

    def _tiles(self, plan: PoolPlan) -> Iterator[tuple[int, _Line, _Line]]:
        """In order, those of threads one behind the other."""
        downs, acrosses = self.lines(0, plan.rows), self.lines(1, plan.columns)
        parts = self._parts(plan)
        for _ in range(self.batches):
            if plan.thread_axis == "channels":
                for begin in range(0, len(parts), plan.threads):
                    for down, across in product(downs, acrosses):
                        for channels in parts[begin : begin + plan.threads]:
                            yield channels, down, across
                continue
            for channels in parts:
                for begin in range(0, len(downs), plan.threads):
                    for across, down in product(acrosses, downs[begin : begin + plan.threads]):
                        yield channels, down, across
