"""Schedules of convolutions from plans: tiles of the output, steps of the sum, threads.

for g: groups
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

from accel.compiler.expr.scalar import IterVar, reads
from accel.compiler.expr.tensor import Tensor
from accel.compiler.expr.window import window_of
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
from accel.compiler.schedule.groups import groups_to_merge
from accel.compiler.schedule.schedule import Schedule, Stage, create_schedule
from accel.compiler.target.machine import Machine
from accel.core.config import Config
from accel.core.faults import most_taps

ThreadAxis = Literal["channels", "rows", "depth", "groups"]
Outer = Literal["channels", "pixels"]
Kept = Literal["nothing", "weights", "inputs", "both"]


@dataclass(frozen=True, kw_only=True)
class MergedGroups:
    """Groups of a convolution, merged to whole blocks of the GEMM core.

    Attributes:
        together: groups that are merged.
        count: what they become, the last one maybe smaller.
        outputs, inputs: channels of each.
    """

    together: int
    count: int
    outputs: int
    inputs: int

    def is_diagonal(self, config: Config) -> bool:
        """Whether each of several is one block of outputs that sums up one block of inputs; a tile may then
        be of any number of them."""
        return self.count > 1 and (self.outputs, self.inputs) == (config.block_out, config.block_in)


def merged_groups(workload: Workload, config: Config) -> MergedGroups:
    """The groups of a convolution as a machine does them; in pooling each channel is one."""
    _, channels, _, _ = workload.output.shape
    count = workload.parameters.get("groups", 1 if workload.is_product else channels)
    rows, columns = channels // count, workload.data.tensor.shape[1] // count
    together = groups_to_merge(count, rows, columns, (config.block_out, config.block_in))
    return MergedGroups(
        together=together,
        count=-(-count // together),
        outputs=rows * together,
        inputs=columns * together,
    )


def taps_at_once(workload: Workload, config: Config) -> int:
    """Columns of the kernel that a micro-op multiplies, channel by channel: all of those of a depthwise
    convolution, if the machine has a bank of inp for each; otherwise 0."""
    sizes = workload.parameters
    if workload.name != "conv2d" or not config.depthwise:
        return 0
    columns, across = sizes["kernel"][1], sizes["dilation"][1]
    depthwise = sizes["groups"] == sizes["IC"] == sizes["OC"]
    return columns if depthwise and across == 1 < columns <= most_taps(1, config) else 0


@dataclass(frozen=True, kw_only=True)
class ConvPlan:
    """How a convolution is tiled and ordered. Groups, merged to whole blocks, come one after the other; those
    that are a single block are channels like others.

    Attributes:
        channels: blocks of output channels in a tile of the output.
        rows, columns: of the output in a tile.
        depth: blocks of input channels in a step of the sum.
        kernel_rows: rows of the kernel in a step.
        threads: virtual threads.
        thread_axis: ``channels`` and ``rows``: tiles side by side in that direction; ``depth``: the steps of
            one tile; ``groups``: the same tile of neighbouring groups.
        outer: ``channels``: all tiles of some channels come before those of the next ones; ``pixels``: all
            channels of a place come before the next place.
        bias_stays: whether the bias of all channels lies in the accumulators throughout.
        batches: blocks of the batch in a tile.
        residual_product: whether the GEMM core adds a residual, which the load unit brings; otherwise the ALU
            does, and the compute unit loads it.
        kept: what scratchpads keep of all steps of the sum. Where channels are outermost, these are the
            weights of a tile's channels and the inputs of all places, else the inputs of a place and the
            weights of all channels.
        ahead: whether there is room for what is kept next of a tile's channels, or of a place.
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
    batches: int = 1
    residual_product: bool = False
    kept: Kept = "nothing"
    ahead: bool = False


def conv_schedule(workload: Workload, machine: Machine, plan: ConvPlan) -> Schedule:
    """The schedule of a plan."""
    s = create_schedule(workload.output)
    stages = in_accumulators(s, workload, machine)
    sums = stages[0]
    merged = merged_groups(workload, machine.config)
    taps = taps_at_once(workload, machine.config)
    if not workload.is_product:
        sums.multiply_identity(sums.axis[1], merged.outputs)
    elif merged.together > 1 and not taps:
        sums.merge_groups("c", merged.together)
    output = s[workload.output]
    channels, place, innermost = _tile_output(output, plan, machine.config, merged)
    for stage in stages:
        stage.compute_at(output, innermost)
    bias = None
    in_store = stored(workload, machine.config)
    if in_store:
        finish_in_store(s, workload, machine, output.leaves[output.leaves.index(innermost) + 1], innermost)
    if workload.bias is not None and not in_store:
        bias = s[s.cache_read(workload.bias, machine.acc_buffer)]
        if plan.bias_stays:
            bias.compute_root()
        else:
            shared = plan.outer == "channels" and plan.thread_axis != "groups"
            bias.compute_at(output, channels if shared else innermost)
    if workload.residual is not None and not in_store:
        load_residual(s, workload, machine, stages[-1], innermost, product=plan.residual_product)
    data, weights = (s.tensor(read.tensor.name) for read in reads(sums.body))
    inp = _loaded_input(s, data, machine, padded=bool(taps))
    wgt = s[s.cache_read(weights, machine.wgt_buffer)]
    up = tuple(workload.parameters["stride"]) if workload.name == "conv2d_transpose" else None
    if up is not None:
        step = _tile_phases(sums, plan, machine, up)
    else:
        step = _tile_rows(sums, plan, machine) if taps else _tile_sums(sums, plan, machine)
    inp.compute_at(sums, step)
    if workload.is_product:
        wgt.compute_at(sums, step)
    else:
        wgt.compute_root()
    whole = output.leaves[0] if merged.count > 1 and not merged.is_diagonal(machine.config) else None
    for operand, stays, loop in (("inputs", inp, place), ("weights", wgt, channels)):
        if plan.kept in (operand, "both"):
            outermost = (operand == "weights") == (plan.outer == "channels")
            keep(stays, output, loop if outermost else whole, ahead=plan.ahead and outermost)
    if bias is not None and plan.bias_stays:
        wgt.start_after(bias)
    for stage in stages[1:]:
        tensorize_elements(stage, machine)
    return s


