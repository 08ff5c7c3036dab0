"""Schedules of matrix products for those who bring none.

Tile sizes, loop order and virtual threads are varied; plans whose buffers fit are ranked by a quick bound,
and the best of them by the model.
"""

from dataclasses import replace
from typing import get_args

from accel.compiler.plans.arrays import BoolArray
from accel.compiler.plans.candidate import Candidate, Prediction, check_threads_fit
from accel.compiler.plans.clocks import predict
from accel.compiler.plans.gemm_model import GemmShape, gemm_shape
from accel.compiler.plans.gemm_plans import GemmPlan, Outer, ThreadAxis
from accel.compiler.plans.gemm_schedule import gemm_schedule
from accel.compiler.plans.planner import Blocks, Planner, Side
from accel.compiler.plans.search import Space, every_plan, kept_with, least_needs, ranked_together, search
from accel.compiler.plans.sums import every_part, part_sizes
from accel.compiler.plans.tile_walker import TileWalker
from accel.compiler.plans.tiles import Sizes, Tiling
from accel.core.config import Config

_THREADS = (1, 2, 3, 4, 6, 8)
_MOST_SIZES = 24
"""Tile sizes tried per dimension."""


def _table(plans: list[GemmPlan]) -> Tiling:
    return Tiling.of([plan.row for plan in plans])


def _allowed(sizes: Sizes) -> BoolArray:
    """Threads run along the inner loop over tiles, or along steps."""
    outer = (sizes.pixels_outer & sizes.along_rows) | (~sizes.pixels_outer & sizes.along_channels)
    allowed: BoolArray = ~outer | (sizes.table.threads == 1)
    return allowed


def gemm_space(shape: GemmShape, config: Config) -> Space[GemmPlan]:
    """The plans of a matrix product."""
    return Space(
        shape=shape,
        config=config,
        plan=lambda table: [
            replace(GemmPlan.of(row), residual_product=shape.residual_product) for row in table.rows_of()
        ],
        allowed=_allowed,
        around={name: every_part(getattr(shape, name)) for name in ("channels", "rows", "depth")},
    )


def gemm_candidates(
    shape: GemmShape, config: Config, threads: int | None = None, fixed: Blocks | None = None
) -> list[Candidate[GemmPlan]]:
    """The most promising plans, best first; none if none has the sizes that are given.

    Args:
        shape: of a matrix product.
        config: the machine.
        threads: only plans with so many virtual threads; any number if not given.
        fixed: sizes by the plan's attributes, in blocks; those that exceed the whole are cut to it.

    Raises:
        ScheduleError: so many threads do not fit, with the largest number that does.
    """
    spaces = [gemm_space(one, config) for one in shape.choices()]
    one_block = dict.fromkeys(("channels", "rows", "columns", "depth", "kernel_rows", "batches"), (1,))
    check_threads_fit(
        "matrix product",
        config,
        threads,
        lambda n: any(_smallest_fits(space, n) for space in spaces),
        lambda: least_needs([space.shape for space in spaces], config, one_block),
    )
    given = {{"columns": "channels"}.get(name, name): size for name, size in (fixed or {}).items()}
    tried = {
        name: [min(given[name], getattr(shape, name))]
        if name in given
        else part_sizes(getattr(shape, name), _MOST_SIZES)
        for name in ("channels", "rows", "depth")
    }
    numbers = _THREADS if threads is None else (threads,)
    found = []
    for every in spaces:
        around = {name: sizes for name, sizes in every.around.items() if name not in given}
        space = replace(every, around=around, kept=kept_with(given))
        table = every_plan(
            space, tried | {"columns": [1], "kernel_rows": [1], "batches": [1]}, numbers, threads
        )
        if len(table.rows):
            found.append(search(space, table, threads))
    return ranked_together(found)


def _chosen(shape: GemmShape, plan: GemmPlan) -> GemmShape:
    """The product as a plan does it."""
    return replace(shape, residual_product=plan.residual_product)


def _smallest_fits(space: Space[GemmPlan], threads: int) -> bool:
    """Whether the plans of one block per tile and step do."""
    plans = [
        GemmPlan(rows=1, columns=1, depth=1, threads=threads, thread_axis=axis, outer=outer)
        for axis in get_args(ThreadAxis)
        for outer in get_args(Outer)
    ]
    return bool(len(space.fitting(_table(plans), threads).rows))


def _fits(shape: GemmShape, config: Config, plan: GemmPlan) -> bool:
    return bool(Sizes(_chosen(shape, plan), config, _table([plan])).fits()[0])


def _predict(shape: GemmShape, config: Config, plan: GemmPlan) -> Prediction:
    return predict(TileWalker(_chosen(shape, plan), config, _table([plan]))).one(0)


def _outermost(plan: GemmPlan) -> str:
    return "m" if plan.outer == "rows" else "n"


def _threads_along(plan: GemmPlan) -> str:
    return "k" if plan.thread_axis == "depth" else "n" if plan.outer == "rows" else "m"


GEMM_PLANNER = Planner(
    sides=(
        Side(key="tile_m", attribute="rows", block="batch"),
        Side(key="tile_n", attribute="columns", block="block_out"),
        Side(key="step_k", attribute="depth", block="block_in"),
    ),
    features=gemm_shape,
    find=gemm_candidates,
    fits=_fits,
    predict=_predict,
    schedule=gemm_schedule,
    outermost=_outermost,
    threads_along=_threads_along,
    identity_products=lambda plan: plan.residual_product,
)
"""Tiles of the result, and steps of the sum."""
