"""Schedules of convolutions from plans.

With channels as the outer loop and 2 threads along them, a schedule has these loops::

    for g:                                      # groups
        for oo, no, yo, xo:                     # tiles of the output
            for ov in vthread(2):
                for co, do:                     # steps of the sum
                    load the input and the weights of the step
                    for nm, om, y, x, cm, dy, dx:   # one GEMM instruction
                        gemm
                epilogue, store
"""

from accel.compiler.expr.scalar_expressions import IterVar, reads
from accel.compiler.expr.tensor_expressions import Tensor
from accel.compiler.expr.window_expressions import window_of
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.conv_plan import ConvPlan
from accel.compiler.plans.epilogue_cost import has_store_epilogue
from accel.compiler.plans.merged_groups import MergedGroups, merged_groups, taps_at_once
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


def conv_schedule(workload: Workload, machine: Machine, plan: ConvPlan) -> Schedule:
    """Return the schedule of a plan."""
    s = create_schedule(workload.output)
    stages = compute_in_accumulators(s, workload, machine)
    sums = stages[0]
    merged = merged_groups(workload, machine.config)
    taps = taps_at_once(workload, machine.config)
    if not workload.is_product:
        sums.multiply_identity(sums.axis[1], merged.outputs)
    elif merged.together > 1 and not taps:
        sums.merge_groups("c", merged.together)
    output = s[workload.output]
    channels, pixels, innermost = _tile_output(output, plan, machine.config, merged)
    for stage in stages:
        stage.compute_at(output, innermost)
    resident: list[Stage] = []
    in_store = has_store_epilogue(workload, machine.config)
    if in_store:
        within = output.leaves[output.leaves.index(innermost) + 1]
        requantize_in_store(s, workload, machine, within, innermost)
    else:
        is_shared = plan.outer == "channels" and plan.thread_axis != "groups"
        for tensor in workload.channel_tensors:
            stage = s[s.cache_read(tensor, machine.acc_buffer)]
            if plan.bias_resident:
                stage.compute_root()
                resident.append(stage)
            else:
                stage.compute_at(output, channels if is_shared else innermost)
    if workload.residual is not None and not in_store:
        load_residual(s, workload, machine, stages[-1], innermost, product=plan.residual_product)
    data, weights = (s.tensor(read.tensor.name) for read in reads(sums.body))
    inp = _load_input(s, data, machine, pads=bool(taps))
    wgt = s[s.cache_read(weights, machine.wgt_buffer)]
    step = _tile_sums(sums, workload, plan, machine)
    inp.compute_at(sums, step)
    if workload.is_product:
        wgt.compute_at(sums, step)
    else:
        wgt.compute_root()
    has_group_loop = merged.count > 1 and not merged.is_diagonal(machine.config)
    group = output.leaves[0] if has_group_loop else None
    for operand, stage, loop in (("inputs", inp, pixels), ("weights", wgt, channels)):
        if plan.resident in (operand, "both"):
            is_outer = (operand == "weights") == (plan.outer == "channels")
            make_resident(stage, output, loop if is_outer else group, prefetch=plan.prefetch and is_outer)
    if resident:
        wgt.start_after(resident[-1])
    for stage in stages[1:]:
        tensorize_elements(stage, machine)
    return s


def _load_input(s: Schedule, data: Tensor, machine: Machine, *, pads: bool) -> Stage:
    """Return the stage that loads the input, with zeros around it if ``pads``, and possibly without rows that
    no window needs."""
    if data in s.inputs:
        return load_stage(s, data, machine.inp_buffer)
    window = window_of(s[data].axis, s[data].body)
    source = window.read.tensor if window is not None else reads(s[data].body)[0].tensor
    assert isinstance(source, Tensor)
    if window is not None and (pads or not window.padded):
        if source not in s.inputs:
            s[source].compute_inline()
        return load_stage(s, data, machine.inp_buffer)
    s[data].compute_inline()
    return load_stage(s, source, machine.inp_buffer)


