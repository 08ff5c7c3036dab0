"""Schedules of max pooling from plans.

With 2 threads along rows, a schedule has these loops::

    for no, oo, yo, xo:                 # tiles of the output
        for yv in vthread(2):
            load the part of the input that the tile's windows need
            maxima across rows of windows, in place if no two windows start at the same element
            maxima of those, store

The compute unit loads the input into accumulators. Alternatively the load unit loads it into ``inp``, and
products with an identity matrix copy it into accumulators, ordered by ``StridePhases``.
"""

from typing import NamedTuple

from accel.compiler.ops.pool2d import ROWS
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.pool_plan import PoolPlan
from accel.compiler.plans.schedule_blocking import bind_threads, split_blocks, tensorize_elements
from accel.compiler.schedule.schedule import Schedule, Stage, create_schedule
from accel.compiler.target.machine import Machine


def pool_schedule(workload: Workload, machine: Machine, plan: PoolPlan) -> Schedule:
    """Return the schedule of a plan."""
    config = machine.config
    s = create_schedule(workload.output)
    done = s[s.cache_write(workload.output, machine.acc_buffer)]
    sources = _copy_by_products(s, workload, machine) if plan.identity_products else _load(s, machine)
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
    maxima = [*sources.across, done]
    for stage in (*maxima, *sources.copies, sources.inputs):
        stage.compute_at(output, loops[-1])
    for stage in sources.copies:
        _tensorize_product(stage, machine)
    for stage in maxima:
        tensorize_elements(stage, machine)
    return s


class _Sources(NamedTuple):
    """The stages before the last maxima."""

    inputs: Stage
    copies: list[Stage]
    across: list[Stage]


def _load(s: Schedule, machine: Machine) -> _Sources:
    across = [stage for stage in s.stages if stage.name == ROWS]
    for stage in across:
        stage.set_scope(machine.acc_buffer)
    return _Sources(s[s.cache_read(s.tensor("data"), machine.acc_buffer)], [], across)


def _copy_by_products(s: Schedule, workload: Workload, machine: Machine) -> _Sources:
    """Copy elements by products, in a stage for each phase of rows and columns."""
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
    return _Sources(inputs, stages, across)


def _tensorize_product(stage: Stage, machine: Machine) -> None:
    (c,) = stage.reduce_axis
    others = stage.axis[2:]
    blocks, inside = split_blocks(stage, machine.config)
    stage.reorder(*blocks, *others, *inside, c)
    stage.tensorize(inside[0], machine.gemm)
