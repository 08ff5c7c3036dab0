"""What must be equal when a program runs on simulator and hardware: as much as does not depend on timing."""

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum

from accel.core.config import Config
from accel.core.faults import Cause, Fault, dram_span
from accel.core.isa import Finish, Instruction, Load, Memory, Store, Transfer, Unit
from accel.image.image import Image
from accel.proof.check import Race
from accel.proof.program import check_program


class Scope(Enum):
    """What must be equal in a program, and what a comparison compared."""

    EVERYTHING = "everything"
    """Nothing depends on timing."""
    ALL_BUT_MEMORY = "all but memory"
    """Data may race; what is executed, and when, does not depend on it."""
    RESULT = "the end and what it leaves"
    """Nothing depends on timing, but the hardware's is another: only how the run ends, memory, tokens and
    scratchpads are compared."""
    END = "a clean end"
    """Micro-ops or instructions may depend on a race."""

    @property
    def has_cycles(self) -> bool:
        """Whether events, and so cycles, are compared."""
        return self in (Scope.EVERYTHING, Scope.ALL_BUT_MEMORY)

    def whatever_memory_does(self, *, ends_well: bool) -> "Scope":
        """What of this is compared where the hardware's memory answers when it likes.

        Args:
            ends_well: whether the run does; where it stops depends on time, and so does what it has done.
        """
        return Scope.RESULT if self is Scope.EVERYTHING and ends_well else Scope.END


def scope_of(program: Image) -> Scope:
    """What the token check proves to be independent of timing.

    Instructions at fault do nothing, so the check is made of the program without them; those with a bad
    index somewhere do something.
    """
    instructions: Sequence[Instruction] = program.instructions
    while True:
        report = check_program(program, instructions)
        if report.unknown_uops or report.race_count > len(report.races):
            return Scope.END
        if any(_steers(program, race) for race in report.races):
            return Scope.END
        removable = [(i, f) for i, f in report.faults if f.cause is not Cause.TOKEN_OVERFLOW]
        if not removable:
            return Scope.ALL_BUT_MEMORY if report.races else Scope.EVERYTHING
        instructions = _without(instructions, removable, program.config)


def _steers(program: Image, race: Race) -> bool:
    """Whether instructions or micro-ops may depend on a race."""
    if race.memory != "dram":
        return race.memory == "uop"
    base = program.config.mem_base + program.code_offset
    spans = [(base, base + len(program.code))]
    for instruction in program.instructions:
        if isinstance(instruction, Load) and instruction.memory == Memory.UOP and instruction.x_size:
            spans.append(dram_span(instruction, program.config))
    low, high = race.where
    return any(start <= high and low < stop for start, stop in spans)


_FETCH_CAUSES = (Cause.OPCODE, Cause.EARLY_FINISH, Cause.NO_FINISH)
_INDEX_CAUSES = (Cause.DST_INDEX, Cause.SRC_INDEX, Cause.WGT_INDEX)
_CARRIERS: dict[Unit, Transfer] = {
    Unit.LOAD: Load(memory=Memory.INP),
    Unit.COMPUTE: Load(memory=Memory.UOP),
    Unit.STORE: Store(),
}


def _without(
    instructions: Sequence[Instruction], faults: Sequence[tuple[int, Fault]], config: Config
) -> list[Instruction]:
    """The program without instructions at fault, of which only the tokens stay.

    Fetch hands out none from the first on that it finds wrong. Micro-ops before one with a bad index have
    executed: such an instruction may have written any accumulator.
    """
    kept = list(instructions)
    for index, fault in faults:
        if fault.cause in _FETCH_CAUSES:
            return [*kept[:index], Finish()]
        unit = kept[index].unit
        harmless: Transfer = _CARRIERS[unit]
        if fault.cause in _INDEX_CAUSES:
            harmless = Load(memory=Memory.ACC, x_size=config.acc_depth, y_pad_0=1)
        kept[index] = replace(
            harmless,
            pop_prev=kept[index].pop_prev and unit.previous is not None,
            pop_next=kept[index].pop_next and unit.next is not None,
            push_prev=kept[index].push_prev and unit.previous is not None,
            push_next=kept[index].push_next and unit.next is not None,
        )
    return kept
