"""SET changes settings of a unit."""

from enum import IntEnum
from typing import ClassVar

from accel.core.isa.field_widths import (
    MEMORY_ID_BITS,
    OPCODE_BITS,
    STEP_BITS,
    TABLE_UNSIGNED_AT,
    TAPS_BITS,
)
from accel.core.isa.instruction_base import Instruction
from accel.core.isa.instruction_fields import field
from accel.core.isa.opcodes import MEMORY_NAMES, Memory, Opcode
from accel.core.requantize import (
    ADD_MULTIPLIER_BITS,
    ADD_OFFSET_BITS,
    ADD_SHIFT_BITS,
    MAX_ADD_SHIFT,
    RESULT_BITS,
)
from accel.core.units import Unit


class Set(Instruction):
    """Change a setting of a unit for the instructions after it, until the next SET of the same memory.

    The memory id selects the setting and the further fields. It occupies the same bits as in a LOAD. The
    compute unit reports an unknown id as ``memory-id``. A SET starts when its unit is empty and retires in
    the next cycle, after which the unit's next instruction starts. At the start of a run all settings are
    zero.
    """

    OPCODE: ClassVar[Opcode] = Opcode.SET
    REQUIRES: ClassVar[str] = "post"
    UNIT: ClassVar[Unit] = Unit.COMPUTE
    """The unit that executes it."""
    opcode: int = field(OPCODE_BITS, "operation", enum=Opcode, default=Opcode.SET)
    memory: int = field(MEMORY_ID_BITS, "selects the setting", enum=Memory)

    @property
    def unit(self) -> Unit:
        return self.UNIT

    @property
    def mnemonic(self) -> str:
        return f"SET.{MEMORY_NAMES.get(self.memory, f'MEM{self.memory}')}"


class SetBytes(Set):
    """The fields that SET.INP and SET.WGT share."""

    UNIT: ClassVar[Unit] = Unit.LOAD
    zero: int = field(9, "zero point, subtracted from each byte", signed=True)
    unsigned: bool = field(1, "bytes are uint8; otherwise int8", default=False)

    @property
    def byte_range(self) -> tuple[int, int]:
        return (0, 255) if self.unsigned else (-128, 127)


class SetInp(SetBytes):
    """Set the zero point and the type of the bytes that LOAD.INP reads.

    LOAD.INP subtracts ``zero`` from each byte, which is a uint8 with ``unsigned``, otherwise an int8. The
    differences have 9 bits. For example, with ``zero=128 unsigned=1`` a byte of 130 becomes 2. Pads stay
    zero, which stands for ``zero`` in the tensor. ``zero`` must be a value of the byte type.
    """

    MEMORY: ClassVar[IntEnum | None] = Memory.INP
    memory: int = field(MEMORY_ID_BITS, "selects the setting", enum=Memory, default=Memory.INP)


class SetWgt(SetBytes):
    """Set the zero point and the type of the bytes that LOAD.WGT reads.

    LOAD.WGT subtracts ``zero`` from each byte, as LOAD.INP does. Both operands of a product may then be
    activations. For example, with ``zero=-3 unsigned=0`` a byte of 5 becomes 8. Pads stay zero.
    """

    MEMORY: ClassVar[IntEnum | None] = Memory.WGT
    REQUIRES: ClassVar[str] = "wgt_zero"
    memory: int = field(MEMORY_ID_BITS, "selects the setting", enum=Memory, default=Memory.WGT)


