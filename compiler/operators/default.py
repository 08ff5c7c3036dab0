"""Schedules for those who bring none: the best plan that an operator's planner knows.

The schedule is made of the public scheduling operators only.
"""

from collections.abc import Mapping
from typing import Any

from accel.compiler.codegen.memory import check_room
from accel.compiler.operators.registry import operator_of
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.blocking import stored
from accel.compiler.plans.candidate import Candidate
from accel.compiler.plans.planner import Planner
from accel.compiler.schedule.schedule import Schedule
from accel.compiler.target.machine import Machine
from accel.core.config import Config


def planner_of(workload: Workload) -> Planner[Any, Any]:
    """How a workload is planned.

    Raises:
        ShapeError: no operator bears its name.
    """
    return operator_of(workload.name).planner


def candidates(
    workload: Workload, config: Config, threads: int | None = None, tile: Mapping[str, int] | None = None
) -> list[Candidate[Any]]:
    """The most promising plans, best first.

    Args:
        workload: what is to be computed.
        config: the machine.
        threads: only plans with so many virtual threads; any number if not given.
        tile: only plans with such sides, in elements by :attr:`~accel.compiler.plans.planner.Side.key`, as
            ``{"tile_m": 64}``; one that is longer than the whole is cut to it.

    Raises:
        ScheduleError: so many threads do not fit, with the largest number that does; a side that there is
            not, or that is no multiple of the machine's blocks; tiles that do not fit; DRAM is too small; or
            the workload is quantized, and the machine has ``post=0``.
    """
    check_room([workload.output], config)
    stored(workload, config)
    return planner_of(workload).candidates(workload, config, threads, tile or {})


def best(workload: Workload, config: Config) -> Candidate[Any]:
    """The plan that a workload gets on a machine, and what it is predicted to take, without compiling it.

    For whoever chooses among several ways to compute the same: ``best(workload, config).prediction.cycles``.
    Asked again for the same layer, it answers from memory.

    Raises:
        ScheduleError: as :func:`candidates`.
    """
    return candidates(workload, config)[0]


def default_schedule(
    workload: Workload,
    machine: Machine,
    threads: int | None = None,
    tile: Mapping[str, int] | None = None,
) -> Schedule:
    """A schedule for a workload: the best of :func:`candidates`.

    Raises:
        ScheduleError: so many threads or such tiles do not fit.
    """
    plan = candidates(workload, machine.config, threads, tile)[0].plan
    return planner_of(workload).schedule(workload, machine, plan)
