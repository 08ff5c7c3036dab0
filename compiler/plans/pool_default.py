"""Schedules of max pooling for those who bring none, chosen by an analytical model.

The compute unit itself loads what the ALU reads, and waits for it. So loads and ALU take turns, and only
stores go on beside them; what counts is that loads are few and large, and that a tile need not wait till the
one before is stored.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import NamedTuple, get_args

from accel.compiler.ops.pool import Taps
from accel.compiler.ops.sliding import Sliding
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.candidate import Candidate, Prediction, check_threads_fit
from accel.compiler.plans.conv_model import Moved, moved, part_sizes
from accel.compiler.plans.planner import Blocks, Planner, Side, with_threads_made
from accel.compiler.plans.pool_schedule import PoolPlan, PoolThreadAxis, pool_schedule
from accel.core.config import Config
from accel.core.timing_rules import REQUEST_STARTUP, WRITE_DELAY, compute_depth, store_depth

_THREADS = (1, 2)
_SIZES = 12
"""Sizes of tiles that are tried in each direction."""
_FINALISTS = 16
"""Plans that the model looks at."""
_CLOSE = 0.002
"""Plans whose cycles differ by less than this share are as good as one another; fewer threads decide."""
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


def pool_candidates(
    shape: PoolShape, config: Config, threads: int | None = None, fixed: Blocks | None = None
) -> list[Candidate[PoolPlan]]:
    """The most promising plans, best first; none if none has the sizes that are given.

    Args:
        shape: of max pooling.
        config: the machine.
        threads: only plans with so many virtual threads; any number if not given.
        fixed: sizes by the plan's attributes, channels in blocks; those that exceed the whole are cut to it.

    Raises:
        ScheduleError: no plan fits, or none with so many threads, with the largest number that does.
    """
    model = _Model(shape, config)
    plans = list(model.fitting(threads, fixed or {}))
    if not plans:
        check_threads_fit("pooling", config, threads, lambda n: any(True for _ in model.fitting(n, {})))
        return []
    finalists = sorted(plans, key=model.quick)[:_FINALISTS]
    found = [Candidate.predicted(plan, model.predict(plan), config) for plan in finalists]
    close = min(c.prediction.cycles for c in found) * (1 + _CLOSE)
    return with_threads_made(sorted(found, key=partial(_rank, close)), model.turns)


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

    def __init__(self, shape: PoolShape, config: Config) -> None:
        self.config = config
        self.slide = shape.slide
        self.height, self.width = self.slide.outputs
        self.taps = tuple(Taps.of(self.slide, way) for way in range(2))
        self.batches, self.channels = shape.batches, shape.channels
        self.both = min(self.slide.kernel) > 1
        """Whether maxima across are a stage of their own."""
        self._lines: dict[tuple[int, int], list[_Line]] = {}
        self._moved: dict[object, Moved] = {}

    def fitting(self, threads: int | None, fixed: Blocks) -> Iterator[PoolPlan]:
        """All plans that fit and are useful, with so many virtual threads or any number."""
        sizes = (
            [min(fixed[name], whole)] if name in fixed else part_sizes(whole, _SIZES)
            for name, whole in (("channels", self.channels), ("rows", self.height), ("columns", self.width))
        )
        numbers = _THREADS if threads is None else (threads,)
        for channels, rows, columns, number, axis in product(*sizes, numbers, get_args(PoolThreadAxis)):
            plan = PoolPlan(channels=channels, rows=rows, columns=columns, threads=number, thread_axis=axis)
            if self._useful(plan, threads) and self.fits(plan):
                yield plan

    def fits(self, plan: PoolPlan) -> bool:
        """Whether the accumulators have room for a plan."""
        return self._accumulators(plan) * plan.threads <= self.config.acc_depth

    def _useful(self, plan: PoolPlan, threads: int | None) -> bool:
        """Whether there is something to do for each thread, or for several if no number was asked for."""
        if plan.threads == 1:
            return plan.thread_axis == "channels"
        least = 2 if threads is None else threads
        return plan.threads <= self.config.token_limit and self.turns(plan) >= least

    def turns(self, plan: PoolPlan) -> int:
        """Iterations of the loop that threads share."""
        if plan.thread_axis == "channels":
            return -(-self.channels // plan.channels)
        return -(-self.height // plan.rows)

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
            begin = max(compute_free + drain + 1 + REQUEST_STARTUP + store_depth(config), write_free)
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


def _fits(shape: PoolShape, config: Config, plan: PoolPlan) -> bool:
    return _Model(shape, config).fits(plan)


def _predict(shape: PoolShape, config: Config, plan: PoolPlan) -> Prediction:
    return _Model(shape, config).predict(plan)


def _outermost(plan: PoolPlan) -> str:
    return "c" if plan.thread_axis == "rows" else "h"


def _threads_along(plan: PoolPlan) -> str:
    return {"channels": "c", "rows": "h"}[plan.thread_axis]


POOL_PLANNER = Planner(
    sides=(
        Side(key="tile_c", attribute="channels", block="block_out"),
        Side(key="tile_h", attribute="rows"),
        Side(key="tile_w", attribute="columns"),
    ),
    features=pool_shape,
    find=pool_candidates,
    fits=_fits,
    predict=_predict,
    schedule=pool_schedule,
    outermost=_outermost,
    threads_along=_threads_along,
)
"""Tiles of the output."""
