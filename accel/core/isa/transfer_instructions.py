"""LOAD and STORE move elements between DRAM and scratchpads."""

from collections.abc import Mapping
from enum import IntEnum
from typing import ClassVar

from accel.core.isa.field_widths import (
    DRAM_BASE_BITS,
    HOLD_AT,
    MEMORY_ID_BITS,
    OPCODE_BITS,
    PAD_BITS,
    SIZE_BITS,
    SRAM_BASE_BITS,
    TABLE_AT,
)
from accel.core.isa.instruction_base import Instruction
from accel.core.isa.instruction_fields import absent, field
from accel.core.isa.opcodes import MEMORY_NAMES, Finishing, Memory, Opcode, OwnMemory
from accel.core.isa.operands import StoreOperand
from accel.core.scratchpad_specs import (
    ACC,
    INP,
    PAR,
    PAR_INDEX_BITS,
    RES,
    TAB,
    TABLE_FIELD_BITS,
    UOP,
    WGT,
    Route,
    filled,
    routes,
)
from accel.core.units import Unit


class Transfer(Instruction):
    """The fields that LOAD and STORE share: a box of ``y_size`` rows of ``x_size`` elements."""

    ROUTES: ClassVar[Mapping[int, Route]]
    """By memory id."""
    FILLS: ClassVar[bool]
    """Whether the instruction writes the scratchpad instead of reading it."""
    OTHERWISE: ClassVar[Unit]
    """The unit that reports an unknown memory id."""
    OPERANDS: ClassVar[tuple[StoreOperand, ...]] = ()
    """Elements of other scratchpads that it reads."""

    memory: int = field(MEMORY_ID_BITS, "scratchpad", enum=Memory)
    sram_base: int = field(SRAM_BASE_BITS, "first scratchpad element", "elements")
    dram_base: int = field(
        DRAM_BASE_BITS, "first DRAM element, counted from the start of the DRAM window", "elements"
    )
    y_size: int = field(SIZE_BITS, "rows in DRAM", "rows")
    x_size: int = field(SIZE_BITS, "elements per row; zero: only pop and push tokens", "elements")
    x_stride: int = field(SIZE_BITS, "distance in DRAM from one row to the next", "elements")
    y_pad_0: int = field(PAD_BITS, "zero rows before the first row", "rows")
    y_pad_1: int = field(PAD_BITS, "zero rows after the last row", "rows")
    x_pad_0: int = field(PAD_BITS, "zero elements before each row", "elements")
    x_pad_1: int = field(PAD_BITS, "zero elements after each row", "elements")

    @property
    def width(self) -> int:
        """Scratchpad elements per row, pads included."""
        return self.x_pad_0 + self.x_size + self.x_pad_1

    @property
    def height(self) -> int:
        """Scratchpad rows, pads included."""
        return self.y_pad_0 + self.y_size + self.y_pad_1

    @property
    def sram_elements(self) -> int:
        """Accessed scratchpad elements."""
        return self.width * self.height if self.x_size else 0

    @property
    def unit(self) -> Unit:
        route = self.route
        return self.OTHERWISE if route is None else route.unit

    @property
    def route(self) -> Route | None:
        """The scratchpad and unit that the memory id selects, or None if it is unknown."""
        return self.ROUTES.get(self.memory)

    @property
    def mnemonic(self) -> str:
        route = self.route
        other = MEMORY_NAMES.get(self.memory, f"MEM{self.memory}")
        return f"{self.OPCODE.name}.{other if route is None else route.name}"


class Load(Transfer):
    """Copy rows from DRAM to consecutive scratchpad elements, with zeros around them.

    ``for y < y_size, x < x_size: sram[sram_base + (y + y_pad_0) * width + x + x_pad_0] = dram[dram_base +
    y * x_stride + x]``, where ``width = x_pad_0 + x_size + x_pad_1``. All other elements of the padded box
    become zero. For example, ``y_size=2 x_size=3 x_stride=8 x_pad_0=1`` reads DRAM elements 0, 1, 2 and 8,
    9, 10 after ``dram_base`` and writes eight scratchpad elements: a zero and three elements, twice.

    The load unit executes LOADs of INP and WGT. The compute unit executes LOADs of UOP, ACC and ACC_8BIT,
    and reports unknown ids. ACC_8BIT sign-extends bytes to int32. ``x_stride`` may be zero or less than
    ``x_size``.

    With ``x_size`` zero, a LOAD or STORE only pops and pushes tokens, and its other fields are ignored and
    not checked. With ``y_size`` zero, the pad rows are still written.
    """

    OPCODE: ClassVar[Opcode] = Opcode.LOAD
    ROUTES: ClassVar[Mapping[int, Route]] = routes(
        filled(Memory.UOP, UOP),
        filled(Memory.INP, INP, set_by=Memory.INP),
        filled(Memory.WGT, WGT, set_by=Memory.WGT),
        filled(Memory.ACC, ACC),
        filled(Memory.ACC_8BIT, ACC, dtype="int8", doc=", sign-extended into acc", set_by=Memory.ACC),
    )
    FILLS: ClassVar[bool] = True
    OTHERWISE: ClassVar[Unit] = Unit.COMPUTE
    opcode: int = field(OPCODE_BITS, "operation", enum=Opcode, default=Opcode.LOAD)


