"""Default schedules: an operator's best plan. They use public scheduling operators only."""

from collections.abc import Mapping
from typing import Any

from accel.compiler.codegen.dram_map import check_room
from accel.compiler.operators.operator_registry import operator_of
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.epilogue_cost import has_store_epilogue
from accel.compiler.plans.plan_candidate import Candidate
from accel.compiler.plans.planner import Planner
from accel.compiler.schedule.schedule import Schedule
from accel.compiler.target.machine import Machine
from accel.core.config import Config


def planner_of(workload: Workload) -> Planner[Any, Any]:
    return operator_of(workload.name).planner


def find_candidates(
    workload: Workload,
    config: Config,
    threads: int | None = None,
    tile: Mapping[str, int] | None = None,
    *,
    quick: bool = False,
) -> list[Candidate[Any]]:
    """See ``Planner.candidates``."""
    check_room([workload.output], config)
    has_store_epilogue(workload, config)
    return planner_of(workload).candidates(workload, config, threads, tile or {}, quick=quick)


def default_schedule(
    workload: Workload,
    machine: Machine,
    threads: int | None = None,
    tile: Mapping[str, int] | None = None,
) -> Schedule:
    plan = find_candidates(workload, machine.config, threads, tile)[0].plan
    return planner_of(workload).schedule(workload, machine, plan)
