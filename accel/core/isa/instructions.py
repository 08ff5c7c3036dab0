"""The instruction set: VTA's, bit for bit, each instruction declared once.

Encoder, decoder, text form, documentation tables and the strategies that draw random instructions
are all derived from these classes.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, TypeVar

from accel.core.config import Config
from accel.core.isa.fields import absent, field
from accel.core.isa.operands import Operand
from accel.core.memories import (
    ACC,
    INP,
    PAR,
    PAR_INDEX_BITS,
    RES,
    UOP,
    WGT,
    Route,
    Scratchpad,
    filled,
    routes,
)
from accel.core.requantize import (
    ADD_MULTIPLIER_BITS,
    ADD_OFFSET_BITS,
    ADD_SHIFT_BITS,
    MAX_ADD_SHIFT,
    RESULT_BITS,
)
from accel.core.units import Unit


class Opcode(IntEnum):
    """What an instruction is, in its lowest three bits."""

    LOAD = 0
    STORE = 1
    GEMM = 2
    FINISH = 3
    ALU = 4
    MAC = 5
    SET = 6


class Memory(IntEnum):
    """Memory ids by name. What an id stands for is declared with LOAD and with STORE, each for itself."""

    UOP = 0
    WGT = 1
    INP = 2
    ACC = 3
    OUT = 4
    ACC_8BIT = 5


class OwnMemory(IntEnum):
    """Memory ids of LOADs into the store unit's own scratchpads."""

    PAR = 6
    RES = 7


class Finishing(IntEnum):
    """Memory ids of STOREs that finish outputs: requantize, and perhaps add a residual."""

    REQ = 6
    ADD = 7


class AluOp(IntEnum):
    """What ALU does with its two operands."""

    MIN = 0
    MAX = 1
    ADD = 2
    SHR = 3
    MUL = 4


_MEMORY_NAMES = {memory.value: memory.name for memory in Memory}
_ALU_NAMES = {op.value: op.name for op in AluOp}

OPCODE_BITS = 3
MEMORY_ID_BITS = 3
MEMORY_AT = OPCODE_BITS + 4
"""First bit of a memory id, in all instructions that have one: behind opcode and token flags."""
PART_AT = MEMORY_AT + MEMORY_ID_BITS
"""The bit that tells classes with one memory id apart."""
LOOP_BITS = 14
SIZE_BITS = 16
PAD_BITS = 4
SRAM_BASE_BITS = 16
DRAM_BASE_BITS = 32
ALU_OP_BITS = 3
TAPS_BITS = 9
"""Enough for as many taps as a wgt element has columns."""
STEP_BITS = 16
IMMEDIATE_BITS = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Instruction:
    """What all instructions have in common: an opcode and four token flags.

    *Previous* and *next* are the neighbours in the chain load, compute, store.
    """

    BITS: ClassVar[int] = 128
    OPCODE: ClassVar[Opcode]
    MEMORY: ClassVar[IntEnum | None] = None
    """The memory id with which the opcode means this class, if it means others with other ids."""
    PART: ClassVar[int | None] = None
    """What the field ``part`` behind the memory id is, if the id stands for several classes."""
    POST: ClassVar[bool] = False
    """Whether only machines with ``post=1`` have it."""

    opcode: int = field(OPCODE_BITS, "operation", enum=Opcode)
    pop_prev: bool = field(1, "wait for a token of the previous unit (RAW)", default=False)
    pop_next: bool = field(1, "wait for a token of the next unit (WAR)", default=False)
    push_prev: bool = field(1, "when done, send a token to the previous unit (WAR)", default=False)
    push_next: bool = field(1, "when done, send a token to the next unit (RAW)", default=False)

    @property
    def unit(self) -> Unit:
        raise NotImplementedError

    @property
    def mnemonic(self) -> str:
        raise NotImplementedError


InstructionT = TypeVar("InstructionT", bound=Instruction)

