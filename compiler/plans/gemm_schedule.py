"""Schedules of matrix products from plans: tiles of the result, steps of the sum, threads.

for yo, xo: tiles of the result             (or xo outermost)
for xv in vthread(2):
for ko: steps of the sum
rows and columns of the step
for ym, xm, km:   one GEMM instruction
gemm
epilogue, copy out
"""

from accel.compiler.expr.scalar import IterVar
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.blocking import (
    bind_threads,
    finish_in_store,
    in_accumulators,
    keep,
    load_residual,
    loaded,
    split_blocks,
    stored,
    tensorize_elements,
)
from accel.compiler.plans.gemm_plans import GemmPlan
from accel.compiler.schedule.schedule import Schedule, Stage, create_schedule
from accel.compiler.target.machine import Machine
from accel.core.config import Config


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
    in_store = stored(workload, config)
    if in_store:
        finish_in_store(s, workload, machine, s[C].leaves[s[C].leaves.index(innermost) + 1], innermost)
    if workload.bias is not None and not in_store:
        bias = s.cache_read(workload.bias, machine.acc_buffer)
        s[bias].compute_at(s[C], outermost)
    if workload.residual is not None and not in_store:
        load_residual(s, workload, machine, stages[-1], innermost, product=plan.residual_product)
    a, b = (s.tensor(read.tensor.name) for read in workload.factors)
    inp, wgt = loaded(s, a, machine.inp_buffer), loaded(s, b, machine.wgt_buffer)
    step = _tile_sums(sums, plan, machine)
    inp.compute_at(sums, step)
    wgt.compute_at(sums, step)
    for operand, stays, side in (("inputs", inp, "rows"), ("weights", wgt, "columns")):
        if plan.kept in (operand, "both"):
            keep(stays, s[C], outermost if plan.outer == side else None, ahead=plan.ahead)
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
