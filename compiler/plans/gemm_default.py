"""Plans of matrix products for those who bring none, chosen by the analytical model.

Tiles, loop order and virtual threads are varied; plans whose buffers fit are ranked by a quick lower bound,
and the best of them by the model.
"""

from dataclasses import replace
from functools import partial
from typing import get_args

import numpy as np

from accel.compiler.ops.workload import Workload
from accel.compiler.plans.blocking import passes_of
from accel.compiler.plans.candidate import Candidate, Prediction, check_threads_fit
from accel.compiler.plans.gemm_model import GemmModel
from accel.compiler.plans.gemm_plans import (
    BoolArray,
    GemmPlan,
    GemmShape,
    IntArray,
    Outer,
    PlanTable,
    ThreadAxis,
)
from accel.compiler.plans.gemm_schedule import gemm_schedule
from accel.compiler.plans.planner import Blocks, Planner, Side, with_threads_made
from accel.core.config import Config

_FINALISTS = 10
"""Plans of each kind (threads, what they run along, loop order) that the model looks at in detail."""
_REFINED = 3
"""The best of them are tried with other reduce steps."""
_THREADS = (1, 2, 4)
_ALIKE = 0.01
"""Lower bounds that differ by less than this share say nothing; effort decides who is a finalist."""
_CLOSE = 0.002
"""Plans whose cycles differ by less than this share are as good as one another; effort decides."""
_MOST_SIZES = 40
"""Tile sizes tried per dimension."""


