"""Schedules of convolutions from plans: tiles of the output, steps of the sum, threads.

for no, yo, xo, oo: tiles of the output     (or oo outermost)
for ov in vthread(2):
for co, do: steps of the sum
window and weights of the step
for nm, om, y, x, cm, dy, dx:   one GEMM instruction
gemm
epilogue, copy out
"""

from dataclasses import dataclass
from typing import Literal

from accel.compiler.expr import IterVar
from accel.compiler.machine import MachineLike
from accel.compiler.schedule import Schedule, Stage, create_schedule, thread_axis
from accel.compiler.tensor import Tensor
from accel.compiler.window import window_of
from accel.compiler.workload import Workload
from accel.config import Config

ThreadAxis = Literal["channels", "rows", "depth"]
Outer = Literal["channels", "pixels"]


@dataclass(frozen=True, kw_only=True)
class ConvPlan:
    """How a convolution is tiled and ordered.

    Attributes:
        channels: blocks of output channels in a tile of the output.
        rows, columns: of the output in a tile; a tile is of one block of the batch.
        depth: blocks of input channels in a step of the sum.
        kernel_rows: rows of the kernel in a step.
        threads: virtual threads.
        thread_axis: ``channels`` and ``rows``: tiles side by side in that direction; ``depth``: the steps of
            one tile.
        outer: ``channels``: all tiles of some channels come before those of the next ones; ``pixels``: all
            channels of a place come before the next place.
        bias_stays: whether the bias of all channels lies in the accumulators throughout.
    """

    channels: int
    rows: int
    columns: int
    depth: int
    kernel_rows: int
    threads: int
    thread_axis: ThreadAxis
    outer: Outer
    bias_stays: bool = True


def conv_schedule(workload: Workload, machine: MachineLike, plan: ConvPlan) -> Schedule:
    """The schedule of a plan."""
    s = create_schedule(workload.output)
    if workload.sums is workload.output:
        sums = s[s.cache_write(workload.output, machine.acc_buffer)]
        stages = [sums]
    else:
        sums = s[workload.sums]
        sums.set_scope(machine.acc_buffer)
        stages = [sums, s[s.cache_write(workload.output, machine.acc_buffer)]]
    output = s[workload.output]
    channels, innermost = _tile_output(output, plan, machine.config)
    for stage in stages:
        stage.compute_at(output, innermost)
    bias = None
    if workload.bias is not None:
        bias = s[s.cache_read(workload.bias, machine.acc_buffer)]
        if plan.bias_stays:
            bias.compute_root()
        else:
            bias.compute_at(output, channels if plan.outer == "channels" else innermost)
    if workload.residual is not None:
        s[s.cache_read(workload.residual, machine.acc_buffer)].compute_at(output, innermost)
    data, weights = (s.tensor(read.tensor.name) for read in workload.factors)
    inp = _loaded_input(s, data, machine)
    wgt = s[s.cache_read(weights, machine.wgt_buffer)]
    step = _tile_sums(sums, plan, machine)
    inp.compute_at(sums, step)
    wgt.compute_at(sums, step)
    if bias is not None and plan.bias_stays:
        wgt.start_after(bias)
    for stage in stages[1:]:
        _tile_epilogue(stage, machine)
    return s


def _loaded_input(s: Schedule, data: Tensor, machine: MachineLike) -> Stage:
    """The stage that loads the input. Padding is neither loaded nor multiplied; rows may be skipped."""
    window = None if data in s.inputs else window_of(s[data].axis, s[data].body)
    if window is not None and not window.padded:
        s[data].set_scope(machine.inp_buffer)
        return s[data]
    if window is not None:
        s[data].compute_inline()
        data = s.tensor(window.read.tensor.name)
    return s[s.cache_read(data, machine.inp_buffer)]


def _tile_output(stage: Stage, plan: ConvPlan, config: Config) -> tuple[IterVar, IterVar]:
    """Loops over the tiles; returns the one over channels and the innermost one."""
    n, o, y, x = stage.axis
    no, oo, yo, xo, *within = stage.tile(
        n, o, y, x, config.batch, plan.channels * config.block_out, plan.rows, plan.columns
    )
    loops = [oo, no, yo, xo] if plan.outer == "channels" else [no, yo, xo, oo]
    threaded = {"channels": oo, "rows": yo}.get(plan.thread_axis)
    if plan.threads > 1 and threaded is not None:
        names = (threaded.name, threaded.name[0] + "v")
        outer, thread = stage.split(threaded, plan.threads, names=names)
        loops[loops.index(threaded)] = outer
        loops.append(thread)
        stage.bind(thread, thread_axis("vthread"))
        oo = outer if threaded is oo else oo
    stage.reorder(*loops, *within)
    return oo, loops[-1]


def _tile_sums(stage: Stage, plan: ConvPlan, machine: MachineLike) -> IterVar:
    """Blocks of the GEMM core inside steps of the sum; returns the loop that operands are loaded in."""
    config = machine.config
    n, o, y, x = stage.axis
    c, dy, dx = stage.reduce_axis
    nm, ni = stage.split(n, config.batch, names=("nm", "ni"))
    om, oi = stage.split(o, config.block_out, names=("om", "oi"))
    co, ct = stage.split(c, plan.depth * config.block_in, names=("co", "ct"))
    cm, ci = stage.split(ct, config.block_in, names=("cm", "ci"))
    do, dm = stage.split(dy, plan.kernel_rows, names=("do", "dm"))
    stage.reorder(co, do, nm, om, y, x, cm, dm, dx, ni, oi, ci)
    stage.tensorize(ni, machine.gemm)
    if plan.threads == 1 or plan.thread_axis != "depth":
        return do
    stage.reorder(do, co)
    _, thread = stage.split(co, plan.threads, names=("co", "cv"))
    stage.bind(thread, thread_axis("vthread"))
    return thread


def _tile_epilogue(stage: Stage, machine: MachineLike) -> None:
    config = machine.config
    n, o, y, x = stage.axis
    nm, ni = stage.split(n, config.batch, names=("nm", "ni"))
    om, oi = stage.split(o, config.block_out, names=("om", "oi"))
    stage.reorder(nm, om, y, x, ni, oi)
    stage.tensorize(ni, machine.alu)
