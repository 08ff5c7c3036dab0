"""The base class of instructions, FINISH, and unknown words."""

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, TypeVar

from accel.base.records import replace
from accel.core.isa.field_widths import OPCODE_BITS
from accel.core.isa.instruction_fields import field
from accel.core.isa.opcodes import Opcode
from accel.core.units import Unit


@dataclass(frozen=True, kw_only=True, slots=True)
class Instruction:
    """The fields that all instructions share: an opcode and four token flags.

    *Previous* and *next* are the neighbours in the chain load, compute, store.
    """

    BITS: ClassVar[int] = 128
    OPCODE: ClassVar[Opcode]
    MEMORY: ClassVar[IntEnum | None] = None
    """The memory id that selects this class among those of the opcode."""
    PART: ClassVar[int | None] = None
    """The field ``part`` that selects this class among those of the memory id."""
    REQUIRES: ClassVar[str] = ""
    """The configuration field that is not 0 on machines that have it, or empty if all have it."""

    opcode: int = field(OPCODE_BITS, "operation", enum=Opcode)
    pop_prev: bool = field(1, "wait for a token from the previous unit (RAW)", default=False)
    pop_next: bool = field(1, "wait for a token from the next unit (WAR)", default=False)
    push_prev: bool = field(1, "push a token to the previous unit when retiring (WAR)", default=False)
    push_next: bool = field(1, "push a token to the next unit when retiring (RAW)", default=False)

    @property
    def unit(self) -> Unit:
        raise NotImplementedError

    @property
    def mnemonic(self) -> str:
        raise NotImplementedError


InstructionT = TypeVar("InstructionT", bound=Instruction)

TOKEN_FLAGS = ("pop_prev", "pop_next", "push_prev", "push_next")


@dataclass(frozen=True, kw_only=True, slots=True)
class Finish(Instruction):
    """End the program. FINISH must be the last instruction and may stand nowhere else.

    The compute unit executes it and obeys its token flags. The run ends when FINISH has retired, all
    queues are empty, all units are idle and all writes are complete. Tokens may be left over.
    """

    OPCODE: ClassVar[Opcode] = Opcode.FINISH
    opcode: int = field(OPCODE_BITS, "operation", enum=Opcode, default=Opcode.FINISH)

    @property
    def unit(self) -> Unit:
        return Unit.COMPUTE

    @property
    def mnemonic(self) -> str:
        return "FINISH"


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown(Instruction):
    """A word with an opcode that the machine lacks. The fetch unit stops the run at it."""

    @property
    def unit(self) -> Unit:
        return Unit.FETCH

    @property
    def mnemonic(self) -> str:
        return f"UNKNOWN{self.opcode}"


def without_tokens(instruction: InstructionT) -> InstructionT:
    """Clear all token flags. Equal results have equal effects on memory."""
    if instruction.pop_prev or instruction.pop_next or instruction.push_prev or instruction.push_next:
        return replace(instruction, **dict.fromkeys(TOKEN_FLAGS, False))
    return instruction
