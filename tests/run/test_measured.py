"""Plans by the cycles that they take: the model's ranking, checked by simulation."""

from dataclasses import replace
from typing import Any

import pytest

import accel
from accel.base.errors import ScheduleError
from accel.compiler.mappings.choose import Choice, choose
from accel.compiler.plans.candidate import Candidate
from accel.compiler.plans.search import CLOSE
from accel.run.measured import measured
from tests.expect import refused

M = accel.machine("vta", batch=16, bus_bits=256)
WORKLOAD = accel.gemm(100, 100, 100, shift=6)


def kinds(candidates: list[Candidate[Any]]) -> set[tuple[str, str, str, bool]]:
    plans = (one.plan for one in candidates)
    return {(plan.thread_axis, plan.outer, plan.kept, plan.ahead) for plan in plans}


@pytest.fixture(scope="module")
def choice() -> Choice:
    return choose(WORKLOAD, M.config)


def test_plans_are_ranked_by_what_they_take(choice: Choice) -> None:
    done: list[tuple[int, int]] = []
    found = measured(choice, M, 12, lambda at, of: done.append((at, of)))
    assert done == [(n, 12) for n in range(12)]
    cycles = [one.simulated for one in found.candidates[:12]]
    assert None not in cycles
    limit = min(cycles) * (1 + CLOSE)  # type: ignore[type-var, operator]
    close = [one for one in found.candidates[:12] if one.simulated <= limit]  # type: ignore[operator]
    assert found.candidates[: len(close)] == close
    assert close[0].read_bytes == min(one.read_bytes for one in close)
    rest = cycles[len(close) :]
    assert rest == sorted(rest)  # type: ignore[type-var]
    assert all(one.simulated is None for one in found.candidates[12:])
    plain = {id(one.plan) for one in choice.candidates}
    assert {id(one.plan) for one in found.candidates} == plain


def test_what_is_simulated_is_what_programs_take(choice: Choice) -> None:
    found = measured(choice, M, 6).candidates[0]
    program = accel.build(WORKLOAD, M, measure=6)
    result = program.run()
    assert result.cycles == found.simulated
    assert not result.mismatches
    assert result.cycles < accel.build(WORKLOAD, M).run().cycles * (1 + CLOSE)


def test_half_of_them_are_of_other_kinds(choice: Choice) -> None:
    found = measured(choice, M, 16).candidates[:16]
    best = choice.candidates[:8]
    assert {id(one.plan) for one in best} < {id(one.plan) for one in found}
    assert len(kinds(found)) > len(kinds(choice.candidates[:16]))


def test_more_than_there_are(choice: Choice) -> None:
    few = replace(choice, candidates=choice.candidates[:3])
    assert len(measured(few, M, 50).candidates) == 3


def test_a_plan_that_does_not_fit_is_left_out() -> None:
    choice = choose(accel.gemm(512, 512, 64), M.config)
    first = choice.candidates[0]
    large = replace(first, plan=replace(first.plan, rows=4096, columns=4096))
    found = measured(replace(choice, candidates=[large, *choice.candidates[:2]]), M, 3)
    assert [one.simulated is not None for one in found.candidates] == [True, True]
    with pytest.raises(ScheduleError):
        measured(replace(choice, candidates=[large]), M, 3)


def test_what_cannot_be_measured() -> None:
    steps = accel.build(WORKLOAD, M).schedule().steps
    with refused(ScheduleError, "measure is 0; it must be a positive integer"):
        accel.build(WORKLOAD, M, measure=0)
    with refused(
        ScheduleError, "plans are to be measured, and steps are given, which are one; give one of the two"
    ):
        accel.build(WORKLOAD, M, measure=2, steps=steps)
    schedule = accel.build(WORKLOAD, M).schedule()
    with refused(
        ScheduleError,
        "a number of plans to measure is given with a schedule; that goes with a workload",
    ):
        accel.build(schedule, M, measure=2)