class LoadPar(Load):
    """Copy rows from DRAM to consecutive elements of PAR: a bias and a scale for each channel.

    The store unit executes it. An element has, for each of ``block_out`` channels, an int32 bias and a
    32-bit scale. The low 24 bits of the scale are the multiplier, the high 8 bits the exponent:
    ``multiplier * 2**-exponent``. For example, the word ``0x18800000`` is ``2**23 * 2**-24 = 0.5``.

    LOAD.PAR waits for earlier STOREs that use the elements it overwrites. Later STOREs wait until it has
    written their elements. Pads must be zero.
    """

    MEMORY: ClassVar[IntEnum | None] = OwnMemory.PAR
    REQUIRES: ClassVar[str] = "post"
    ROUTES: ClassVar[Mapping[int, Route]] = routes(
        filled(OwnMemory.PAR, PAR, doc=": bias and scale of each channel")
    )
    memory: int = field(MEMORY_ID_BITS, "scratchpad", enum=Memory, default=OwnMemory.PAR)


class LoadRes(Load):
    """Append rows from DRAM to RES, the queue of residuals that STORE.ADD and STORE.MUL take first in, first
    out.

    The store unit executes it. RES is empty at the start of a run. In program order, the elements loaded
    minus the elements taken must never exceed the depth of RES. If RES has no room at run time because an
    earlier STORE has not retired, the LOAD waits. ``sram_base`` and all pads must be zero.
    """

    MEMORY: ClassVar[IntEnum | None] = OwnMemory.RES
    REQUIRES: ClassVar[str] = "post"
    ROUTES: ClassVar[Mapping[int, Route]] = routes(filled(OwnMemory.RES, RES))
    memory: int = field(MEMORY_ID_BITS, "scratchpad", enum=Memory, default=OwnMemory.RES)


class LoadTab(Load):
    """Copy rows from DRAM to consecutive elements of TAB: tables of 256 bytes.

    The store unit executes it. Byte ``n`` of a table is the result for the byte ``n``, so that an int8 value
    of -1 selects byte 255. Waits and pads are those of LOAD.PAR.
    """

    MEMORY: ClassVar[IntEnum | None] = OwnMemory.TAB
    REQUIRES: ClassVar[str] = "tab_bytes"
    ROUTES: ClassVar[Mapping[int, Route]] = routes(
        filled(OwnMemory.TAB, TAB, doc=": a table of all values of a byte")
    )
    memory: int = field(MEMORY_ID_BITS, "scratchpad", enum=Memory, default=OwnMemory.TAB)


class Store(Transfer):
    """Copy the low 8 bits of consecutive accumulators to rows in DRAM.

    ``for y < y_size, x < x_size: dram[dram_base + y * x_stride + x] = int8(acc[sram_base + y * x_size +
    x])``

    For example, ``y_size=2 x_size=3 x_stride=8`` reads six consecutive elements of acc and writes DRAM
    elements 0, 1, 2 and 8, 9, 10 after ``dram_base``. Pads must be zero.
    """

    OPCODE: ClassVar[Opcode] = Opcode.STORE
    ROUTES: ClassVar[Mapping[int, Route]] = routes(
        Route(
            memory=Memory.OUT,
            scratchpad=ACC,
            dtype="int8",
            unit=Unit.STORE,
            doc=": the low bytes of acc",
        )
    )
    FILLS: ClassVar[bool] = False
    OTHERWISE: ClassVar[Unit] = Unit.STORE
    opcode: int = field(OPCODE_BITS, "operation", enum=Opcode, default=Opcode.STORE)
    memory: int = field(MEMORY_ID_BITS, "scratchpad", enum=Memory, default=Memory.OUT)


class StoreAcc(Store):
    """Copy consecutive accumulators unchanged, as int32, to rows in DRAM.

    The loops are those of STORE.OUT. ``dram_base`` and ``x_stride`` count int32 elements. Pads must be
    zero.
    """

    MEMORY: ClassVar[IntEnum | None] = Memory.ACC
    REQUIRES: ClassVar[str] = "post"
    ROUTES: ClassVar[Mapping[int, Route]] = routes(
        Route(memory=Memory.ACC, scratchpad=ACC, dtype="int32", unit=Unit.STORE)
    )
    memory: int = field(MEMORY_ID_BITS, "scratchpad", enum=Memory, default=Memory.ACC)