class SetAcc(Set):
    """Set the type of the bytes that LOAD.ACC_8BIT reads, and the taps of depthwise MACs.

    LOAD.ACC_8BIT zero-extends bytes with ``unsigned`` and otherwise sign-extends them. A depthwise MAC
    multiplies ``taps`` elements of inp, ``step`` apart. It reads all of them in one cycle, so each tap needs
    its own bank of inp: ``taps * gcd(step, inp_banks)`` must be at most ``inp_banks``. There are also at most
    ``block_in`` taps. For example, four banks allow four taps with an odd step, two taps with step 2 or 6,
    and one tap with step 4.
    """

    MEMORY: ClassVar[IntEnum | None] = Memory.ACC
    memory: int = field(MEMORY_ID_BITS, "selects the setting", enum=Memory, default=Memory.ACC)
    unsigned: bool = field(1, "bytes of ACC_8BIT are uint8; otherwise int8", default=False)
    taps: int = field(TAPS_BITS, "inp elements that a micro-op of a depthwise MAC multiplies", "inp elements")
    step: int = field(STEP_BITS, "distance from one tap to the next", "inp elements")

    @property
    def reach(self) -> int:
        """Distance in inp elements from the first tap to the last."""
        return max(0, self.taps - 1) * self.step


class SetOut(Set):
    """Set the requantization of STORE.REQ, STORE.ADD and STORE.MUL, and a part of STORE.ADD's addition.

    ``zero`` is added after rounding, then the result is clamped to ``low`` and ``high``. If ``low > high``
    the result is ``high``. The fields from ``left_zero`` on, and those of SET.SUM, belong to STORE.ADD's
    addition and to STORE.MUL's multiplication.
    """

    MEMORY: ClassVar[IntEnum | None] = Memory.OUT
    PART: ClassVar[int | None] = 0
    UNIT: ClassVar[Unit] = Unit.STORE
    memory: int = field(MEMORY_ID_BITS, "selects the setting", enum=Memory, default=Memory.OUT)
    part: bool = field(1, "0 selects SET.OUT", default=False)
    zero: int = field(RESULT_BITS, "zero point of the requantized value, added after rounding", signed=True)
    low: int = field(RESULT_BITS, "least result", signed=True)
    high: int = field(RESULT_BITS, "greatest result", signed=True)
    left_zero: int = field(
        RESULT_BITS, "STORE.ADD, STORE.MUL: subtracted from the requantized value", signed=True
    )
    right_zero: int = field(RESULT_BITS, "STORE.ADD, STORE.MUL: subtracted from the residual", signed=True)
    unsigned: bool = field(1, "STORE.ADD, STORE.MUL: the residual is uint8; otherwise int8", default=False)
    offset: int = field(
        ADD_OFFSET_BITS, "STORE.ADD, STORE.MUL: added to the sum of the products", signed=True
    )
    shift: int = field(
        ADD_SHIFT_BITS, f"STORE.ADD, STORE.MUL: right shift of that sum, at most {MAX_ADD_SHIFT}", "bits"
    )
    table_unsigned: bool = field(
        1,
        "STORE.ADD and STORE.MUL: the bytes of a table are uint8; otherwise int8",
        default=False,
        at=TABLE_UNSIGNED_AT,
        requires="tab_bytes",
    )


class SetSum(Set):
    """Set the multipliers, the zero point and the bounds of STORE.ADD's sums and of STORE.MUL's products.

    STORE.ADD and STORE.MUL describe the formulas. If ``low > high`` the result is ``high``.
    """

    MEMORY: ClassVar[IntEnum | None] = Memory.OUT
    PART: ClassVar[int | None] = 1
    UNIT: ClassVar[Unit] = Unit.STORE
    memory: int = field(MEMORY_ID_BITS, "selects the setting", enum=Memory, default=Memory.OUT)
    part: bool = field(1, "1 selects SET.SUM", default=True)
    left_multiplier: int = field(
        ADD_MULTIPLIER_BITS, "multiplier of the requantized value, or of STORE.MUL's product"
    )
    zero: int = field(RESULT_BITS, "zero point of the result, added after rounding", signed=True)
    low: int = field(RESULT_BITS, "least result", signed=True)
    high: int = field(RESULT_BITS, "greatest result", signed=True)
    right_multiplier: int = field(ADD_MULTIPLIER_BITS, "STORE.ADD: multiplier of the residual")

    @property
    def mnemonic(self) -> str:
        return "SET.SUM"
