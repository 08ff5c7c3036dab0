"""The planner of max pooling."""

import numpy as np

from accel.compiler.plans.part_sizes import spread_part_sizes
from accel.compiler.plans.plan_candidate import Candidate, Prediction, check_threads_fit
from accel.compiler.plans.plan_search import TIE_SHARE
from accel.compiler.plans.planner import Blocks, Planner, TileSide
from accel.compiler.plans.pool_model import PoolShape, pool_shape
from accel.compiler.plans.pool_plan import PoolPlan, PoolTable
from accel.compiler.plans.pool_schedule import pool_schedule
from accel.compiler.plans.pool_sizes import PoolSizes
from accel.compiler.plans.pool_steps import PoolStepModel
from accel.core.config import Config

_THREAD_COUNTS = (1, 2)
_SIZES_TRIED = 12
_BRIEF_STEPS = 24
_PREDICTED_BEST = 40


def pool_candidates(
    shape: PoolShape,
    config: Config,
    threads: int | None = None,
    fixed: Blocks | None = None,
    quick: bool = False,
) -> list[Candidate[PoolPlan]]:
    """See ``Planner.find``. Quick searches are no shorter.

    Ties with the best are ordered by bytes read, then threads.
    """
    candidates = [
        candidate
        for products in shape.identity_product_choices
        for table in [_fitting(shape, config, threads, fixed or {}, products)]
        for candidate in _predicted(shape, config, table)
    ]
    if not candidates:
        check_threads_fit(
            "pooling",
            config,
            threads,
            lambda count: _has_plans(shape, config, count),
            lambda: _smallest_needs(shape, config),
        )
        return []
    limit = min(one.rating for one in candidates) * (1 + TIE_SHARE)

    def order(one: Candidate[PoolPlan]) -> tuple[bool, int, int, float]:
        is_tie = one.rating <= limit
        keys = (one.read_bytes, one.plan.threads) if is_tie else (0, 0)
        return not is_tie, *keys, one.rating

    return sorted(candidates, key=order)


def all_pool_candidates(shape: PoolShape, config: Config) -> list[Candidate[PoolPlan]]:
    return [
        candidate
        for products in shape.identity_product_choices
        for candidate in _with_predictions(shape, config, _fitting(shape, config, None, {}, products))
    ]


def _predicted(shape: PoolShape, config: Config, table: PoolTable) -> list[Candidate[PoolPlan]]:
    if not len(table.rows):
        return []
    brief = PoolStepModel(PoolSizes(shape, config, table)).predict(_BRIEF_STEPS).cycles
    best = table.take(np.argsort(brief, kind="stable")[:_PREDICTED_BEST])
    return _with_predictions(shape, config, best)


def _with_predictions(shape: PoolShape, config: Config, table: PoolTable) -> list[Candidate[PoolPlan]]:
    if not len(table.rows):
        return []
    predictions = PoolStepModel(PoolSizes(shape, config, table)).predict().to_list()
    return [
        Candidate(plan=plan, prediction=one, read_bytes=round(one.load * config.bus_bytes), rating=one.cycles)
        for plan, one in zip(table.to_plans(), predictions, strict=True)
    ]


def _has_plans(shape: PoolShape, config: Config, threads: int) -> bool:
    choices = shape.identity_product_choices
    return any(len(_fitting(shape, config, threads, {}, products).rows) for products in choices)


def _smallest_needs(shape: PoolShape, config: Config) -> dict[str, int]:
    smallest = PoolPlan(channels=1, rows=1, columns=1, threads=1, thread_axis="channels")
    needs = _sizes(shape, config, smallest).buffer_elements()
    return {name: int(elements[0]) for name, elements in needs.items()}


def _fitting(
    shape: PoolShape, config: Config, threads: int | None, fixed: Blocks, products: bool
) -> PoolTable:
    height, width = shape.slide.outputs
    tile_sizes = (
        [min(fixed[name], whole)] if name in fixed else spread_part_sizes(whole, _SIZES_TRIED)
        for name, whole in (("channels", shape.channels), ("rows", height), ("columns", width))
    )
    counts = _THREAD_COUNTS if threads is None else (threads,)
    grid = np.meshgrid(*tile_sizes, counts, [False, True], [products], indexing="ij")
    table = PoolTable(*(axis.reshape(-1) for axis in grid))
    sizes = PoolSizes(shape, config, table)
    found = table._replace(threads=np.minimum(table.threads, sizes.threaded_iterations))
    return found.take(sizes.has_work_for_threads(threads) & sizes.fits())


def _sizes(shape: PoolShape, config: Config, plan: PoolPlan) -> PoolSizes:
    return PoolSizes(shape, config, PoolTable.from_plans([plan]))


def _fits(shape: PoolShape, config: Config, plan: PoolPlan) -> bool:
    return bool(_sizes(shape, config, plan).fits()[0])


def _predict(shape: PoolShape, config: Config, plan: PoolPlan) -> Prediction:
    return PoolStepModel(_sizes(shape, config, plan)).predict().of_plan(0)


def _outermost(plan: PoolPlan) -> str:
    return "c" if plan.thread_axis == "rows" else "h"


def _threads_along(plan: PoolPlan) -> str:
    return {"channels": "c", "rows": "h"}[plan.thread_axis]


POOL_PLANNER = Planner(
    plan_type=PoolPlan,
    sides=(
        TileSide(key="tile_c", attribute="channels", block="block_out"),
        TileSide(key="tile_h", attribute="rows"),
        TileSide(key="tile_w", attribute="columns"),
    ),
    features=pool_shape,
    find=pool_candidates,
    enumerate=all_pool_candidates,
    fits=_fits,
    predict=_predict,
    schedule=pool_schedule,
    outermost=_outermost,
    threads_along=_threads_along,
    identity_products=lambda plan: plan.identity_products,
)