TOKEN_FLAGS = ("pop_prev", "pop_next", "push_prev", "push_next")
"""The fields by which instructions wait for tokens and send them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Transfer(Instruction):
    """The fields that LOAD and STORE share: a box of ``y_size`` rows of ``x_size`` elements."""

    ROUTES: ClassVar[Mapping[int, Route]]
    """By memory id: the scratchpad that is filled or read, and by whom."""
    FILLS: ClassVar[bool]
    """Whether the scratchpad is written; otherwise it is read."""
    OTHERWISE: ClassVar[Unit]
    """The unit that finds out that a memory id is none of these."""

    memory: int = field(MEMORY_ID_BITS, "scratchpad", enum=Memory)
    sram_base: int = field(SRAM_BASE_BITS, "first scratchpad element")
    dram_base: int = field(DRAM_BASE_BITS, "first DRAM element, counted in elements of that memory")
    y_size: int = field(SIZE_BITS, "rows")
    x_size: int = field(SIZE_BITS, "elements in a row; zero: tokens only")
    x_stride: int = field(SIZE_BITS, "elements from row to row in DRAM")
    y_pad_0: int = field(PAD_BITS, "zero rows before")
    y_pad_1: int = field(PAD_BITS, "zero rows behind")
    x_pad_0: int = field(PAD_BITS, "zero elements before each row")
    x_pad_1: int = field(PAD_BITS, "zero elements behind each row")

    @property
    def width(self) -> int:
        """Scratchpad elements in a row, pads included."""
        return self.x_pad_0 + self.x_size + self.x_pad_1

    @property
    def height(self) -> int:
        """Scratchpad rows, pads included."""
        return self.y_pad_0 + self.y_size + self.y_pad_1

    @property
    def sram_elements(self) -> int:
        """Scratchpad elements written or read; none if ``x_size`` is zero."""
        return self.width * self.height if self.x_size else 0

    @property
    def unit(self) -> Unit:
        route = self.route
        return self.OTHERWISE if route is None else route.unit

    @property
    def route(self) -> Route | None:
        """What the memory id stands for; None if the instruction does not know it."""
        return self.ROUTES.get(self.memory)

    @property
    def mnemonic(self) -> str:
        route = self.route
        other = _MEMORY_NAMES.get(self.memory, f"MEM{self.memory}")
        return f"{self.OPCODE.name}.{other if route is None else route.name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Load(Transfer):
    """Copy rows from DRAM to consecutive scratchpad elements, with zeros around them.

    ``for y < y_size, x < x_size: sram[sram_base + (y + y_pad_0) * width + x + x_pad_0] =
    dram[dram_base + y * x_stride + x]``, where ``width = x_pad_0 + x_size + x_pad_1``; all other
    elements of the padded box become zero.

    The load unit executes LOADs of INP and WGT, the compute unit those of UOP, ACC, ACC_8BIT, and of ids that
    mean nothing. With ``x_size`` zero, a LOAD or STORE only pops and pushes tokens and nothing else in it is
    checked; with ``y_size`` zero, pad rows are still written. ``x_stride`` may be zero or less than
    ``x_size``. ACC_8BIT sign-extends bytes to int32.
    """

    OPCODE: ClassVar[Opcode] = Opcode.LOAD
    ROUTES: ClassVar[Mapping[int, Route]] = routes(
        filled(Memory.UOP, UOP),
        filled(Memory.INP, INP, set_by=Memory.INP),
        filled(Memory.WGT, WGT),
        filled(Memory.ACC, ACC),
        filled(Memory.ACC_8BIT, ACC, dtype="int8", doc=", sign-extended into acc", set_by=Memory.ACC),
    )
    FILLS: ClassVar[bool] = True
    OTHERWISE: ClassVar[Unit] = Unit.COMPUTE
    opcode: int = field(OPCODE_BITS, "operation", enum=Opcode, default=Opcode.LOAD)


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadPar(Load):
    """Copy rows from DRAM to consecutive elements of PAR: bias and scale of each channel.

    The store unit executes it. An element is, for each of ``block_out`` channels, an int32 bias and a 32-bit
    scale, whose multiplier is in the low 24 bits and whose exponent is in the high 8: ``multiplier *
    2**-exponent``. It waits for STOREs before it that use what it fills, and STOREs behind it wait until it
    is written. Pads are a fault.
    """

    MEMORY: ClassVar[IntEnum | None] = OwnMemory.PAR
    POST: ClassVar[bool] = True
    ROUTES: ClassVar[Mapping[int, Route]] = routes(
        filled(OwnMemory.PAR, PAR, doc=": bias and scale of each channel")
    )
    memory: int = field(MEMORY_ID_BITS, "scratchpad", enum=Memory, default=OwnMemory.PAR)


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadRes(Load):
    """Append rows from DRAM to RES, the operands of STORE.ADDs, which take them first in, first out.

    The store unit executes it. By program order, what has been loaded less what has been taken must never
    exceed the depth, and is zero at the start of a run; where it is more at the moment, the LOAD waits for
    room. ``sram_base`` and pads that are not zero are a fault.
    """

    MEMORY: ClassVar[IntEnum | None] = OwnMemory.RES
    POST: ClassVar[bool] = True
    ROUTES: ClassVar[Mapping[int, Route]] = routes(filled(OwnMemory.RES, RES))
    memory: int = field(MEMORY_ID_BITS, "scratchpad", enum=Memory, default=OwnMemory.RES)


@dataclass(frozen=True, kw_only=True, slots=True)
class Store(Transfer):
    """Copy consecutive accumulators' low 8 bits to rows in DRAM.

    ``for y < y_size, x < x_size: dram[dram_base + y * x_stride + x] = int8(acc[sram_base + y * x_size + x])``

    A STORE has no pads.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreAcc(Store):
    """Copy consecutive accumulators as they are, as int32, to rows in DRAM.

    The loops are STORE.OUT's; ``dram_base`` and ``x_stride`` count elements of int32. It has no pads either.
    """

    MEMORY: ClassVar[IntEnum | None] = Memory.ACC
    POST: ClassVar[bool] = True
    ROUTES: ClassVar[Mapping[int, Route]] = routes(
        Route(memory=Memory.ACC, scratchpad=ACC, dtype="int32", unit=Unit.STORE)
    )
    memory: int = field(MEMORY_ID_BITS, "scratchpad", enum=Memory, default=Memory.ACC)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreReq(Store):
    """Requantize consecutive accumulators, and copy the results to rows in DRAM, as bytes.

    ``for y < y_size, x < x_size, batch row b, channel o: dram[dram_base + y * x_stride + x][b][o] =
    clamp(rne(float32(acc[sram_base + y * x_size + x][b][o] + bias) * scale) + zero, low, high)``, where the
    addition wraps at 32 bits, ``rne`` rounds to the nearest integer, half to even, and zero, low and high are
    those of SET.OUT. bias and scale are channel o's of element ``par`` of PAR, with ``par_y`` of element
    ``par + y``, with ``par_x`` of element ``par + x``; both flags are a fault.
    """

    MEMORY: ClassVar[IntEnum | None] = Finishing.REQ
    POST: ClassVar[bool] = True
    ROUTES: ClassVar[Mapping[int, Route]] = routes(
        Route(
            memory=Finishing.REQ,
            scratchpad=ACC,
            dtype="int8",
            unit=Unit.STORE,
            doc=": acc, requantized",
        )
    )
    memory: int = field(MEMORY_ID_BITS, "scratchpad", enum=Memory, default=Finishing.REQ)
    y_pad_0: int = absent(0)
    y_pad_1: int = absent(0)
    x_pad_0: int = absent(0)
    x_pad_1: int = absent(0)
    par: int = field(PAR_INDEX_BITS, "first element of PAR")
    par_y: bool = field(1, "a row's element of PAR follows that of the row before", default=False)
    par_x: bool = field(1, "an element's element of PAR follows that of the one before", default=False)

    @property
    def par_elements(self) -> int:
        """Elements of PAR in use, from ``par`` on; none if nothing is moved."""
        if not self.sram_elements:
            return 0
        return self.y_size if self.par_y else self.x_size if self.par_x else 1


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreAdd(StoreReq):
    """Requantize consecutive accumulators, add a residual, and copy the sums to rows in DRAM, as bytes.

    Each accumulator is requantized as by STORE.REQ, and takes the oldest operand r that RES holds; what is
    written is ``clamp(rne(((y - left_zero) * left_multiplier + (r - right_zero) * right_multiplier + offset)
    / 2**shift) + zero, low, high)``, with y as STORE.REQ has it and zero, low and high those of SET.SUM. r is
    an int8, or a uint8 with SET.OUT's ``unsigned``. By program order, RES must hold as many elements as are
    taken; the STORE waits until they are written.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Loops(Instruction):
    """The fields that all that run micro-ops share: two loops around a range of them.

    Both loops add their factors to the indices of every micro-op:
    ``for i < iter_out, j < iter_in, u in [uop_begin, uop_end):
    dst = u.dst + i * dst_factor_out + j * dst_factor_in`` (src and wgt alike).
    """

    OPERANDS: ClassVar[tuple[Operand, ...]]
    """What the micro-ops' indices are of."""

    uop_begin: int = field(UOP.address_bits, "first micro-op")
    uop_end: int = field(lambda c: UOP.address_bits(c) + 1, "micro-op behind the last")
    iter_out: int = field(LOOP_BITS, "iterations of the outer loop", default=1)
    iter_in: int = field(LOOP_BITS, "iterations of the inner loop", default=1)
    dst_factor_out: int = field(ACC.address_bits, "dst elements per outer iteration")
    dst_factor_in: int = field(ACC.address_bits, "dst elements per inner iteration")

    @property
    def unit(self) -> Unit:
        return Unit.COMPUTE

    @property
    def uop_count(self) -> int:
        """Micro-ops executed."""
        return self.iter_out * self.iter_in * max(0, self.uop_end - self.uop_begin)