def _tile_output(
    stage: Stage, plan: ConvPlan, config: Config, merged: MergedGroups
) -> tuple[IterVar, IterVar, IterVar]:
    """Return the loop over channels, the last loop over pixels, and the innermost loop."""
    n, o, y, x = stage.axis
    g = None
    if merged.count > 1 and not merged.is_diagonal(config):
        g, o = stage.split(o, merged.outputs, names=("g", "og"))
    sizes = plan.batches * config.batch, plan.channels * config.block_out, plan.rows, plan.columns
    no, oo, yo, xo, *within = stage.tile(n, o, y, x, *sizes)
    loops = [oo, no, yo, xo] if plan.outer == "channels" else [no, yo, xo, oo]
    loops = loops if g is None else [g, *loops]
    threaded = {"channels": oo, "rows": yo, "groups": g}.get(plan.thread_axis)
    if plan.threads > 1 and threaded is not None:
        outer, thread = bind_threads(stage, threaded, plan.threads)
        loops[loops.index(threaded)] = outer
        loops.append(thread)
        oo = outer if threaded is oo else oo
    stage.reorder(*loops, *within)
    return oo, xo, loops[-1]


def _tile_sums(stage: Stage, workload: Workload, plan: ConvPlan, machine: Machine) -> IterVar:
    """Split the sums into steps, tensorize them, and return the loop that loads operands."""
    if workload.name == "conv2d_transpose":
        return _tile_phases(stage, plan, machine, tuple(workload.parameters["stride"]))
    if taps_at_once(workload, machine.config):
        return _tile_kernel_rows(stage, plan, machine)
    _, _, y, x = stage.axis
    c, dy, dx = stage.reduce_axis
    blocks, inside = split_blocks(stage, machine.config)
    co, cm, ci = _split_depth(stage, c, plan, machine.config)
    do, dm = stage.split(dy, plan.kernel_rows, names=("do", "dm"))
    stage.reorder(co, do, *blocks, y, x, cm, dm, dx, *inside, ci)
    stage.tensorize(inside[0], machine.gemm)
    if plan.threads == 1 or plan.thread_axis != "depth":
        return do
    stage.reorder(do, co)
    _, thread = bind_threads(stage, co, plan.threads)
    return thread


def _tile_phases(stage: Stage, plan: ConvPlan, machine: Machine, stride: tuple[int, ...]) -> IterVar:
    _, _, y, x = stage.axis
    c, dy, dx = stage.reduce_axis
    blocks, inside = split_blocks(stage, machine.config)
    co, cm, ci = _split_depth(stage, c, plan, machine.config)
    phases, wholes = [], []
    for axis, name, step in zip((y, x, dy, dx), ("y", "x", "dy", "dx"), stride * 2, strict=True):
        whole, phase = stage.split(axis, step, names=(name + "m", name + "p"))
        phases.append(phase)
        wholes.append(whole)
    ym, xm, dym, dxm = wholes
    stage.reorder(co, *phases, *blocks, ym, xm, cm, dym, dxm, *inside, ci)
    stage.tensorize(inside[0], machine.gemm)
    if plan.threads == 1 or plan.thread_axis != "depth":
        return co
    _, thread = bind_threads(stage, co, plan.threads)
    return thread


def _tile_kernel_rows(stage: Stage, plan: ConvPlan, machine: Machine) -> IterVar:
    _, _, y, x = stage.axis
    c, dy, dx = stage.reduce_axis
    blocks, inside = split_blocks(stage, machine.config)
    do, dm = stage.split(dy, plan.kernel_rows, names=("do", "dm"))
    stage.reorder(do, *blocks, c, y, x, dm, *inside, dx)
    stage.tensorize(inside[0], machine.depthwise)
    return do


def _split_depth(
    stage: Stage, c: IterVar, plan: ConvPlan, config: Config
) -> tuple[IterVar, IterVar, IterVar]:
    co, ct = stage.split(c, plan.depth * config.block_in, names=("co", "ct"))
    cm, ci = stage.split(ct, config.block_in, names=("cm", "ci"))
    return co, cm, ci
