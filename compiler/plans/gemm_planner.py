"""The planner of matrix products and fully connected layers."""

from typing import get_args

from accel.base.records import replace
from accel.compiler.plans.gemm_model import GemmShape, gemm_shape
from accel.compiler.plans.gemm_plan import GemmPlan, OuterLoop, ThreadAxis
from accel.compiler.plans.gemm_schedule import gemm_schedule
from accel.compiler.plans.part_sizes import all_part_sizes, spread_part_sizes
from accel.compiler.plans.pipeline_model import predict
from accel.compiler.plans.plan_arrays import BoolArray
from accel.compiler.plans.plan_candidate import Candidate, Prediction, check_threads_fit
from accel.compiler.plans.plan_enumeration import all_candidates
from accel.compiler.plans.plan_search import MAX_ESTIMATE, merge_rankings, search
from accel.compiler.plans.plan_space import (
    PlanSpace,
    default_thread_counts,
    enumerate_plans,
    residencies_with,
    smallest_needs,
)
from accel.compiler.plans.plan_table import PlanTable
from accel.compiler.plans.planner import Blocks, Planner, TileSide
from accel.compiler.plans.tile_sizes import TileSizes
from accel.compiler.plans.tile_steps import TileStepModel
from accel.core.config import Config

_SIZES_TRIED = 24
"""Tile sizes per dimension to start with."""
_SINGLE = {"columns": [1], "kernel_rows": [1], "batches": [1]}
"""Dimensions that matrix products lack."""


def gemm_candidates(
    shape: GemmShape,
    config: Config,
    threads: int | None = None,
    fixed: Blocks | None = None,
    quick: bool = False,
) -> list[Candidate[GemmPlan]]:
    """See ``Planner.find``."""
    given = {{"columns": "channels"}.get(name, name): size for name, size in (fixed or {}).items()}
    spaces = [_gemm_space(variant, config, given) for variant in shape.residual_variants()]
    check_threads_fit(
        "matrix product",
        config,
        threads,
        lambda count: any(_smallest_fits(space, count) for space in spaces),
        lambda: smallest_needs([space.shape for space in spaces], config, _sizes_of_one_block()),
    )
    tile_sizes = _tile_sizes(shape, given)
    rankings = []
    for space in spaces:
        counts = default_thread_counts(quick=quick)
        table = enumerate_plans(space, tile_sizes | _SINGLE, threads, counts, MAX_ESTIMATE)
        if len(table.rows):
            rankings.append(search(space, table, threads, quick=quick))
    return merge_rankings(rankings)


def all_gemm_candidates(shape: GemmShape, config: Config) -> list[Candidate[GemmPlan]]:
    tile_sizes = _tile_sizes(shape, {}) | _SINGLE
    spaces = [_gemm_space(variant, config, {}) for variant in shape.residual_variants()]
    return [
        candidate
        for space in spaces
        for candidate in all_candidates(space, enumerate_plans(space, tile_sizes, None))
    ]


def _tile_sizes(shape: GemmShape, given: Blocks) -> dict[str, list[int]]:
    return {
        name: [min(given[name], getattr(shape, name))]
        if name in given
        else list(spread_part_sizes(getattr(shape, name), _SIZES_TRIED))
        for name in ("channels", "rows", "depth")
    }


def _gemm_space(shape: GemmShape, config: Config, fixed: Blocks) -> PlanSpace[GemmPlan]:

    def to_plans(table: PlanTable) -> list[GemmPlan]:
        plans = map(GemmPlan.from_row, table.to_rows())
        return [replace(plan, residual_product=shape.residual_product) for plan in plans]

    free = (name for name in ("channels", "rows", "depth") if name not in fixed)
    return PlanSpace(
        shape=shape,
        config=config,
        to_plans=to_plans,
        has_schedule=_has_schedule,
        tile_sizes={name: all_part_sizes(getattr(shape, name)) for name in free},
        residencies=residencies_with(fixed),
    )


def _has_schedule(sizes: TileSizes) -> BoolArray:
    """Return which plans have threads along the inner loop, the depth or groups, and equal steps where
    needed."""
    along_outer = (sizes.pixels_outer & sizes.along_rows) | (~sizes.pixels_outer & sizes.along_channels)
    has_schedule: BoolArray = ~along_outer | (sizes.table.threads == 1)
    shape = sizes.shape
    if isinstance(shape, GemmShape) and shape.has_two_zeros:
        has_equal_steps = shape.depth % sizes.table.depth == 0
        has_equal_rounds = ~sizes.along_depth | (sizes.depth_steps % sizes.table.threads == 0)
        has_schedule = has_schedule & has_equal_steps & has_equal_rounds
    return has_schedule


def _sizes_of_one_block() -> dict[str, tuple[int, ...]]:
    return dict.fromkeys(("channels", "rows", "columns", "depth", "kernel_rows", "batches"), (1,))


def _smallest_fits(space: PlanSpace[GemmPlan], threads: int) -> bool:
    plans = [
        GemmPlan(rows=1, columns=1, depth=1, threads=threads, thread_axis=axis, outer=outer)
        for axis in get_args(ThreadAxis)
        if axis != "groups" or space.shape.groups > 1
        for outer in get_args(OuterLoop)
    ]
    return bool(len(space.fitting(_gemm_table(plans), threads).rows))


def _gemm_table(plans: list[GemmPlan]) -> PlanTable:
    return PlanTable.from_rows([plan.row for plan in plans])


def _variant(shape: GemmShape, plan: GemmPlan) -> GemmShape:
    return replace(shape, residual_product=plan.residual_product)


def _fits(shape: GemmShape, config: Config, plan: GemmPlan) -> bool:
    return bool(TileSizes(_variant(shape, plan), config, _gemm_table([plan])).fits()[0])


def _predict(shape: GemmShape, config: Config, plan: GemmPlan) -> Prediction:
    return predict(TileStepModel(_variant(shape, plan), config, _gemm_table([plan]))).of_plan(0)


def _outermost(plan: GemmPlan) -> str:
    return "m" if plan.outer == "rows" else "n"


def _threads_along(plan: GemmPlan) -> str:
    if plan.thread_axis != "inner":
        return {"depth": "k", "groups": "batch"}[plan.thread_axis]
    return "n" if plan.outer == "rows" else "m"


GEMM_PLANNER = Planner(
    plan_type=GemmPlan,
    sides=(
        TileSide(key="tile_m", attribute="rows", block="batch"),
        TileSide(key="tile_n", attribute="columns", block="block_out"),
        TileSide(key="step_k", attribute="depth", block="block_in"),
    ),
    features=gemm_shape,
    find=gemm_candidates,
    enumerate=all_gemm_candidates,
    fits=_fits,
    predict=_predict,
    schedule=gemm_schedule,
    outermost=_outermost,
    threads_along=_threads_along,
    identity_products=lambda plan: plan.residual_product,
)