def _tile_phases(stage: Stage, plan: ConvPlan, machine: Machine, up: tuple[int, ...]) -> IterVar:
    """As :func:`_tile_sums`, of transposed convolutions: outputs and kernel in steps of the stride, so that a
    phase of the output meets either all or none of the elements of a phase of the kernel."""
    config = machine.config
    _, _, y, x = stage.axis
    c, dy, dx = stage.reduce_axis
    blocks, inside = split_blocks(stage, config)
    co, ct = stage.split(c, plan.depth * config.block_in, names=("co", "ct"))
    cm, ci = stage.split(ct, config.block_in, names=("cm", "ci"))
    phases, steps = [], []
    for axis, names, stride in ((y, "y", up[0]), (x, "x", up[1]), (dy, "dy", up[0]), (dx, "dx", up[1])):
        whole, phase = stage.split(axis, stride, names=(names + "m", names + "p"))
        phases.append(phase)
        steps.append(whole)
    ym, xm, dym, dxm = steps
    stage.reorder(co, *phases, *blocks, ym, xm, cm, dym, dxm, *inside, ci)
    stage.tensorize(inside[0], machine.gemm)
    if plan.threads == 1 or plan.thread_axis != "depth":
        return co
    _, thread = bind_threads(stage, co, plan.threads)
    return thread


def _loaded_input(s: Schedule, data: Tensor, machine: Machine, *, padded: bool = False) -> Stage:
    """The stage that loads the input; rows may be skipped. Padding is neither loaded nor multiplied, or it is
    ``padded`` by zeros in the scratchpad."""
    if data in s.inputs:
        return loaded(s, data, machine.inp_buffer)
    window = window_of(s[data].axis, s[data].body)
    source = window.read.tensor if window is not None else reads(s[data].body)[0].tensor
    assert isinstance(source, Tensor)
    if window is not None and (padded or not window.padded):
        if source not in s.inputs:
            s[source].compute_inline()
        return loaded(s, data, machine.inp_buffer)
    s[data].compute_inline()
    return loaded(s, source, machine.inp_buffer)


def _tile_output(
    stage: Stage, plan: ConvPlan, config: Config, merged: MergedGroups
) -> tuple[IterVar, IterVar, IterVar]:
    """Loops over the tiles; returns the one over channels, the last over pixels and the innermost one."""
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


def _tile_rows(stage: Stage, plan: ConvPlan, machine: Machine) -> IterVar:
    """As :func:`_tile_sums`, of depthwise convolutions whose kernel's rows are multiplied at once."""
    _, _, y, x = stage.axis
    c, dy, dx = stage.reduce_axis
    blocks, inside = split_blocks(stage, machine.config)
    do, dm = stage.split(dy, plan.kernel_rows, names=("do", "dm"))
    stage.reorder(do, *blocks, c, y, x, dm, *inside, dx)
    stage.tensorize(inside[0], machine.depthwise)
    return do


def _tile_sums(stage: Stage, plan: ConvPlan, machine: Machine) -> IterVar:
    """Blocks of the GEMM core inside steps of the sum; returns the loop that operands are loaded in."""
    config = machine.config
    _, _, y, x = stage.axis
    c, dy, dx = stage.reduce_axis
    blocks, inside = split_blocks(stage, config)
    co, ct = stage.split(c, plan.depth * config.block_in, names=("co", "ct"))
    cm, ci = stage.split(ct, config.block_in, names=("cm", "ci"))
    do, dm = stage.split(dy, plan.kernel_rows, names=("do", "dm"))
    stage.reorder(co, do, *blocks, y, x, cm, dm, dx, *inside, ci)
    stage.tensorize(inside[0], machine.gemm)
    if plan.threads == 1 or plan.thread_axis != "depth":
        return do
    stage.reorder(do, co)
    _, thread = bind_threads(stage, co, plan.threads)
    return thread
