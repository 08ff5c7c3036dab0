"""Schedules of max pooling from plans: tiles of the output, all of whose windows lie in the accumulators.

for no, oo, yo, xo: tiles of the output
for ov or yv in vthread(2):
all that the tile's windows see
maxima of rows, in place if no two windows start at the same element
maxima of those, copy out
"""

from dataclasses import dataclass
from typing import Literal

from accel.compiler.ops.workload import Workload
from accel.compiler.plans.blocking import bind_threads, tensorize_elements
from accel.compiler.schedule.schedule import Schedule, create_schedule
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
    """

    channels: int
    rows: int
    columns: int
    threads: int
    thread_axis: PoolThreadAxis


def pool_schedule(workload: Workload, machine: Machine, plan: PoolPlan) -> Schedule:
    """The schedule of a plan."""
    config = machine.config
    s = create_schedule(workload.output)
    done = s[s.cache_write(workload.output, machine.acc_buffer)]
    across = [stage for stage in s.stages if stage.name == "rows"]
    for stage in across:
        stage.set_scope(machine.acc_buffer)
    inputs = s[s.cache_read(s.tensor("data"), machine.acc_buffer)]
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
    for stage in (done, *across, inputs):
        stage.compute_at(output, loops[-1])
    for stage in (*across, done):
        tensorize_elements(stage, machine)
    return s
