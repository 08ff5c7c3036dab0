"""Scheduling steps of all default schedules: blocks, accumulators, threads."""

from accel.compiler.expr.scalar_expressions import IterVar
from accel.compiler.expr.tensor_expressions import Tensor
from accel.compiler.ops.quantized_layers import Quantized
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.epilogue_cost import has_store_epilogue, shared_parameter_block
from accel.compiler.schedule.schedule import Schedule, Stage
from accel.compiler.schedule.stage_splits import thread_axis
from accel.compiler.target.machine import Machine
from accel.compiler.target.memory_scope import Scope
from accel.core.config import Config


def compute_in_accumulators(s: Schedule, workload: Workload, machine: Machine) -> list[Stage]:
    """Place sums and ALU passes in the accumulators. Return these stages in order."""
    if workload.sums is workload.output:
        return [s[s.cache_write(workload.output, machine.acc_buffer)]]
    sums = s[workload.sums]
    sums.set_scope(machine.acc_buffer)
    if has_store_epilogue(workload, machine.config):
        return [sums]
    return [sums, s[s.cache_write(workload.output, machine.acc_buffer)]]


def requantize_in_store(
    s: Schedule, workload: Workload, machine: Machine, tile: IterVar, outer: IterVar | None
) -> None:
    """Let the store unit of a machine with ``post=1`` requantize the tiles of the output.

    Parameters are loaded in the loop ``outer`` of the output, or once if that is None or PAR can hold those
    of all channels.
    """
    output = s[workload.output]
    scope = machine.par_buffer
    packed = output.pack_parameters(block=shared_parameter_block(workload, machine.config))
    parameters = s[s.cache_read(packed, scope)]
    if outer is None or -(-packed.shape[0] // scope.element[0]) <= scope.depth:
        parameters.compute_root()
    else:
        parameters.compute_at(output, outer)
    if isinstance(workload.epilogue, Quantized) and workload.epilogue.table is not None:
        s[s.cache_read(output.pack_table(), machine.tab_buffer)].compute_root()
    output.tensorize(tile, machine.post)


def load_residual(
    s: Schedule, workload: Workload, machine: Machine, stage: Stage, tile: IterVar, *, product: bool
) -> None:
    """``stage`` in the accumulators adds the residual.

    ``product`` is the plan's ``residual_product``.
    """
    assert workload.residual is not None
    output = s[workload.output]
    if product:
        unit = stage.add_product(workload.residual, stage.axis[1], machine.config.block_out)
        s[s.cache_read(unit, machine.wgt_buffer)].compute_root()
    scope = machine.inp_buffer if product else machine.acc_buffer
    s[s.cache_read(workload.residual, scope)].compute_at(output, tile)


def split_blocks(stage: Stage, config: Config) -> tuple[tuple[IterVar, IterVar], tuple[IterVar, IterVar]]:
    """Split the first two axes, or the last two of three, by the shape of an accumulator element.

    Return the two loops over blocks, and the two loops inside a block.
    """
    y, x = stage.axis[-2:] if len(stage.axis) == 3 else stage.axis[:2]
    batch, outputs = config.batch, config.block_out
    ym, yi = stage.split(y, batch, names=(f"{y.name}m", f"{y.name}i"))
    xm, xi = stage.split(x, outputs, names=(f"{x.name}m", f"{x.name}i"))
    return (ym, xm), (yi, xi)


def tensorize_elements(stage: Stage, machine: Machine) -> None:
    """Let the ALU compute a stage in the accumulators, one element per slot."""
    others = stage.axis[2:]
    blocks, inside = split_blocks(stage, machine.config)
    stage.reorder(*blocks, *others, *inside)
    stage.tensorize(inside[0], machine.alu)


def load_stage(s: Schedule, data: Tensor, scope: Scope) -> Stage:
    """The stage subtracts the input's zero point, if any."""
    if data in s.inputs:
        return s[s.cache_read(data, scope)]
    s[data].set_scope(scope)
    return s[data]


def make_resident(stage: Stage, output: Stage, loop: IterVar | None, *, prefetch: bool) -> None:
    """Keep a loading stage's data in its scratchpad, for one iteration of ``loop`` or the whole program
    (None)."""
    if loop is None:
        stage.keep_root()
    else:
        stage.keep_at(output, loop, ahead=prefetch)


def bind_threads(stage: Stage, axis: IterVar, count: int) -> tuple[IterVar, IterVar]:
    """Make ``count`` consecutive iterations virtual threads.

    Return the remaining outer loop, and the loop over the threads.
    """
    outer, thread = stage.split(axis, count, names=(axis.name, f"{axis.name[0]}v"))
    stage.bind(thread, thread_axis("vthread"))
    return outer, thread
