"""Programs as text, at every stage of the compiler."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from accel.assembly import code_lines, stage_label
from accel.base.errors import AccelError, nearest
from accel.compiler.codegen.compile_schedule import reorder_effects
from accel.compiler.codegen.reorder_passes import PassEffect
from accel.compiler.expr.scalar_expressions import reads
from accel.compiler.nest.loop_nest_lowering import lower
from accel.compiler.nest.nest import Assign, Nest, Node, ZeroRegion
from accel.compiler.nest.nest_passes import PASSES, Compilation, run_passes
from accel.compiler.nest.nest_text import PREFIX, format_nest, nest_lines
from accel.compiler.schedule.schedule import create_schedule
from accel.core.isa import Unit, format_instruction
from accel.core.token_rules import pops, pushes
from accel.run.rebuilt_source import Compiled

_SHORT_NAMES = {Unit.FETCH: "fetch", Unit.LOAD: "ld", Unit.COMPUTE: "ex", Unit.STORE: "st"}
"""Names in the literature on decoupled access-execute."""


def stage_text(program: Compiled, stage: str) -> str:
    """Return a program's text at a stage.

    Raises:
        AccelError: unknown stage, or no source in the program.
    """
    if stage not in STAGES:
        raise AccelError(f"the stage is {stage!r}; {nearest(stage, STAGES)}")
    return STAGES[stage](program)


def stage_nest(program: Compiled, stage: str) -> Nest:
    """Return the loop nest at a stage.

    Raises:
        AccelError: as :func:`stage_text`.
    """
    if stage not in NESTS:
        raise AccelError(f"the stage is {stage!r}, of a loop nest; {nearest(stage, NESTS)}")
    return NESTS[stage](program)


class StageLine(NamedTuple):
    """A line of a nest, and its stage of the schedule.

    Attributes:
        names: the computed stage and the tensors that it reads. Empty for loops, conditions and declarations.
        call: the intrinsic without its prefix, or empty.
    """

    text: str
    names: tuple[str, ...] = ()
    call: str = ""


def stage_lines(program: Compiled, stage: str) -> list[StageLine]:
    """Return the lines of a nest. Provenance refers to their stage and call.

    Raises:
        AccelError: as :func:`stage_text`.
    """
    return [_stage_line(text, node) for text, node in nest_lines(stage_nest(program, stage))]


def _stage_line(text: str, node: Node | None) -> StageLine:
    if isinstance(node, Assign):
        operands = (one.tensor.name for one in reads(node.value))
        return StageLine(text, tuple(dict.fromkeys((node.target.tensor.name, *operands))))
    if isinstance(node, ZeroRegion):
        return StageLine(text, (node.region.buffer.name,))
    name = getattr(node, "stage", "")
    return StageLine(text, (name,) if name else (), call_of(text))


def call_of(text: str) -> str:
    """Return the called intrinsic without the prefix, or empty."""
    call = text.strip().partition("(")[0]
    return call.removeprefix(PREFIX) if call.startswith(PREFIX) else ""


def _naive(program: Compiled) -> Nest:
    return lower(create_schedule(program.computed))


def _scheduled(program: Compiled) -> Nest:
    return lower(program.schedule())


def _after(name: str, program: Compiled) -> Nest:
    return run_passes(Compilation(schedule=program.schedule(), folds_bias=program.folded), to=name).nest


def program_pass_effects(program: Compiled) -> list[PassEffect]:
    """Compile again, and return the effect of each reorder pass.

    Raises:
        AccelError: the program has no schedule.
    """
    return reorder_effects(
        program.schedule(), program.config, fold=program.folded, without=program.passes_off
    )


def passes_text(program: Compiled) -> str:
    """List the reorder passes in order, with effects and reasons."""
    effects = program_pass_effects(program)
    width = max(len(one.name) for one in effects)
    return "".join(f"{one.name:<{width}}  {one}\n{'':<{width}}  {one.reason}\n" for one in effects)


def streams_text(program: Compiled) -> str:
    """List the instructions with tokens and stages."""
    return "".join(line + "\n" for line in _stream_lines(program))


def _stream_lines(program: Compiled) -> Iterator[str]:
    counts = dict.fromkeys(Unit, 0)
    for index, instruction in enumerate(program.instructions):
        unit = instruction.unit
        name = _SHORT_NAMES[unit]
        for counter in pops(instruction):
            yield f"{name}.pop_dep_from({_SHORT_NAMES[counter.source]})"
        text = format_instruction(instruction).split("  <")[0].split("  >")[0]
        comment = stage_label(program.provenance, index) + " ".join(text.split())
        yield f"{f'{name}.perform_action({name}{counts[unit]})':<28}  # {comment}"
        counts[unit] += 1
        for counter in pushes(instruction):
            yield f"{name}.push_dep_to({_SHORT_NAMES[counter.target]})"


def assembly_text(program: Compiled) -> str:
    """List the instructions with numbers and effects."""
    return "".join(line + "\n" for line in code_lines(program))


NESTS: dict[str, Callable[[Compiled], Nest]] = {
    "nest": _naive,
    "scheduled": _scheduled,
    **{one.name: partial(_after, one.name) for one in PASSES},
}
"""Stages of loop nests, in order."""


def _nest_text(stage: str, program: Compiled) -> str:
    return format_nest(stage_nest(program, stage))


STAGES: dict[str, Callable[[Compiled], str]] = {
    **{name: partial(_nest_text, name) for name in NESTS},
    "passes": passes_text,
    "streams": streams_text,
    "asm": assembly_text,
}
"""Stages by name, in order."""
