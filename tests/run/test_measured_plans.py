"""Plans ranked by simulated cycles."""

from typing import Any

import pytest

import accel
from accel.base.errors import ScheduleError
from accel.base.records import replace
from accel.compiler.mappings.mapping_choice import MappingChoice, choose_mapping
from accel.compiler.plans.plan_candidate import Candidate
from accel.compiler.plans.plan_search import TIE_SHARE
from accel.run.measured_plans import measure_plans
from tests.expect import refused

M = accel.machine("vta", batch=16, bus_bits=256)
WORKLOAD = accel.gemm(100, 100, 100, shift=6)


def kinds(candidates: list[Candidate[Any]]) -> set[tuple[str, str, str, bool]]:
    plans = (one.plan for one in candidates)
    return {(plan.thread_axis, plan.outer, plan.resident, plan.prefetch) for plan in plans}


@pytest.fixture(scope="module")
def choice() -> MappingChoice:
    return choose_mapping(WORKLOAD, M.config)


def test_plans_are_ranked_by_simulated_cycles(choice: MappingChoice) -> None:
    done: list[tuple[int, int]] = []
    found = measure_plans(choice, M, 12, lambda at, of: done.append((at, of)))
    assert done == [(n, 12) for n in range(12)]
    cycles = [one.simulated_cycles for one in found.candidates[:12]]
    assert None not in cycles
    limit = min(cycles) * (1 + TIE_SHARE)  # type: ignore[type-var, operator]
    close = [one for one in found.candidates[:12] if one.simulated_cycles <= limit]  # type: ignore[operator]
    assert found.candidates[: len(close)] == close
    assert close[0].read_bytes == min(one.read_bytes for one in close)
    rest = cycles[len(close) :]
    assert rest == sorted(rest)  # type: ignore[type-var]
    assert all(one.simulated_cycles is None for one in found.candidates[12:])
    plain = {id(one.plan) for one in choice.candidates}
    assert {id(one.plan) for one in found.candidates} == plain


def test_simulated_cycles_are_those_of_the_programs(choice: MappingChoice) -> None:
    found = measure_plans(choice, M, 6).candidates[0]
    program = accel.build(WORKLOAD, M, measure=6)
    result = program.run()
    assert result.cycles == found.simulated_cycles
    assert not result.mismatches
    assert result.cycles < accel.build(WORKLOAD, M).run().cycles * (1 + TIE_SHARE)


def test_half_of_the_plans_are_of_other_kinds(choice: MappingChoice) -> None:
    found = measure_plans(choice, M, 16).candidates[:16]
    best = choice.candidates[:8]
    assert {id(one.plan) for one in best} < {id(one.plan) for one in found}
    assert len(kinds(found)) > len(kinds(choice.candidates[:16]))


def test_a_limit_above_the_number_of_plans(choice: MappingChoice) -> None:
    few = replace(choice, candidates=choice.candidates[:3])
    assert len(measure_plans(few, M, 50).candidates) == 3


def test_a_plan_that_does_not_fit_is_left_out() -> None:
    choice = choose_mapping(accel.gemm(512, 512, 64), M.config)
    first = choice.candidates[0]
    large = replace(first, plan=replace(first.plan, rows=4096, columns=4096))
    found = measure_plans(replace(choice, candidates=[large, *choice.candidates[:2]]), M, 3)
    assert [one.simulated_cycles is not None for one in found.candidates] == [True, True]
    with pytest.raises(ScheduleError):
        measure_plans(replace(choice, candidates=[large]), M, 3)


def test_targets_without_plans_are_refused() -> None:
    steps = accel.build(WORKLOAD, M).schedule().steps
    with refused(ScheduleError, "measure is 0; it must be a positive integer"):
        accel.build(WORKLOAD, M, measure=0)
    with refused(
        ScheduleError,
        "a number of plans to measure and steps are given, and the steps are one plan; give one of them",
    ):
        accel.build(WORKLOAD, M, measure=2, steps=steps)
    schedule = accel.build(WORKLOAD, M).schedule()
    with refused(
        ScheduleError,
        "a number of plans to measure is given with a schedule; only a workload takes it",
    ):
        accel.build(schedule, M, measure=2)
