"""The fastest of several plans: those that the model ranks best are compiled, and simulated."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from accel.base.errors import ScheduleError
from accel.compiler.codegen.build import compile_schedule
from accel.compiler.mappings.choose import Choice
from accel.compiler.operators.default import planner_of
from accel.compiler.plans.candidate import Candidate
from accel.compiler.plans.search import CLOSE
from accel.compiler.target.machine import Machine
from accel.image.image import Image
from accel.sim.timing.model import simulate_timing

Told = Callable[[int, int], None]
"""Told how many plans are done, and how many there are."""


def measured(choice: Choice, on: Machine, most: int, told: Told | None = None) -> Choice:
    """A choice whose plans are ranked by the cycles that they take, as far as they were simulated.

    The model ranks plans by what it predicts. It goes over tiles and steps, not over instructions, and may be
    some percent off; simulation is exact. Time grows with the number of plans: each costs what compiling one
    does, and a simulation of its timing.

    Args:
        choice: a mapping and the plans of its operator, best first.
        on: the machine.
        most: plans that are simulated at most: the better half of them as they are ranked, the others the
            best ones of other kinds, by what is kept, the order of loops, and what threads run along.
        told: how far it is.

    Returns:
        The same choice, with the plans that were simulated first, by their cycles; of those that are about as
        good as the best the one that reads the fewest bytes.

    Raises:
        ScheduleError: none of them can be compiled.
    """
    planner, workload = planner_of(choice.mapping.workload), choice.mapping.workload
    picked = _picked(choice.candidates, most)
    found: list[Candidate[Any]] = []
    failed: ScheduleError | None = None
    for number, candidate in enumerate(picked):
        if told is not None:
            told(number, len(picked))
        try:
            image = compile_schedule(planner.schedule(workload, on, candidate.plan), on.config)
        except ScheduleError as error:  # the model takes it to fit, and it does not
            failed = error
            continue
        found.append(replace(candidate, simulated=cycles_of(image)))
    if failed is not None and not found:
        raise failed
    looked = {id(one) for one in picked}
    limit = min((one.simulated or 0 for one in found), default=0) * (1 + CLOSE)

    def order(one: Candidate[Any]) -> tuple[bool, int]:
        cycles = one.simulated or 0
        return cycles > limit, cycles if cycles > limit else one.read_bytes

    rest = [one for one in choice.candidates if id(one) not in looked]
    return replace(choice, candidates=[*sorted(found, key=order), *rest])


def cycles_of(program: Image) -> int:
    """The cycles that a program takes which starts without tokens, and ends well; what it computes is left
    out."""
    address = program.config.mem_base + program.code_offset
    return simulate_timing(program.instructions, program.config, address=address).cycles


def _picked(candidates: Sequence[Candidate[Any]], most: int) -> list[Candidate[Any]]:
    """The best ones, and the best of other kinds, in the order in which they are ranked."""
    half = list(range(min(len(candidates), (most + 1) // 2)))
    kinds = {_kind(candidates[number].plan) for number in half}
    others = []
    for number in range(len(half), len(candidates)):
        kind = _kind(candidates[number].plan)
        if kind not in kinds:
            kinds.add(kind)
            others.append(number)
    rest = (number for number in range(len(half), len(candidates)) if number not in others)
    chosen = [*half, *others, *rest][:most]
    return [candidates[number] for number in sorted(chosen)]


def _kind(plan: Any) -> tuple[Any, ...]:
    """What a plan chooses besides sizes."""
    values = (getattr(plan, one.name) for one in fields(plan))
    return tuple(value for value in values if isinstance(value, str | bool))
