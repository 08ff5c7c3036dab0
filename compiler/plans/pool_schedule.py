"""Schedules of max pooling from plans: tiles of the output, all of whose windows lie in the accumulators.

for no, oo, yo, xo: tiles of the output
for ov or yv in vthread(2):
all that the tile's windows see
maxima of rows, in place if no two windows start at the same element
maxima of those, copy out

The compute unit loads what windows see into the accumulators; or the load unit does, into ``inp_buffer``, and
products with an identity matrix bring it into the accumulators. These can put it anywhere, so elements that
are a stride apart come to lie side by side: maxima can take the place of those that no other window needs,
and be stored from there.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from accel.compiler.ops.pool import ROWS
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.blocking import bind_threads, split_blocks, tensorize_elements
from accel.compiler.schedule.schedule import Schedule, Stage, create_schedule
from accel.compiler.target.machine import Machine

PoolThreadAxis = Literal["channels", "rows"]


@dataclass(frozen=True, kw_only=True)
class PoolPlan:
    """How max pooling is tiled.

    Attributes:
        channels: blocks of channels in a tile of the output.
        rows, columns: of the output in a tile; a tile is of one block of the batch.
        threads: virtual threads.
        thread_axis: tiles side by side in which direction they run along.
        products: whether products with an identity matrix bring elements into the accumulators.
    """

    channels: int
    rows: int
    columns: int
    threads: int
    thread_axis: PoolThreadAxis
    products: bool = False


def pool_schedule(workload: Workload, machine: Machine, plan: PoolPlan) -> Schedule:
    """The schedule of a plan."""
    config = machine.config
    s = create_schedule(workload.output)
    done = s[s.cache_write(workload.output, machine.acc_buffer)]
    brought = _by_products(s, workload, machine) if plan.products else _by_the_compute_unit(s, machine)
    output = s[workload.output]
    n, o, y, x = output.axis
    no, oo, yo, xo, *within = output.tile(
        n, o, y, x, config.batch, plan.channels * config.block_out, plan.rows, plan.columns
    )
    loops = [no, oo, yo, xo]
    if plan.threads > 1:
        threaded = oo if plan.thread_axis == "channels" else yo
        outer, thread = bind_threads(output, threaded, plan.threads)
        loops[loops.index(threaded)] = outer
        loops.append(thread)
    output.reorder(*loops, *within)
    maxima = [*brought.across, done]
    for stage in (*maxima, *brought.copies, brought.inputs):
        stage.compute_at(output, loops[-1])
    for stage in brought.copies:
        _multiplied(stage, machine)
    for stage in maxima:
        tensorize_elements(stage, machine)
    return s


class _Brought(NamedTuple):
    """Stages in front of the last maxima.

    Attributes:
        inputs: what the machine loads.
        copies: of it, by products, in the accumulators.
        across: maxima of rows.
    """

    inputs: Stage
    copies: list[Stage]
    across: list[Stage]


def _by_the_compute_unit(s: Schedule, machine: Machine) -> _Brought:
    across = [stage for stage in s.stages if stage.name == ROWS]
    for stage in across:
        stage.set_scope(machine.acc_buffer)
    return _Brought(s[s.cache_read(s.tensor("data"), machine.acc_buffer)], [], across)


def _by_products(s: Schedule, workload: Workload, machine: Machine) -> _Brought:
    """Phases of rows and columns, as far apart as windows, are stages of their own."""
    down, right = workload.parameters["stride"]
    data = s.tensor("data")
    across = [s[phase] for phase in s.split_phases(ROWS, 2, down)]
    copies = [part for phase in s.split_phases(data, 3, right) for part in s.split_phases(phase, 2, down)]
    inputs = s[s.cache_read(data, machine.inp_buffer)]
    stages = [stage for stage in s.stages if stage.tensor in copies]
    unit = None
    for stage in stages:
        block = min(machine.config.block_out, stage.axis[1].extent)
        unit = stage.multiply_identity(stage.axis[1], block, unit=unit)
    assert unit is not None
    s[s.cache_read(unit, machine.wgt_buffer)].compute_root()
    for stage in (*stages, *across):
        stage.set_scope(machine.acc_buffer)
    return _Brought(inputs, stages, across)


def _multiplied(stage: Stage, machine: Machine) -> None:
    """Have the GEMM core copy a stage into the accumulators."""
    (c,) = stage.reduce_axis
    others = stage.axis[2:]
    blocks, inside = split_blocks(stage, machine.config)
    stage.reorder(*blocks, *others, *inside, c)
    stage.tensorize(inside[0], machine.gemm)
