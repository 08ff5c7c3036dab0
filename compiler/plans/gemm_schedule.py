"""Schedules of matrix products from plans.

With rows as the outer loop and 2 threads along columns, a schedule has these loops. With several products,
a loop over them is around all others::

    for yo, xo:                       # tiles of the result
        for xv in vthread(2):
            for ko:                   # steps of the sum
                load the rows and the columns of the step
                for ym, xm, km:       # one GEMM instruction
                    gemm
            epilogue, store
"""

from accel.compiler.expr.scalar_expressions import IterVar
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.epilogue_cost import has_store_epilogue
from accel.compiler.plans.gemm_plan import GemmPlan
from accel.compiler.plans.schedule_blocking import (
    bind_threads,
    compute_in_accumulators,
    load_residual,
    load_stage,
    make_resident,
    requantize_in_store,
    split_blocks,
    tensorize_elements,
)
from accel.compiler.schedule.schedule import Schedule, Stage, create_schedule
from accel.compiler.target.machine import Machine
from accel.core.config import Config


def gemm_schedule(workload: Workload, machine: Machine, plan: GemmPlan) -> Schedule:
    """Return the schedule of a plan."""
    config = machine.config
    s = create_schedule(workload.output)
    stages = compute_in_accumulators(s, workload, machine)
    sums, output = stages[0], s[workload.output]
    innermost, outermost = _tile_result(output, plan, config)
    for stage in stages:
        stage.compute_at(output, innermost)
    in_store = has_store_epilogue(workload, config)
    if in_store:
        within = output.leaves[output.leaves.index(innermost) + 1]
        requantize_in_store(s, workload, machine, within, innermost)
    else:
        for tensor in workload.channel_tensors:
            s[s.cache_read(tensor, machine.acc_buffer)].compute_at(output, outermost)
    if workload.residual is not None and not in_store:
        load_residual(s, workload, machine, stages[-1], innermost, product=plan.residual_product)
    a, b = (s.tensor(read.tensor.name) for read in workload.factors)
    inp, wgt = load_stage(s, a, machine.inp_buffer), load_stage(s, b, machine.wgt_buffer)
    step = _tile_sums(sums, plan, machine)
    inp.compute_at(sums, step)
    wgt.compute_at(sums, step)
    pair = output.leaves[0] if len(output.axis) > 2 else None
    for operand, stage, side in (("inputs", inp, "rows"), ("weights", wgt, "columns")):
        if plan.resident in (operand, "both"):
            is_outer = plan.outer == side
            loop = outermost if is_outer else pair
            make_resident(stage, output, loop, prefetch=plan.prefetch and loop is not None)
    for stage in stages[1:]:
        tensorize_elements(stage, machine)
    return s


def _tile_result(stage: Stage, plan: GemmPlan, config: Config) -> tuple[IterVar, IterVar]:
    *several, y, x = stage.axis
    yo, xo, yi, xi = stage.tile(y, x, plan.rows * config.batch, plan.columns * config.block_out)
    outer, inner = (yo, xo) if plan.outer == "rows" else (xo, yo)
    stage.reorder(*several, outer, inner, yi, xi)
    if plan.threads == 1 or plan.thread_axis == "depth":
        return inner, outer
    if plan.thread_axis == "groups":
        pairs, thread = bind_threads(stage, several[0], plan.threads)
        stage.reorder(pairs, outer, inner, thread, yi, xi)
        return thread, outer
    _, thread = bind_threads(stage, inner, plan.threads)
    return thread, outer


def _tile_sums(stage: Stage, plan: GemmPlan, machine: Machine) -> IterVar:
    config = machine.config
    (k,) = stage.reduce_axis
    blocks, inside = split_blocks(stage, config)
    ko, kt = stage.split(k, plan.depth * config.block_in, names=("ko", "kt"))
    km, ki = stage.split(kt, config.block_in, names=("km", "ki"))
    stage.reorder(*stage.axis[:-2], ko, *blocks, km, *inside, ki)
    stage.tensorize(inside[0], machine.gemm)
    if plan.threads == 1 or plan.thread_axis != "depth":
        return ko
    _, thread = bind_threads(stage, ko, plan.threads)
    return thread