def shape_of(workload: Workload, config: Config) -> GemmShape:
    """A matrix product in blocks of a machine's GEMM core."""
    rows, columns = workload.output.shape
    (k,) = workload.reduce_axes
    a, b = workload.factors
    cost = passes_of(workload, config, k.extent)
    return GemmShape(
        rows=-(-rows // config.batch),
        columns=-(-columns // config.block_out),
        depth=-(-k.extent // config.block_in),
        transpose_a=a.indices[0] is k,
        transpose_b=b.indices[1] is k,
        bias=workload.bias is not None,
        residual=workload.residual is not None,
        passes=cost.passes,
        resets=cost.resets,
        stored=cost.stored,
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
    model = GemmModel(shape, config)
    check_threads_fit("matrix product", config, threads, partial(_smallest_fits, model))
    plans = _fitting(model, threads, fixed or {})
    if not len(plans.rows):
        return []
    quick = model.quick(plans)
    effort = model.instructions(plans)
    # the best bound first; bounds that hardly differ by the effort
    order = np.lexsort((effort, np.floor(np.log(quick / quick.min()) / np.log(1 + _ALIKE))))
    kinds = (plans.threads * 4 + plans.along_depth * 2 + plans.rows_outer)[order]
    first = [order[np.flatnonzero(kinds == kind)[:_FINALISTS]] for kind in np.unique(kinds)]
    chosen = plans.take(np.concatenate(first))
    found = [_candidate(model, plan) for plan in chosen.plans()]
    leaders = sorted(found, key=lambda c: c.prediction.cycles)[:_REFINED]
    others = [plan for leader in leaders for plan in _other_steps(model, leader.plan, threads)]
    others = others if "depth" not in (fixed or {}) else []
    known = {c.plan for c in found}
    found += [_candidate(model, plan) for plan in dict.fromkeys(others) if plan not in known]
    best = min(c.prediction.cycles for c in found)
    ranked = sorted(found, key=partial(_rank, model, best * (1 + _CLOSE)))
    return with_threads_made(ranked, lambda plan: int(_turns(model.shape, PlanTable.of([plan]))[0]))


def _candidate(model: GemmModel, plan: GemmPlan) -> Candidate[GemmPlan]:
    read_bytes = int(model.traffic(PlanTable.of([plan]))[0])
    return Candidate(plan=plan, prediction=model.predict(plan), read_bytes=read_bytes)


def _rank(model: GemmModel, close: float, candidate: Candidate[GemmPlan]) -> tuple[bool, float]:
    """Plans that are about as good as the best come first, those with the fewest instructions in front."""
    if candidate.prediction.cycles <= close:
        return False, float(model.instructions(PlanTable.of([candidate.plan]))[0])
    return True, candidate.prediction.cycles


def _other_steps(model: GemmModel, plan: GemmPlan, threads: int | None) -> list[GemmPlan]:
    """The same plan with other reduce steps."""
    depths = _sizes(model.shape.depth)
    near = min(range(len(depths)), key=lambda i: abs(depths[i] - plan.depth))
    others = [replace(plan, depth=d) for d in depths[max(0, near - 3) : near + 4]]
    table = PlanTable.of(others)
    fitting = model.fits(table) & _useful(model.shape, table, threads)
    return [other for other, fits in zip(others, fitting, strict=True) if fits]


def _fitting(model: GemmModel, threads: int | None, fixed: Blocks) -> PlanTable:
    """All plans that fit and are useful."""
    shape = model.shape
    wholes = {"rows": shape.rows, "columns": shape.columns, "depth": shape.depth}
    grid = np.meshgrid(
        *([min(fixed[name], size)] if name in fixed else _sizes(size) for name, size in wholes.items()),
        _THREADS if threads is None else (threads,),
        [False, True],
        [False, True],
        indexing="ij",
    )
    plans = PlanTable(*(axis.reshape(-1) for axis in grid))
    return plans.take(np.flatnonzero(_useful(shape, plans, threads) & model.fits(plans)))


def _turns(shape: GemmShape, plans: PlanTable) -> IntArray:
    """Iterations of the loop that threads share."""
    inner_tiles = np.where(plans.rows_outer, -(-shape.columns // plans.columns), -(-shape.rows // plans.rows))
    turns: IntArray = np.where(plans.along_depth, -(-shape.depth // plans.depth), inner_tiles)
    return turns


def _useful(shape: GemmShape, plans: PlanTable, threads: int | None) -> BoolArray:
    """Whether there is something to do for each thread, or for several if no number of them was asked for."""
    least = 2 if threads is None else plans.threads
    useful: BoolArray = np.where(plans.threads == 1, ~plans.along_depth, _turns(shape, plans) >= least)
    return useful


def _sizes(size: int) -> list[int]:
    """Tile sizes that cut ``size`` into different numbers of tiles, the large ones and some small ones."""
    sizes = set()
    tiles = 1
    while tiles <= size:
        part = -(-size // tiles)
        sizes.add(part)
        tiles = max(tiles + 1, -(-size // part) + 1) if part > 1 else size + 1
    every = sorted(sizes)
    if len(every) <= _MOST_SIZES:
        return every
    picked = np.unique(np.geomspace(1, len(every), _MOST_SIZES).astype(int)) - 1
    return [every[i] for i in picked]


def _smallest_fits(model: GemmModel, threads: int) -> bool:
    """Whether the plans of one block per tile and step do."""
    plans = [
        GemmPlan(rows=1, columns=1, depth=1, threads=threads, thread_axis=axis, outer=outer)
        for axis in get_args(ThreadAxis)
        for outer in get_args(Outer)
    ]
    table = PlanTable.of(plans)
    return bool((_useful(model.shape, table, threads) & model.fits(table)).any())


def _fits(shape: GemmShape, config: Config, plan: GemmPlan) -> bool:
    return bool(GemmModel(shape, config).fits(PlanTable.of([plan]))[0])


def _predict(shape: GemmShape, config: Config, plan: GemmPlan) -> Prediction:
    return GemmModel(shape, config).predict(plan)


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
    features=shape_of,
    find=gemm_candidates,
    fits=_fits,
    predict=_predict,
    schedule=gemm_schedule,
    outermost=_outermost,
    threads_along=_threads_along,
)
"""Tiles of the result, and steps of the sum."""