_RESET = "GEMM: write zero instead of accumulating; ALU: ignored"


@dataclass(frozen=True, kw_only=True, slots=True)
class Products(Loops):
    """The fields that GEMM and MAC share: what the loops add to the indices of the factors."""

    src_factor_out: int = field(INP.address_bits, "inp elements per outer iteration")
    src_factor_in: int = field(INP.address_bits, "inp elements per inner iteration")
    wgt_factor_out: int = field(WGT.address_bits, "wgt elements per outer iteration")
    wgt_factor_in: int = field(WGT.address_bits, "wgt elements per inner iteration")

    @property
    def multiplies(self) -> bool:
        """Whether micro-ops multiply; otherwise they only write zeros."""
        raise NotImplementedError

    @property
    def accumulates(self) -> bool:
        """Whether what the accumulators held stays part of the sum."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True, slots=True)
class Gemm(Products):
    """``acc[dst][b][o] += sum over k of inp[src][b][k] * wgt[wgt][o][k]``, wrapping at 32 bits.

    With ``reset``: ``acc[dst] = 0``, and src and wgt are not looked at. Micro-ops run strictly in order; no
    iterations, or ``uop_begin >= uop_end``, do nothing.
    """

    OPCODE: ClassVar[Opcode] = Opcode.GEMM
    OPERANDS: ClassVar[tuple[Operand, ...]] = (
        Operand(name="dst", memory=ACC, writes=True, unless="reset"),
        Operand(name="src", memory=INP, unless="reset"),
        Operand(name="wgt", memory=WGT, unless="reset"),
    )
    opcode: int = field(OPCODE_BITS, "operation", enum=Opcode, default=Opcode.GEMM)
    reset: bool = field(1, _RESET, default=False, before="uop_begin")

    @property
    def multiplies(self) -> bool:
        return not self.reset

    @property
    def accumulates(self) -> bool:
        return not self.reset

    @property
    def mnemonic(self) -> str:
        return "GEMM"


@dataclass(frozen=True, kw_only=True, slots=True)
class Mac(Products):
    """``acc[dst][b][o] += sum over k of inp[src][b][k] * wgt[wgt][o][k]``, wrapping at 32 bits, as GEMM.

    With ``overwrite``: ``acc[dst][b][o] = sum over k``, and what ``acc[dst]`` held is not read; of several
    micro-ops with one dst the last wins. Micro-ops run strictly in order; no iterations, or
    ``uop_begin >= uop_end``, do nothing.

    With ``depthwise``, on machines whose ``block_in`` and ``block_out`` are equal, each channel has its own
    sum: ``acc[dst][b][o] += sum over t < taps of inp[src + t * step][b][o] * wgt[wgt][o][t]``, with taps and
    step of SET.ACC. All of these elements of inp must exist; the other columns of the wgt element are not
    looked at. Without taps it is a fault.
    """

    OPCODE: ClassVar[Opcode] = Opcode.MAC
    POST: ClassVar[bool] = True
    OPERANDS: ClassVar[tuple[Operand, ...]] = (
        Operand(name="dst", memory=ACC, writes=True, unless="overwrite"),
        Operand(name="src", memory=INP, tapped="depthwise"),
        Operand(name="wgt", memory=WGT),
    )
    opcode: int = field(OPCODE_BITS, "operation", enum=Opcode, default=Opcode.MAC)
    overwrite: bool = field(1, "write the sum instead of accumulating", default=False, before="uop_begin")
    depthwise: bool = field(1, "multiply channel by channel, tap by tap", default=False, at=63)

    @property
    def multiplies(self) -> bool:
        return True

    @property
    def accumulates(self) -> bool:
        return not self.overwrite

    @property
    def mnemonic(self) -> str:
        return "MAC"


@dataclass(frozen=True, kw_only=True, slots=True)
class Alu(Loops):
    """``acc[dst] = op(acc[dst], imm if use_imm else acc[src])`` on int32.

    ADD and MUL wrap at 32 bits. SHR is arithmetic; by a negative amount it shifts left; a right shift by 31
    or more leaves the sign, a left shift by 32 or more leaves zero. With ``use_imm`` the micro-ops' src is
    not looked at. ``reset`` is ignored. Micro-ops run strictly in order, each on what those before have
    written.
    """

    OPCODE: ClassVar[Opcode] = Opcode.ALU
    OPERANDS: ClassVar[tuple[Operand, ...]] = (
        Operand(name="dst", memory=ACC, writes=True),
        Operand(name="src", memory=ACC, unless="use_imm"),
    )
    opcode: int = field(OPCODE_BITS, "operation", enum=Opcode, default=Opcode.ALU)
    reset: bool = field(1, _RESET, default=False, before="uop_begin")
    src_factor_out: int = field(ACC.address_bits, "acc elements per outer iteration")
    src_factor_in: int = field(ACC.address_bits, "acc elements per inner iteration")
    alu_op: int = field(ALU_OP_BITS, "operation on two operands", enum=AluOp)
    use_imm: bool = field(1, "second operand is imm", default=False)
    imm: int = field(IMMEDIATE_BITS, "immediate operand", signed=True)

    @property
    def mnemonic(self) -> str:
        return f"ALU.{_ALU_NAMES.get(self.alu_op, f'OP{self.alu_op}')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Set(Instruction):
    """Set how a memory's unit executes what is behind it in its queue, until the next SET of that memory.

    Its fields depend on the memory id, which has the bits that it has in a LOAD; that an id is none of those
    below is found by the compute unit. A SET starts when its unit is empty and retires in the next cycle, and
    what follows it in the unit starts when it has retired. At the start of a run all settings are zero.
    """

    OPCODE: ClassVar[Opcode] = Opcode.SET
    POST: ClassVar[bool] = True
    UNIT: ClassVar[Unit] = Unit.COMPUTE
    """The unit that executes it."""
    opcode: int = field(OPCODE_BITS, "operation", enum=Opcode, default=Opcode.SET)
    memory: int = field(MEMORY_ID_BITS, "memory", enum=Memory)

    @property
    def unit(self) -> Unit:
        return self.UNIT

    @property
    def mnemonic(self) -> str:
        return f"SET.{_MEMORY_NAMES.get(self.memory, f'MEM{self.memory}')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class SetInp(Set):
    """LOADs of INP subtract ``zero`` from each byte, which is a uint8 with ``unsigned``, otherwise an int8.

    What comes of it has 9 bits. Pads are zero as ever, which stands for ``zero`` in the tensor. ``zero`` must
    be a value of the byte.
    """

    MEMORY: ClassVar[IntEnum | None] = Memory.INP
    UNIT: ClassVar[Unit] = Unit.LOAD
    memory: int = field(MEMORY_ID_BITS, "memory", enum=Memory, default=Memory.INP)
    zero: int = field(9, "zero point of inp", signed=True)
    unsigned: bool = field(1, "bytes of inp are uint8, not int8", default=False)

    @property
    def byte_range(self) -> tuple[int, int]:
        """The least and the greatest value of a byte."""
        return (0, 255) if self.unsigned else (-128, 127)


@dataclass(frozen=True, kw_only=True, slots=True)
class SetAcc(Set):
    """LOADs of ACC_8BIT extend bytes by zeros with ``unsigned``, else by their sign; depthwise MACs multiply
    ``taps`` elements of inp, each ``step`` behind the one before.

    There are at most ``block_in`` taps, and each has a bank of inp to itself: ``taps`` times the greatest
    common divisor of ``step`` and the number of banks (``inp_banks``) is at most that number. With four banks
    these are four taps with an odd step, two with one that is twice an odd number, and otherwise one.
    """

    MEMORY: ClassVar[IntEnum | None] = Memory.ACC
    memory: int = field(MEMORY_ID_BITS, "memory", enum=Memory, default=Memory.ACC)
    unsigned: bool = field(1, "bytes of ACC_8BIT are uint8, not int8", default=False)
    taps: int = field(TAPS_BITS, "elements of inp that a depthwise MAC multiplies at once")
    step: int = field(STEP_BITS, "from one of them to the next")

    @property
    def reach(self) -> int:
        """Elements of inp from the first tap to the last."""
        return max(0, self.taps - 1) * self.step


@dataclass(frozen=True, kw_only=True, slots=True)
class SetOut(Set):
    """STORE.REQ and STORE.ADD add ``zero`` to what they requantize and keep it within ``low`` and ``high``;
    with ``low > high`` the result is ``high``. The other fields, and those of SET.SUM, are about STORE.ADD's
    addition of a residual."""

    MEMORY: ClassVar[IntEnum | None] = Memory.OUT
    PART: ClassVar[int | None] = 0
    UNIT: ClassVar[Unit] = Unit.STORE
    memory: int = field(MEMORY_ID_BITS, "memory", enum=Memory, default=Memory.OUT)
    part: bool = field(1, "0: SET.OUT", default=False)
    zero: int = field(RESULT_BITS, "zero point of the requantized value", signed=True)
    low: int = field(RESULT_BITS, "its least value", signed=True)
    high: int = field(RESULT_BITS, "its greatest value", signed=True)
    left_zero: int = field(RESULT_BITS, "what is subtracted from it before it is multiplied", signed=True)
    right_zero: int = field(RESULT_BITS, "what is subtracted from the residual", signed=True)
    unsigned: bool = field(1, "the residual is uint8, not int8", default=False)
    offset: int = field(ADD_OFFSET_BITS, "what is added to the products", signed=True)
    shift: int = field(ADD_SHIFT_BITS, f"by how much the sum is shifted; at most {MAX_ADD_SHIFT}")


@dataclass(frozen=True, kw_only=True, slots=True)
class SetSum(Set):
    """STORE.ADD multiplies the requantized value and the residual by these numbers, and keeps the shifted
    sum, with ``zero`` added, within ``low`` and ``high``; with ``low > high`` the result is ``high``."""

    MEMORY: ClassVar[IntEnum | None] = Memory.OUT
    PART: ClassVar[int | None] = 1
    UNIT: ClassVar[Unit] = Unit.STORE
    memory: int = field(MEMORY_ID_BITS, "memory", enum=Memory, default=Memory.OUT)
    part: bool = field(1, "1: SET.SUM", default=True)
    left_multiplier: int = field(ADD_MULTIPLIER_BITS, "of the requantized value")
    zero: int = field(RESULT_BITS, "zero point of the sum", signed=True)
    low: int = field(RESULT_BITS, "its least value", signed=True)
    high: int = field(RESULT_BITS, "its greatest value", signed=True)
    right_multiplier: int = field(ADD_MULTIPLIER_BITS, "of the residual")

    @property
    def mnemonic(self) -> str:
        return "SET.SUM"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finish(Instruction):
    """End of the program; the last instruction, and nowhere else.

    The compute unit executes it, and it obeys its token flags. The run ends when it has retired, all queues
    are empty, all units idle and all writes done. Tokens may be left over.
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
    """A word whose opcode is none of the machine's; fetch stops at it."""

    @property
    def unit(self) -> Unit:
        return Unit.FETCH

    @property
    def mnemonic(self) -> str:
        return f"UNKNOWN{self.opcode}"


