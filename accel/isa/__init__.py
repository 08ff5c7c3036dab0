"""The instruction set, declared once: classes, bit layout, text form."""

from accel.isa.codec import UopArray, check_encodable, decode, decode_uops, encode, encode_uops
from accel.isa.fields import Slot, class_slots
from accel.isa.instructions import (
    CLASSES,
    Alu,
    AluOp,
    Finish,
    Gemm,
    Instruction,
    Load,
    Loops,
    Memory,
    MicroOp,
    Opcode,
    Store,
    Transfer,
    Unit,
    Unknown,
    field_specs,
)
from accel.isa.text import format_instruction, mnemonics, parse_instruction

__all__ = [
    "CLASSES",
    "Alu",
    "AluOp",
    "Finish",
    "Gemm",
    "Instruction",
    "Load",
    "Loops",
    "Memory",
    "MicroOp",
    "Opcode",
    "Slot",
    "Store",
    "Transfer",
    "Unit",
    "Unknown",
    "UopArray",
    "check_encodable",
    "class_slots",
    "decode",
    "decode_uops",
    "encode",
    "encode_uops",
    "field_specs",
    "format_instruction",
    "mnemonics",
    "parse_instruction",
]
