"""What the default schedules of all operators share: blocks of the machine's cores, accumulators, threads."""

from accel.compiler.expr.scalar import IterVar
from accel.compiler.ops.workload import Workload
from accel.compiler.schedule.loops import thread_axis
from accel.compiler.schedule.schedule import Schedule, Stage
from accel.compiler.target.machine import Machine
from accel.core.config import Config


def in_accumulators(s: Schedule, workload: Workload, machine: Machine) -> list[Stage]:
    """Have the sums, and what follows them, be computed in the accumulators; these stages, in order."""
    if workload.sums is workload.output:
        return [s[s.cache_write(workload.output, machine.acc_buffer)]]
    sums = s[workload.sums]
    sums.set_scope(machine.acc_buffer)
    return [sums, s[s.cache_write(workload.output, machine.acc_buffer)]]


def split_blocks(stage: Stage, config: Config) -> tuple[tuple[IterVar, IterVar], tuple[IterVar, IterVar]]:
    """Split the first two axes by the size of an accumulator element: loops over blocks, and those inside."""
    (y, x), (batch, outputs) = stage.axis[:2], (config.batch, config.block_out)
    ym, yi = stage.split(y, batch, names=(f"{y.name}m", f"{y.name}i"))
    xm, xi = stage.split(x, outputs, names=(f"{x.name}m", f"{x.name}i"))
    return (ym, xm), (yi, xi)


def tensorize_elements(stage: Stage, machine: Machine) -> None:
    """Have the ALU compute a stage in the accumulators, element by element."""
    others = stage.axis[2:]
    blocks, inside = split_blocks(stage, machine.config)
    stage.reorder(*blocks, *others, *inside)
    stage.tensorize(inside[0], machine.alu)


def bind_threads(stage: Stage, axis: IterVar, count: int) -> tuple[IterVar, IterVar]:
    """Make virtual threads of so many iterations of a loop that come one after the other.

    Returns:
        What is left of the loop, and the one over the threads.
    """
    outer, thread = stage.split(axis, count, names=(axis.name, f"{axis.name[0]}v"))
    stage.bind(thread, thread_axis("vthread"))
    return outer, thread
