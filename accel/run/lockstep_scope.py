"""The parts of two runs that lockstep compares."""

from collections.abc import Sequence
from enum import Enum

from accel.base.records import replace
from accel.core.config import Config
from accel.core.fault_causes import Cause, Fault, dram_span
from accel.core.isa import Finish, Instruction, Load, Memory, Store, Transfer, Unit
from accel.image.image import Image
from accel.proof.check_program import check_program
from accel.proof.token_check import Race


class Scope(Enum):
    """The parts of two runs that are equal because they do not depend on timing."""

    EVERYTHING = "everything"
    """Nothing depends on timing."""
    ALL_BUT_MEMORY = "all but memory"
    """Data may race, but instructions and cycles do not depend on it."""
    RESULT = "the end and what it leaves"
    """Nothing depends on timing, but it differs. Only the end, memory, tokens and scratchpads are equal."""
    END = "a clean end"
    """Micro-ops or instructions may depend on a race."""

    @property
    def has_cycles(self) -> bool:
        return self in (Scope.EVERYTHING, Scope.ALL_BUT_MEMORY)

    def on_hostile_memory(self, *, ends_well: bool) -> "Scope":
        """Return the scope if memory answers at arbitrary times."""
        return Scope.RESULT if self is Scope.EVERYTHING and ends_well else Scope.END


def scope_of(program: Image) -> Scope:
    """Return the scope that the token check proves."""
    instructions: Sequence[Instruction] = program.instructions
    while True:
        report = check_program(program, instructions)
        if report.unknown_uops or report.race_count > len(report.races):
            return Scope.END
        if any(_affects_execution(program, race) for race in report.races):
            return Scope.END
        removable = [(i, f) for i, f in report.faults if f.cause is not Cause.TOKEN_OVERFLOW]
        if not removable:
            return Scope.ALL_BUT_MEMORY if report.races else Scope.EVERYTHING
        instructions = _without(instructions, removable, program.config)


def _affects_execution(program: Image, race: Race) -> bool:
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
    """Remove faulty instructions, but keep their tokens."""
    remaining = list(instructions)
    for index, fault in faults:
        if fault.cause in _FETCH_CAUSES:
            return [*remaining[:index], Finish()]
        unit = remaining[index].unit
        harmless: Transfer = _CARRIERS[unit]
        if fault.cause in _INDEX_CAUSES:
            harmless = Load(memory=Memory.ACC, x_size=config.acc_depth, y_pad_0=1)
        remaining[index] = replace(
            harmless,
            pop_prev=remaining[index].pop_prev and unit.previous is not None,
            pop_next=remaining[index].pop_next and unit.next is not None,
            push_prev=remaining[index].push_prev and unit.previous is not None,
            push_next=remaining[index].push_next and unit.next is not None,
        )
    return remaining