CLASSES: dict[int, type[Instruction]] = {
    cls.OPCODE: cls for cls in (Load, Store, Gemm, Finish, Alu, Mac, Set)
}
"""Instruction class of each opcode, of all machines; where it depends on the memory id, that of other ids."""

VARIANTS: dict[tuple[int, int, int], type[Instruction]] = {
    (cls.OPCODE, cls.MEMORY, cls.PART or 0): cls
    for cls in (LoadPar, LoadRes, StoreAcc, StoreReq, StoreAdd, SetInp, SetAcc, SetOut, SetSum)
    if cls.MEMORY is not None
}
"""Instruction class of an opcode, a memory id and a part, where they differ from id to id; where an id stands
for one class only, the part is 0."""

PARTED: frozenset[tuple[int, int]] = frozenset(
    (opcode, memory) for (opcode, memory, _), cls in VARIANTS.items() if cls.PART is not None
)
"""Opcodes and memory ids that stand for several classes, told apart by the bit :data:`PART_AT`."""

SETTINGS: tuple[type[Set], ...] = tuple(cls for cls in VARIANTS.values() if issubclass(cls, Set))
"""What SET sets."""

TRANSFERS: tuple[type[Transfer], ...] = tuple(cls for cls in CLASSES.values() if issubclass(cls, Transfer))
"""Those that move elements between DRAM and scratchpads."""
LOOPS: tuple[type[Loops], ...] = tuple(cls for cls in CLASSES.values() if issubclass(cls, Loops))
"""Those that run micro-ops."""


