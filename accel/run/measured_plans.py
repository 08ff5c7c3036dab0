"""Plans ranked by simulation."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from accel.base.errors import ScheduleError
from accel.base.records import field_names, replace
from accel.compiler.codegen.compile_schedule import compile_schedule
from accel.compiler.mappings.mapping_choice import MappingChoice
from accel.compiler.operators.default_schedule import planner_of
from accel.compiler.plans.plan_candidate import Candidate
from accel.compiler.plans.plan_search import TIE_SHARE
from accel.compiler.target.machine import Machine
from accel.image.image import Image
from accel.sim.timing.timing_model import simulate_timing

PlanProgress = Callable[[int, int], None]
"""Called with numbers of measured and all plans."""


def measure_plans(
    choice: MappingChoice,
    on: Machine,
    most: int,
    progress: PlanProgress | None = None,
    *,
    without: Collection[str] = (),
) -> MappingChoice:
    """Rank the plans of a mapping by simulated cycles.

    Args:
        most: plans to simulate: half the best, half with other resident operands, loop order or threaded
            axis.

    Returns:
        The choice with simulated plans first, by cycles, or by bytes if about equal.
    """
    planner, workload = planner_of(choice.mapping.workload), choice.mapping.workload
    chosen_plans = _choose_plans(choice.candidates, most)
    found: list[Candidate[Any]] = []
    failed: ScheduleError | None = None
    for number, candidate in enumerate(chosen_plans):
        if progress is not None:
            progress(number, len(chosen_plans))
        try:
            schedule = planner.schedule(workload, on, candidate.plan)
            image = compile_schedule(schedule, on.config, without=without)
        except ScheduleError as error:  # the model is wrong
            failed = error
            continue
        found.append(replace(candidate, simulated_cycles=simulated_cycles(image)))
    if failed is not None and not found:
        raise failed
    measured = {id(one) for one in chosen_plans}
    limit = min((one.simulated_cycles or 0 for one in found), default=0) * (1 + TIE_SHARE)

    def order(one: Candidate[Any]) -> tuple[bool, int]:
        cycles = one.simulated_cycles or 0
        return cycles > limit, cycles if cycles > limit else one.read_bytes

    rest = [one for one in choice.candidates if id(one) not in measured]
    return replace(choice, candidates=[*sorted(found, key=order), *rest])


def simulated_cycles(program: Image) -> int:
    """Simulate a program that starts without tokens and ends well."""
    address = program.config.mem_base + program.code_offset
    return simulate_timing(program.instructions, program.config, address=address).cycles


def _choose_plans(candidates: Sequence[Candidate[Any]], most: int) -> list[Candidate[Any]]:
    half = list(range(min(len(candidates), (most + 1) // 2)))
    kinds = {_plan_kind(candidates[number].plan) for number in half}
    other_kinds = []
    for number in range(len(half), len(candidates)):
        kind = _plan_kind(candidates[number].plan)
        if kind not in kinds:
            kinds.add(kind)
            other_kinds.append(number)
    rest = (number for number in range(len(half), len(candidates)) if number not in other_kinds)
    chosen = [*half, *other_kinds, *rest][:most]
    return [candidates[number] for number in sorted(chosen)]


def _plan_kind(plan: Any) -> tuple[Any, ...]:
    values = (getattr(plan, one) for one in field_names(plan))
    return tuple(value for value in values if isinstance(value, str | bool))