class StoreReq(Store):
    """Requantize consecutive accumulators and copy the results as bytes to rows in DRAM.

    ``for y < y_size, x < x_size, batch row b, channel o: dram[dram_base + y * x_stride + x][b][o] =
    clamp(rne(float32(acc[sram_base + y * x_size + x][b][o] + bias) * scale) + zero, low, high)``

    - The addition of ``bias`` wraps at 32 bits. ``rne`` rounds to the nearest integer, half to even.
    - ``bias`` and ``scale`` are those of channel ``o`` in element ``par`` of PAR. With ``par_y`` it is
      element ``par + y``, with ``par_x`` element ``par + x``. Both flags together are an error.
    - ``zero``, ``low`` and ``high`` are those of SET.OUT.
    - On machines with tables, and if ``table`` is not 0, the byte ``b`` of the result becomes byte ``b`` of
      element ``table - 1`` of TAB.

    For example, an accumulator of 1000 with bias 24, scale 0.125 and zero 3 gives 131. The bounds 0 and 255
    keep it, the bounds -128 and 127 clamp it to 127.
    """

    MEMORY: ClassVar[IntEnum | None] = Finishing.REQ
    REQUIRES: ClassVar[str] = "post"
    ROUTES: ClassVar[Mapping[int, Route]] = routes(
        Route(
            memory=Finishing.REQ,
            scratchpad=ACC,
            dtype="int8",
            unit=Unit.STORE,
            doc=": acc, requantized",
        )
    )
    OPERANDS: ClassVar[tuple[StoreOperand, ...]] = (
        StoreOperand(scratchpad=PAR, field="par", per_row="par_y", per_column="par_x"),
        StoreOperand(scratchpad=TAB, field="table", offset=1),
    )
    memory: int = field(MEMORY_ID_BITS, "scratchpad", enum=Memory, default=Finishing.REQ)
    y_pad_0: int = absent(0)
    y_pad_1: int = absent(0)
    x_pad_0: int = absent(0)
    x_pad_1: int = absent(0)
    par: int = field(PAR_INDEX_BITS, "first element of PAR", "elements")
    par_y: bool = field(1, "each row uses the next element of PAR", default=False)
    par_x: bool = field(
        1, "each element of a row uses the next element of PAR, from `par` on in every row", default=False
    )
    table: int = field(
        TABLE_FIELD_BITS,
        "0, or 1 plus the element of TAB through which results pass",
        at=TABLE_AT,
        requires="tab_bytes",
    )

    @property
    def par_elements(self) -> int:
        """Used elements of PAR, from ``par`` on."""
        return self.OPERANDS[0].count(self)


class StoreAdd(StoreReq):
    """Requantize consecutive accumulators, add a residual, and copy the sums as bytes to rows in DRAM.

    Each accumulator is requantized to ``y`` as by STORE.REQ, with its table, and the oldest residual ``r``
    is taken from RES. The result is ``clamp(rne(((y - left_zero) * left_multiplier + (r - right_zero) *
    right_multiplier + offset) / 2**shift) + zero, low, high)``.

    - ``zero``, ``low``, ``high`` and the multipliers are those of SET.SUM, the other settings those of
      SET.OUT.
    - ``r`` is a uint8 with the flag ``unsigned`` of SET.OUT, otherwise an int8.
    - The byte of a table is a uint8 with the flag ``table_unsigned`` of SET.OUT, otherwise an int8.
    - With ``hold``, the STORE takes one element of RES and uses it for all of its elements. Otherwise it
      takes one for each element that it stores.
    - In program order, RES must hold all elements that the STORE takes. The STORE waits until they are
      written.
    """

    MEMORY: ClassVar[IntEnum | None] = Finishing.ADD
    ROUTES: ClassVar[Mapping[int, Route]] = routes(
        Route(
            memory=Finishing.ADD,
            scratchpad=ACC,
            dtype="int8",
            unit=Unit.STORE,
            doc=": acc, requantized, plus what res holds",
        )
    )
    memory: int = field(MEMORY_ID_BITS, "scratchpad", enum=Memory, default=Finishing.ADD)
    hold: bool = field(
        1, "one element of RES serves all elements", default=False, at=HOLD_AT, requires="res_mul"
    )

    @property
    def taken_residuals(self) -> int:
        elements = self.x_size * self.y_size
        return min(1, elements) if self.hold else elements


class StoreMul(StoreAdd):
    """Requantize consecutive accumulators, multiply by a residual, and copy the products as bytes to rows in
    DRAM.

    As STORE.ADD, with the result ``clamp(rne(((y - left_zero) * (r - right_zero) * left_multiplier +
    offset) / 2**shift) + zero, low, high)``. Each of the two differences wraps at 9 bits, which no difference
    of two bytes of one type exceeds. The field ``right_multiplier`` of SET.SUM is not used. For example, with
    a ``left_multiplier`` of 1 and a ``shift`` of 7, a value of 64 times a residual of 100 is 50.
    """

    MEMORY: ClassVar[IntEnum | None] = Finishing.MUL
    REQUIRES: ClassVar[str] = "res_mul"
    ROUTES: ClassVar[Mapping[int, Route]] = routes(
        Route(
            memory=Finishing.MUL,
            scratchpad=ACC,
            dtype="int8",
            unit=Unit.STORE,
            doc=": acc, requantized, times what res holds",
        )
    )
    memory: int = field(MEMORY_ID_BITS, "scratchpad", enum=Memory, default=Finishing.MUL)
