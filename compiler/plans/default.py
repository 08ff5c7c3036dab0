"""Schedules for those who bring none, chosen by the analytical model.

Tiles, loop order and virtual threads are varied; plans whose buffers fit are ranked by a quick lower bound,
and the best of them by the model. The schedule is then made of the public operators only.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, get_args

import numpy as np

from accel.base.arguments import plain_integer
from accel.base.errors import ScheduleError
from accel.compiler.codegen.memory import check_room
from accel.compiler.expr.scalar import IterVar
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.blocking import bind_threads, in_accumulators, split_blocks, tensorize_elements
from accel.compiler.plans.candidate import Candidate, too_many_threads
from accel.compiler.plans.conv_default import conv_candidates
from accel.compiler.plans.conv_schedule import ConvPlan, conv_schedule
from accel.compiler.plans.gemm_plans import BoolArray, GemmPlan, GemmShape, Outer, PlanTable, ThreadAxis
from accel.compiler.plans.model import GemmModel
from accel.compiler.plans.pool_default import pool_candidates
from accel.compiler.plans.pool_schedule import PoolPlan, pool_schedule
from accel.compiler.schedule.loops import check_threads
from accel.compiler.schedule.schedule import Schedule, Stage, create_schedule
from accel.compiler.target.machine import Machine
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

Tile = tuple[int | None, int | None, int | None]
"""Rows, columns and reduce step of a tile in elements; None where any will do."""


def shape_of(workload: Workload, config: Config) -> GemmShape:
    """A matrix product in blocks of a machine's GEMM core."""
    rows, columns = workload.output.shape
    (k,) = workload.reduce_axes
    a, b = workload.factors
    return GemmShape(
        rows=-(-rows // config.batch),
        columns=-(-columns // config.block_out),
        depth=-(-k.extent // config.block_in),
        transpose_a=a.indices[0] is k,
        transpose_b=b.indices[1] is k,
        bias=workload.bias is not None,
        residual=workload.residual is not None,
        passes=workload.epilogue.passes(k.extent),
    )


def candidates(
    workload: Workload, config: Config, threads: int | None = None, tile: Tile = (None, None, None)
) -> list[Candidate[Any]]:
    """The most promising plans, best first.

    Args:
        workload: what is to be computed.
        config: the machine.
        threads: only plans with so many virtual threads; any number if not given.
        tile: only plans with such tiles; one that is larger than the whole is cut to it.

    Raises:
        ScheduleError: so many threads do not fit, with the largest number that does; tiles that are no
            multiple of the machine's blocks, do not fit, or are given for something else than a product; DRAM
            is too small.
    """
    threads = None if threads is None else check_threads(threads)
    check_room([workload.output], config)
    if len(workload.axes) > 2:
        if tile != (None, None, None):
            raise ScheduleError(
                f"a tile of rows, columns and reduce step is given for {workload.name}; "
                f"such are for matrix products, give a schedule's steps instead"
            )
        find = pool_candidates if workload.name == "max_pool2d" else conv_candidates
        return find(workload, config, threads)
    model = GemmModel(shape_of(workload, config), config)
    if threads is not None:
        _check_fits(model, threads)
    blocks = _tile_blocks(model, tile)
    plans = _fitting(model, _THREADS if threads is None else (threads,), blocks)
    if not len(plans.rows):
        raise ScheduleError(
            f"tiles of {' x '.join('any' if size is None else str(size) for size in tile)}"
            f"{'' if threads is None else f' for {threads} virtual threads'} do not fit configuration "
            f"{config.name!r}, or leave nothing to do for each thread; give smaller ones"
        )
    quick = model.quick(plans)
    effort = model.instructions(plans)
    # the best bound first; bounds that hardly differ by the effort
    order = np.lexsort((effort, np.floor(np.log(quick / quick.min()) / np.log(1 + _ALIKE))))
    kinds = (plans.threads * 4 + plans.along_depth * 2 + plans.rows_outer)[order]
    first = [order[np.flatnonzero(kinds == kind)[:_FINALISTS]] for kind in np.unique(kinds)]
    chosen = plans.take(np.concatenate(first))
    found = [_candidate(model, plan) for plan in chosen.plans()]
    leaders = sorted(found, key=lambda c: c.prediction.cycles)[:_REFINED]
    others = [plan for leader in leaders if blocks[2] is None for plan in _other_steps(model, leader.plan)]
    known = {c.plan for c in found}
    found += [_candidate(model, plan) for plan in dict.fromkeys(others) if plan not in known]
    best = min(c.prediction.cycles for c in found)
    return sorted(found, key=partial(_rank, model, best * (1 + _CLOSE)))


def _candidate(model: GemmModel, plan: GemmPlan) -> Candidate[GemmPlan]:
    read_bytes = int(model.traffic(PlanTable.of([plan]))[0])
    return Candidate(plan=plan, prediction=model.predict(plan), read_bytes=read_bytes)


def _rank(model: GemmModel, close: float, candidate: Candidate[GemmPlan]) -> tuple[bool, float]:
    """Plans that are about as good as the best come first, those with the fewest instructions in front."""
    if candidate.prediction.cycles <= close:
        return False, float(model.instructions(PlanTable.of([candidate.plan]))[0])
    return True, candidate.prediction.cycles


def _other_steps(model: GemmModel, plan: GemmPlan) -> list[GemmPlan]:
    """The same plan with other reduce steps."""
    depths = _sizes(model.shape.depth)
    near = min(range(len(depths)), key=lambda i: abs(depths[i] - plan.depth))
    others = [replace(plan, depth=d) for d in depths[max(0, near - 3) : near + 4]]
    table = PlanTable.of(others)
    fitting = model.fits(table) & _useful(model.shape, table)
    return [other for other, fits in zip(others, fitting, strict=True) if fits]


def _tile_blocks(model: GemmModel, tile: Tile) -> Tile:
    """A tile in blocks of the GEMM core."""
    shape, config = model.shape, model.config
    wholes = (shape.rows, shape.columns, shape.depth)
    blocks: list[int | None] = []
    for size, block, whole in zip(
        tile, (config.batch, config.block_out, config.block_in), wholes, strict=True
    ):
        side = plain_integer(size)
        if size is not None and (side is None or side < 1 or side % block):
            raise ScheduleError(
                f"the tile has a side of {size!r}; on configuration {config.name!r} "
                f"it must be a multiple of {block}"
            )
        blocks.append(None if side is None else min(side // block, whole))
    return blocks[0], blocks[1], blocks[2]


def _fitting(model: GemmModel, numbers: Sequence[int], tile: Tile) -> PlanTable:
    """All plans that fit and are useful, with a given tile in blocks."""
    shape = model.shape
    wholes = (shape.rows, shape.columns, shape.depth)
    grid = np.meshgrid(
        *(_sizes(whole) if size is None else [size] for size, whole in zip(tile, wholes, strict=True)),
        numbers,
        [False, True],
        [False, True],
        indexing="ij",
    )
    plans = PlanTable(*(axis.reshape(-1) for axis in grid))
    return plans.take(np.flatnonzero(_useful(shape, plans) & model.fits(plans)))


def _useful(shape: GemmShape, plans: PlanTable) -> BoolArray:
    """Whether there is something to do for each thread."""
    inner_tiles = np.where(plans.rows_outer, -(-shape.columns // plans.columns), -(-shape.rows // plans.rows))
    turns = np.where(plans.along_depth, -(-shape.depth // plans.depth), inner_tiles)
    alone = (shape.rows, shape.columns, shape.depth) == (1, 1, 1)
    useful: BoolArray = np.where(plans.threads == 1, ~plans.along_depth, (turns > 1) | alone)
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


def _check_fits(model: GemmModel, threads: int) -> None:
    """Refuse more threads than even the smallest tiles leave room for."""
    if threads == 1 or _smallest_fits(model, threads):
        return
    most = bisect_left(range(1, threads), True, key=lambda n: not _smallest_fits(model, n + 1)) + 1
    raise too_many_threads(model.config, threads, most)


def _smallest_fits(model: GemmModel, threads: int) -> bool:
    """Whether the plans of one block per tile and step do."""
    plans = [
        GemmPlan(rows=1, columns=1, depth=1, threads=threads, thread_axis=axis, outer=outer)
        for axis in get_args(ThreadAxis)
        for outer in get_args(Outer)
    ]
    table = PlanTable.of(plans)
    return bool((_useful(model.shape, table) & model.fits(table)).any())


def default_schedule(
    workload: Workload,
    machine: Machine,
    threads: int | None = None,
    tile: Tile = (None, None, None),
) -> Schedule:
    """A schedule for a workload: the best of :func:`candidates`.

    Raises:
        ScheduleError: so many threads or such tiles do not fit.
    """
    plan = candidates(workload, machine.config, threads, tile)[0].plan
    if isinstance(plan, ConvPlan):
        return conv_schedule(workload, machine, plan)
    if isinstance(plan, PoolPlan):
        return pool_schedule(workload, machine, plan)
    return gemm_schedule(workload, machine, plan)


def gemm_schedule(workload: Workload, machine: Machine, plan: GemmPlan) -> Schedule:
    """The schedule of a plan."""
    config = machine.config
    s = create_schedule(workload.output)
    C = workload.output
    stages = in_accumulators(s, workload, machine)
    sums = stages[0]
    innermost, outermost = _tile_result(s[C], plan, config)
    for stage in stages:
        stage.compute_at(s[C], innermost)
    if workload.bias is not None:
        bias = s.cache_read(workload.bias, machine.acc_buffer)
        s[bias].compute_at(s[C], outermost)
    if workload.residual is not None:
        s[s.cache_read(workload.residual, machine.acc_buffer)].compute_at(s[C], innermost)
    a, b = (s.tensor(read.tensor.name) for read in workload.factors)
    inp, wgt = s.cache_read(a, machine.inp_buffer), s.cache_read(b, machine.wgt_buffer)
    step = _tile_sums(sums, plan, machine)
    s[inp].compute_at(sums, step)
    s[wgt].compute_at(sums, step)
    for stage in stages[1:]:
        tensorize_elements(stage, machine)
    return s


def _tile_result(stage: Stage, plan: GemmPlan, config: Config) -> tuple[IterVar, IterVar]:
    """Loops over the tiles of the result; the innermost and the outermost of them."""
    y, x = stage.axis
    yo, xo, yi, xi = stage.tile(y, x, plan.rows * config.batch, plan.columns * config.block_out)
    outer, inner = (yo, xo) if plan.outer == "rows" else (xo, yo)
    stage.reorder(outer, inner, yi, xi)
    if plan.threads == 1 or plan.thread_axis == "depth":
        return inner, outer
    _, thread = bind_threads(stage, inner, plan.threads)
    return thread, outer


def _tile_sums(stage: Stage, plan: GemmPlan, machine: Machine) -> IterVar:
    """Blocks of the GEMM core inside reduce steps; returns the loop that operands are loaded in."""
    config = machine.config
    (k,) = stage.reduce_axis
    blocks, inside = split_blocks(stage, config)
    ko, kt = stage.split(k, plan.depth * config.block_in, names=("ko", "kt"))
    km, ki = stage.split(kt, config.block_in, names=("km", "ki"))
    stage.reorder(ko, *blocks, km, *inside, ki)
    stage.tensorize(inside[0], machine.gemm)
    if plan.threads == 1 or plan.thread_axis == "inner":
        return ko
    _, thread = bind_threads(stage, ko, plan.threads)
    return thread
