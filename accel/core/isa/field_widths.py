"""Widths and positions of instruction fields, in bits. VTA's are from its ``hw_spec.h``."""

OPCODE_BITS = 3
MEMORY_ID_BITS = 3
MEMORY_AT = OPCODE_BITS + 4
"""The memory id follows the opcode and the token flags."""
PART_AT = MEMORY_AT + MEMORY_ID_BITS
"""The bit ``part`` distinguishes classes that share a memory id."""
LOOP_BITS = 14
"""``iter_out`` and ``iter_in``."""
SIZE_BITS = 16
"""``y_size``, ``x_size`` and ``x_stride``."""
PAD_BITS = 4
SRAM_BASE_BITS = 16
DRAM_BASE_BITS = 32
ALU_OP_BITS = 3
FIRST_HIGH_OP = 1 << ALU_OP_BITS
"""The first operation of ALU_HIGH, whose opcode is a fourth bit of the operation's number."""
TAPS_BITS = 9
"""Up to 256 taps, one for each column of a wgt element."""
STEP_BITS = 16
HOLD_AT = 58
"""The flag ``hold`` of STOREs: the first bit after ``dram_base``."""
TABLE_AT = HOLD_AT + 1
"""The field ``table`` of STOREs, up to bit 63."""
TABLE_UNSIGNED_AT = 57
"""The flag ``table_unsigned`` of SET.OUT: the first bit after ``unsigned``."""
IMMEDIATE_BITS = 16
"""Signed."""
