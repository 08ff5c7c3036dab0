"""Micro-ops."""

from typing import Any, ClassVar

from accel.core.isa.instruction_fields import Word, field
from accel.core.isa.instruction_set import LOOPS
from accel.core.isa.loop_instructions import AluHigh
from accel.core.scratchpad_specs import Scratchpad


def _index_field(name: str) -> Any:
    """Declare a field wide enough for the operand in every instruction."""
    users: dict[Scratchpad, list[str]] = {}
    classes = [cls for cls in LOOPS if cls is not AluHigh]  # its operands are ALU's
    for cls in classes:
        for operand in cls.OPERANDS:
            if operand.name == name:
                users.setdefault(operand.memory, []).append(cls.OPCODE.name)
    everywhere = len(users) == 1 and len(*users.values()) == len(classes)
    meanings = (f"{pad} element" + ("" if everywhere else f" ({', '.join(u)})") for pad, u in users.items())
    return field(lambda config: max(pad.address_bits(config) for pad in users), " or ".join(meanings))


class MicroOp(Word):
    """One step of GEMM, MAC or ALU: the indices of its operands before the loops add their factors."""

    BITS: ClassVar[int] = 32

    dst: int = _index_field("dst")
    src: int = _index_field("src")
    wgt: int = _index_field("wgt")