def exists(cls: type[Instruction], config: Config) -> bool:
    """Whether a machine has a class of instructions."""
    return bool(config.post) or not cls.POST


def classes_of(config: Config) -> dict[int, type[Instruction]]:
    """Instruction class of each opcode that a machine has."""
    return {opcode: cls for opcode, cls in CLASSES.items() if exists(cls, config)}


def variants_of(config: Config) -> dict[tuple[int, int, int], type[Instruction]]:
    """Those of :data:`VARIANTS` that a machine has."""
    return {key: cls for key, cls in VARIANTS.items() if exists(cls, config)}


def class_of(opcode: int, memory: int, config: Config, *, part: int = 0) -> type[Instruction] | None:
    """What an opcode, the bits where memory ids stand, and the bit behind them, mean; None if the machine
    does not have it."""
    key = opcode, memory, part if (opcode, memory) in PARTED else 0
    return variants_of(config).get(key, classes_of(config).get(opcode))


def routes_of(cls: type[Transfer], config: Config) -> dict[int, Route]:
    """What the memory ids of LOAD or STORE stand for on a machine."""
    found = dict(cls.ROUTES)
    for variant in variants_of(config).values():
        if variant.OPCODE is cls.OPCODE and issubclass(variant, Transfer):
            found |= variant.ROUTES
    return found


