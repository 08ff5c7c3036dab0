"""What the default schedules of all operators share: blocks of the machine's cores, accumulators, threads."""

from dataclasses import dataclass
from math import prod

from accel.base.errors import ScheduleError
from accel.compiler.expr.scalar import IterVar
from accel.compiler.expr.tensor import Tensor
from accel.compiler.ops.quantized import Quantized
from accel.compiler.ops.workload import Workload
from accel.compiler.schedule.loops import thread_axis
from accel.compiler.schedule.schedule import Schedule, Stage
from accel.compiler.target.emitters import overwrites
from accel.compiler.target.machine import Machine
from accel.compiler.target.scope import Scope
from accel.core.config import Config


def in_accumulators(s: Schedule, workload: Workload, machine: Machine) -> list[Stage]:
    """Have the sums, and what follows them, be computed in the accumulators; these stages, in order."""
    if workload.sums is workload.output:
        return [s[s.cache_write(workload.output, machine.acc_buffer)]]
    sums = s[workload.sums]
    sums.set_scope(machine.acc_buffer)
    if stored(workload, machine.config):
        return [sums]
    return [sums, s[s.cache_write(workload.output, machine.acc_buffer)]]


def stored(workload: Workload, config: Config) -> bool:
    """Whether the store unit finishes the sums of a workload.

    Raises:
        ScheduleError: the machine's store unit does not, and nothing else does.
    """
    if isinstance(workload.epilogue, Quantized) and not config.post:
        raise ScheduleError(
            f"{workload.name} is quantized by scales and zero points; configuration {config.name!r} has "
            f"post=0 and only shifts sums: give shift=N instead of quantized, or take a machine with post=1, "
            f"as 'vta-int8'"
        )
    length = prod(axis.extent for axis in workload.reduce_axes)
    return bool(config.post) and workload.sums is not workload.output and workload.epilogue.stored(length)


@dataclass(frozen=True, kw_only=True)
class Passes:
    """What a model has to know of how sums start and are finished.

    Attributes:
        passes: operations on each accumulator besides products.
        slots: that these take, for each accumulator.
        resets: those of them in front of the products, 0 or 1.
        folded: whether the one in front adds the bias, too.
        stored: whether the store unit finishes the sums, with parameters that it loads.
        alike: whether those are the same for all channels.
    """

    passes: int
    slots: int
    resets: int
    folded: bool
    stored: bool
    alike: bool = False


def passes_of(workload: Workload, config: Config, length: int) -> Passes:
    """The passes of a workload on a machine.

    Args:
        workload: whose sums are of products.
        config: the machine.
        length: products in a sum, as the machine makes them.

    Raises:
        ScheduleError: see :func:`stored`.
    """
    folded, passes = workload.epilogue.folds(length), workload.epilogue.passes(length)
    if stored(workload, config):
        alike = shared_parameters(workload, config) is not None
        return Passes(passes=0, slots=0, resets=0, folded=False, stored=True, alike=alike)
    more = workload.epilogue.products() * (config.mul_slots - 1)
    if overwrites(config):
        passes += folded - 1
        return Passes(passes=passes, slots=passes + more, resets=0, folded=False, stored=False)
    return Passes(passes=passes, slots=passes + more, resets=1, folded=folded, stored=False)


def finish_in_store(
    s: Schedule, workload: Workload, machine: Machine, tile: IterVar, outer: IterVar | None
) -> None:
    """Have the store unit finish the tiles of a workload's output.

    Args:
        s: its schedule, with the output tiled.
        workload: what :func:`stored` holds of.
        machine: with ``post=1``.
        tile: the outermost loop within a tile.
        outer: inside which loop of the output the parameters are loaded; outside of all if None, or if all
            fit.
    """
    output = s[workload.output]
    scope = machine.par_buffer
    packed = output.pack_parameters(block=shared_parameters(workload, machine.config))
    parameters = s[s.cache_read(packed, scope)]
    if outer is None or -(-packed.shape[0] // scope.element[0]) <= scope.depth:
        parameters.compute_root()
    else:
        parameters.compute_at(output, outer)
    output.tensorize(tile, machine.post)


def shared_parameters(workload: Workload, config: Config) -> int | None:
    """Channels whose parameters are those of all others, where the store unit finishes sums that have no
    bias, and one scale for all; None if there are no others."""
    epilogue, block = workload.epilogue, config.block_out
    alike = not isinstance(epilogue, Quantized) or len(epilogue.scales) == 1
    return block if workload.bias is None and alike and workload.output.shape[1] > block else None


def adds_by_product(config: Config) -> bool:
    """Whether the GEMM core can add a tensor to finished sums: its blocks are square."""
    return config.block_in == config.block_out


def load_residual(
    s: Schedule, workload: Workload, machine: Machine, stage: Stage, tile: IterVar, *, product: bool
) -> None:
    """Have a residual be loaded with each tile.

    Args:
        s: the schedule of a workload with a residual, which the store unit does not add.
        workload, machine: its.
        stage: what adds it, in the accumulators.
        tile: the innermost loop of the output over tiles.
        product: whether the GEMM core adds it, and the load unit brings it; otherwise the ALU does, and the
            compute unit loads it.
    """
    assert workload.residual is not None
    output = s[workload.output]
    if product:
        unit = stage.add_product(workload.residual, stage.axis[1], machine.config.block_out)
        s[s.cache_read(unit, machine.wgt_buffer)].compute_root()
    scope = machine.inp_buffer if product else machine.acc_buffer
    s[s.cache_read(workload.residual, scope)].compute_at(output, tile)


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


def loaded(s: Schedule, data: Tensor, scope: Scope) -> Stage:
    """The stage that loads an input; its zero point is subtracted on the way, where it has one."""
    if data in s.inputs:
        return s[s.cache_read(data, scope)]
    s[data].set_scope(scope)
    return s[data]


def keep(stage: Stage, output: Stage, loop: IterVar | None, *, ahead: bool) -> None:
    """Keep what a stage loads throughout a loop of the output, or throughout; where there is a loop, maybe
    with room for what its next iteration needs."""
    if loop is None:
        stage.keep_root()
    else:
        stage.keep_at(output, loop, ahead=ahead)


def bind_threads(stage: Stage, axis: IterVar, count: int) -> tuple[IterVar, IterVar]:
    """Make virtual threads of so many iterations of a loop that come one after the other.

    Returns:
        What is left of the loop, and the one over the threads.
    """
    outer, thread = stage.split(axis, count, names=(axis.name, f"{axis.name[0]}v"))
    stage.bind(thread, thread_axis("vthread"))
    return outer, thread
