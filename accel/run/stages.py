"""Programs as text, at every stage of the compiler."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from accel.assembly import code_lines, stage_label
from accel.base.errors import AccelError, nearest
from accel.compiler.expr.scalar import reads
from accel.compiler.nest.lower import lower
from accel.compiler.nest.nest import Assign, Fill, Nest, Node
from accel.compiler.nest.passes import PASSES, Compilation, lowered
from accel.compiler.nest.text import PREFIX, format_nest, nest_lines
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


def stage_nest(program: Program, stage: str) -> Nest:
    """The loop nest of a program at a stage that has one.

    Raises:
        AccelError: there is no such stage, or the program does not hold what it needs.
    """
    if stage not in NESTS:
        raise AccelError(f"the stage of a nest is {stage!r}; {nearest(stage, NESTS)}")
    return NESTS[stage](program)


class StageLine(NamedTuple):
    """A line of a nest, and what it belongs to.

    Attributes:
        text: as :func:`stage_text` has it.
        names: of the schedule's stage that a statement computes, and of the tensors that it reads where it
            is still an expression; none of loops, conditions and declarations.
        call: the intrinsic, without its prefix; empty where there is none yet.
    """

    text: str
    names: tuple[str, ...] = ()
    call: str = ""


def stage_lines(program: Program, stage: str) -> list[StageLine]:
    """The lines of a program's nest at a stage, which instructions lead to by their provenance: by the stage
    of the schedule, and the call.

    Raises:
        AccelError: as :func:`stage_nest`.
    """
    return [_stage_line(text, node) for text, node in nest_lines(stage_nest(program, stage))]


def _stage_line(text: str, node: Node | None) -> StageLine:
    if isinstance(node, Assign):
        operands = (one.tensor.name for one in reads(node.value))
        return StageLine(text, tuple(dict.fromkeys((node.target.tensor.name, *operands))))
    if isinstance(node, Fill):
        return StageLine(text, (node.region.buffer.name,))
    name = getattr(node, "stage", "")
    return StageLine(text, (name,) if name else (), call_of(text))


def call_of(text: str) -> str:
    """What a statement of a tensorized nest calls, without the prefix; empty if it calls nothing."""
    call = text.strip().partition("(")[0]
    return call.removeprefix(PREFIX) if call.startswith(PREFIX) else ""


def _naive(program: Program) -> Nest:
    return lower(create_schedule(program.computed))


def _scheduled(program: Program) -> Nest:
    return lower(program.schedule())


def _after(name: str, program: Program) -> Nest:
    """What comes out of a pass of the compiler."""
    return lowered(Compilation(schedule=program.schedule(), fold=program.folded), to=name).nest


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


NESTS: dict[str, Callable[[Program], Nest]] = {
    "nest": _naive,
    "scheduled": _scheduled,
    **{one.name: partial(_after, one.name) for one in PASSES},
}
"""The stages at which a program is a loop nest, in order."""


def _nest_text(stage: str, program: Program) -> str:
    return format_nest(stage_nest(program, stage))


STAGES: dict[str, Callable[[Program], str]] = {
    **{name: partial(_nest_text, name) for name in NESTS},
    "streams": streams_text,
    "asm": assembly_text,
}
"""The stages by name, in order."""
