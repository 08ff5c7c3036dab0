"""Programs as text, at every stage of the compiler."""

from collections.abc import Callable, Iterator
from functools import partial

from accel.assembly import code_lines, stage_label
from accel.base.errors import AccelError, nearest
from accel.compiler.nest.lower import lower
from accel.compiler.nest.passes import PASSES, Compilation, lowered
from accel.compiler.nest.text import format_nest
from accel.compiler.schedule.schedule import create_schedule
from accel.core.isa import Unit, format_instruction
from accel.core.token_rules import pops, pushes
from accel.run.program import Program

_SHORT = {Unit.FETCH: "fetch", Unit.LOAD: "ld", Unit.COMPUTE: "ex", Unit.STORE: "st"}
"""The units as literature names their stages."""


def stage_text(program: Program, stage: str) -> str:
    """A program at a stage.

    Raises:
        AccelError: there is no such stage, or the program does not hold what it needs.
    """
    if stage not in STAGES:
        raise AccelError(f"the stage is {stage!r}; {nearest(stage, STAGES)}")
    return STAGES[stage](program)


def _nest(program: Program) -> str:
    return format_nest(lower(create_schedule(program.computed)))


def _scheduled(program: Program) -> str:
    return format_nest(lower(program.schedule()))


def _after(name: str, program: Program) -> str:
    """What comes out of a pass of the compiler."""
    return format_nest(lowered(Compilation(schedule=program.schedule(), fold=program.folded), to=name).nest)


def streams_text(program: Program) -> str:
    """Every instruction with the tokens that it waits for and sends, and the stage of the schedule that it
    belongs to, in program order."""
    return "".join(line + "\n" for line in _stream_lines(program))


def _stream_lines(program: Program) -> Iterator[str]:
    counts = dict.fromkeys(Unit, 0)
    for index, instruction in enumerate(program.instructions):
        unit = instruction.unit
        name = _SHORT[unit]
        for counter in pops(instruction):
            yield f"{name}.pop_dep_from({_SHORT[counter.source]})"
        what = format_instruction(instruction).split("  <")[0].split("  >")[0]
        said = stage_label(program.provenance, index) + " ".join(what.split())
        yield f"{f'{name}.perform_action({name}{counts[unit]})':<28}  # {said}"
        counts[unit] += 1
        for counter in pushes(instruction):
            yield f"{name}.push_dep_to({_SHORT[counter.target]})"


def assembly_text(program: Program) -> str:
    """The instructions, one per line with its number, and what each does."""
    return "".join(line + "\n" for line in code_lines(program))


STAGES: dict[str, Callable[[Program], str]] = {
    "nest": _nest,
    "scheduled": _scheduled,
    **{one.name: partial(_after, one.name) for one in PASSES},
    "streams": streams_text,
    "asm": assembly_text,
}
"""The stages by name, in order."""
