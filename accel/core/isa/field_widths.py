"""Widths and positions of instruction fields on all machines, in bits.

Those of VTA's instructions are from VTA's ``hw_spec.h``.
"""

OPCODE_BITS = 3
MEMORY_ID_BITS = 3
MEMORY_AT = OPCODE_BITS + 4
"""First bit of the memory id, in all instructions that have one: it follows the opcode and the token
flags."""
PART_AT = MEMORY_AT + MEMORY_ID_BITS
"""Position of the bit ``part``, which distinguishes classes that share a memory id."""
LOOP_BITS = 14
"""Bits of ``iter_out`` and ``iter_in``."""
SIZE_BITS = 16
"""Bits of ``y_size``, ``x_size`` and ``x_stride``."""
PAD_BITS = 4
"""Bits of each of the four pads."""
SRAM_BASE_BITS = 16
DRAM_BASE_BITS = 32
ALU_OP_BITS = 3
FIRST_HIGH_OP = 1 << ALU_OP_BITS
"""The first operation of ALU_HIGH. Its opcode is a fourth bit of the operation's number."""
TAPS_BITS = 9
"""Enough for 256 taps: a depthwise MAC has at most one tap for each column of a wgt element."""
STEP_BITS = 16
"""Bits of the distance between taps."""
HOLD_AT = 58
"""Position of the flag ``hold`` of STOREs: the first bit after ``dram_base``."""
TABLE_AT = HOLD_AT + 1
"""Position of the field ``table`` of STOREs, up to bit 63."""
TABLE_UNSIGNED_AT = 57
"""Position of the flag ``table_unsigned`` of SET.OUT: the first bit after ``unsigned``."""
IMMEDIATE_BITS = 16
"""Bits of the second operand of ALU as an immediate, signed."""
