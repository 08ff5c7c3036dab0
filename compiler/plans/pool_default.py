"""Schedules of max pooling for those who bring none, chosen by an analytical model."""

import numpy as np

from accel.compiler.plans.candidate import Candidate, Prediction, check_threads_fit
from accel.compiler.plans.planner import Blocks, Planner, Side
from accel.compiler.plans.pool_model import PoolModel, PoolShape, PoolTable, pool_shape
from accel.compiler.plans.pool_schedule import PoolPlan, pool_schedule
from accel.compiler.plans.sums import part_sizes
from accel.core.config import Config

_THREADS = (1, 2)
_SIZES = 12
"""Sizes of tiles that are tried in each direction."""
_BRIEFLY = 24
"""Tiles that the model goes through of all plans."""
_FINALISTS = 40
"""Plans that it looks at closely."""
_CLOSE = 0.002
"""Plans whose cycles differ by less than this share are as good as one another; bytes decide, and
fewer threads."""


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
    found = [
        (PoolModel(shape, config, table), table)
        for products in shape.choices
        for table in [_best(shape, config, _fitting(shape, config, threads, fixed or {}, products))]
        if len(table.rows)
    ]
    if not found:
        check_threads_fit(
            "pooling", config, threads, lambda n: _any_fits(shape, config, n), lambda: _least(shape, config)
        )
        return []
    every = [
        Candidate(plan=plan, prediction=one, read_bytes=round(one.load * config.bus_bytes), rated=one.cycles)
        for model, table in found
        for plan, one in zip(table.plans(), model.predict().each(), strict=True)
    ]
    limit = min(one.prediction.cycles for one in every) * (1 + _CLOSE)

    def order(one: Candidate[PoolPlan]) -> tuple[bool, int, int, float]:
        close = one.prediction.cycles <= limit
        effort = (one.read_bytes, one.plan.threads) if close else (0, 0)
        return not close, *effort, one.prediction.cycles

    return sorted(every, key=order)


def _best(shape: PoolShape, config: Config, table: PoolTable) -> PoolTable:
    """The plans that are worth a close look."""
    if not len(table.rows):
        return table
    brief = PoolModel(shape, config, table).predict(_BRIEFLY).cycles
    return table.take(np.argsort(brief, kind="stable")[:_FINALISTS])


def _any_fits(shape: PoolShape, config: Config, threads: int) -> bool:
    return any(len(_fitting(shape, config, threads, {}, products).rows) for products in shape.choices)


def _least(shape: PoolShape, config: Config) -> dict[str, int]:
    """Elements of each scratchpad that the smallest tiles take, without products."""
    smallest = PoolPlan(channels=1, rows=1, columns=1, threads=1, thread_axis="channels", products=False)
    needs = _model(shape, config, smallest).needs()
    return {name: int(elements[0]) for name, elements in needs.items()}


def _fitting(
    shape: PoolShape, config: Config, threads: int | None, fixed: Blocks, products: bool
) -> PoolTable:
    """All plans that fit and are useful, with so many virtual threads or any number."""
    height, width = shape.slide.outputs
    sizes = (
        [min(fixed[name], whole)] if name in fixed else part_sizes(whole, _SIZES)
        for name, whole in (("channels", shape.channels), ("rows", height), ("columns", width))
    )
    grid = np.meshgrid(
        *sizes, _THREADS if threads is None else (threads,), [False, True], [products], indexing="ij"
    )
    table = PoolTable(*(axis.reshape(-1) for axis in grid))
    model = PoolModel(shape, config, table)
    made = table._replace(threads=np.minimum(table.threads, model.turns_of_threads))
    return made.take(model.useful(threads) & model.fits())


def _model(shape: PoolShape, config: Config, plan: PoolPlan) -> PoolModel:
    return PoolModel(shape, config, PoolTable.of([plan]))


def _fits(shape: PoolShape, config: Config, plan: PoolPlan) -> bool:
    return bool(_model(shape, config, plan).fits()[0])


def _predict(shape: PoolShape, config: Config, plan: PoolPlan) -> Prediction:
    return _model(shape, config, plan).predict().one(0)


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
    identity_products=lambda plan: plan.products,
)
"""Tiles of the output."""
