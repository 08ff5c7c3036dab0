"""The instruction set: classes, bit layout, encoder and decoder, text form.

Encoder, decoder, text form and manual follow from the declaration of each class.
"""

from accel.core.alu_operations import AluOp
from accel.core.isa.codec import (
    UopArray,
    add_to_field,
    check_encodable,
    decode,
    decode_uops,
    encode,
    encode_uops,
)
from accel.core.isa.field_widths import PAD_BITS, PART_AT, SIZE_BITS
from accel.core.isa.instruction_base import (
    TOKEN_FLAGS,
    Finish,
    Instruction,
    Unknown,
    changed,
    without_tokens,
)
from accel.core.isa.instruction_fields import Slot, class_slots, field_specs
from accel.core.isa.instruction_set import (
    CLASSES,
    LOOPS,
    PARTED,
    SETTINGS,
    TRANSFERS,
    VARIANTS,
    class_of,
    classes_of,
    exists,
    loops_of,
    memory_names,
    routes_of,
    setting_of,
    store_operands_of,
    variants_of,
)
from accel.core.isa.instruction_text import format_instruction, mnemonics, parse_instruction
from accel.core.isa.loop_instructions import Alu, AluHigh, Gemm, Loops, Mac, Products, alu_of
from accel.core.isa.micro_op import MicroOp
from accel.core.isa.opcodes import Finishing, Memory, Opcode, OwnMemory
from accel.core.isa.operands import Operand, StoreOperand
from accel.core.isa.set_instructions import Set, SetAcc, SetBytes, SetInp, SetOut, SetSum, SetWgt
from accel.core.isa.transfer_instructions import (
    Load,
    LoadPar,
    LoadRes,
    LoadTab,
    Store,
    StoreAcc,
    StoreAdd,
    StoreMul,
    StoreReq,
    Transfer,
)
from accel.core.units import Unit

__all__ = [
    "CLASSES",
    "LOOPS",
    "PAD_BITS",
    "PARTED",
    "PART_AT",
    "SETTINGS",
    "SIZE_BITS",
    "TOKEN_FLAGS",
    "TRANSFERS",
    "VARIANTS",
    "Alu",
    "AluHigh",
    "AluOp",
    "Finish",
    "Finishing",
    "Gemm",
    "Instruction",
    "Load",
    "LoadPar",
    "LoadRes",
    "LoadTab",
    "Loops",
    "Mac",
    "Memory",
    "MicroOp",
    "Opcode",
    "Operand",
    "OwnMemory",
    "Products",
    "Set",
    "SetAcc",
    "SetBytes",
    "SetInp",
    "SetOut",
    "SetSum",
    "SetWgt",
    "Slot",
    "Store",
    "StoreAcc",
    "StoreAdd",
    "StoreMul",
    "StoreOperand",
    "StoreReq",
    "Transfer",
    "Unit",
    "Unknown",
    "UopArray",
    "add_to_field",
    "alu_of",
    "changed",
    "check_encodable",
    "class_of",
    "class_slots",
    "classes_of",
    "decode",
    "decode_uops",
    "encode",
    "encode_uops",
    "exists",
    "field_specs",
    "format_instruction",
    "loops_of",
    "memory_names",
    "mnemonics",
    "parse_instruction",
    "routes_of",
    "setting_of",
    "store_operands_of",
    "variants_of",
    "without_tokens",
]