def loops_of(config: Config) -> tuple[type[Loops], ...]:
    """Those of a machine's instructions that run micro-ops."""
    return tuple(cls for cls in classes_of(config).values() if issubclass(cls, Loops))


def memory_names(cls: type[Instruction]) -> dict[int, str]:
    """The memory ids' names in an instruction; those that it does not know are called as elsewhere."""
    if not issubclass(cls, Transfer):
        return dict(_MEMORY_NAMES)
    return _MEMORY_NAMES | {memory: route.name for memory, route in cls.ROUTES.items()}


def _index(name: str) -> Any:
    """A micro-op's field, wide enough for the operand of that name of every instruction."""
    users: dict[Scratchpad, list[str]] = {}
    for cls in LOOPS:
        for operand in cls.OPERANDS:
            if operand.name == name:
                users.setdefault(operand.memory, []).append(cls.OPCODE.name)
    everywhere = len(users) == 1 and len(*users.values()) == len(LOOPS)
    meanings = (f"{pad} element" + ("" if everywhere else f" ({', '.join(u)})") for pad, u in users.items())
    return field(lambda config: max(pad.address_bits(config) for pad in users), " or ".join(meanings))


@dataclass(frozen=True, kw_only=True, slots=True)
class MicroOp:
    """One step of GEMM, MAC or ALU before the loops' offsets are added."""

    BITS: ClassVar[int] = 32

    dst: int = _index("dst")
    src: int = _index("src")
    wgt: int = _index("wgt")


def without_tokens(instruction: InstructionT) -> InstructionT:
    """The same instruction without its token flags: what equals it does the same to memory."""
    if any(getattr(instruction, flag) for flag in TOKEN_FLAGS):
        return dataclasses.replace(instruction, **dict.fromkeys(TOKEN_FLAGS, False))
    return instruction
