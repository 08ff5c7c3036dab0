"""The instruction set: VTA's, bit for bit, each instruction declared once.

Encoder, decoder, text form, documentation tables and the strategies that draw random instructions
are all derived from these classes.
"""

import dataclasses
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar

from accel.core.config import Config
from accel.core.isa.fields import FieldSpec, field


class Opcode(IntEnum):
    """What an instruction is, in its lowest three bits."""

    LOAD = 0
    STORE = 1
    GEMM = 2
    FINISH = 3
    ALU = 4


class Memory(IntEnum):
    """Memory ids of LOAD and STORE. ACC_8BIT is acc, filled from bytes that are sign-extended."""

    UOP = 0
    WGT = 1
    INP = 2
    ACC = 3
    OUT = 4
    ACC_8BIT = 5


class AluOp(IntEnum):
    """What ALU does with its two operands."""

    MIN = 0
    MAX = 1
    ADD = 2
    SHR = 3
    MUL = 4


class Unit(IntEnum):
    """The four units. A unit's neighbours in the token chain are load, compute and store."""

    FETCH = 0
    LOAD = 1
    COMPUTE = 2
    STORE = 3

    @property
    def previous(self) -> "Unit | None":
        return _PREVIOUS.get(self)

    @property
    def next(self) -> "Unit | None":
        return _NEXT.get(self)

    @property
    def label(self) -> str:
        return self.name.lower()


_NEXT = {Unit.LOAD: Unit.COMPUTE, Unit.COMPUTE: Unit.STORE}
_PREVIOUS = {following: unit for unit, following in _NEXT.items()}

_OPERANDS = (Memory.WGT, Memory.INP)
"""Memories that the load unit fills."""
_MEMORY_NAMES = {memory.value: memory.name for memory in Memory}
_ALU_NAMES = {op.value: op.name for op in AluOp}

MEMORY_ID_BITS = 3
LOOP_BITS = 14
SIZE_BITS = 16
PAD_BITS = 4
IMMEDIATE_BITS = 16


def _source_bits(config: Config) -> int:
    return max(config.inp_address_bits, config.acc_address_bits)


@dataclass(frozen=True, kw_only=True, slots=True)
class Instruction:
    """What all instructions have in common: an opcode and four token flags.

    *Previous* and *next* are the neighbours in the chain load, compute, store.
    """

    BITS: ClassVar[int] = 128
    OPCODE: ClassVar[Opcode]

    opcode: int = field(3, "operation", enum=Opcode)
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Transfer(Instruction):
    """The fields that LOAD and STORE share: a box of ``y_size`` rows of ``x_size`` elements."""

    memory: int = field(MEMORY_ID_BITS, "scratchpad", enum=Memory)
    sram_base: int = field(16, "first scratchpad element")
    dram_base: int = field(32, "first DRAM element, counted in elements of that memory")
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
    def memory_label(self) -> str:
        return _MEMORY_NAMES.get(self.memory, f"MEM{self.memory}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Load(Transfer):
    """Copy rows from DRAM to consecutive scratchpad elements, with zeros around them.

    ``for y < y_size, x < x_size: sram[sram_base + (y + y_pad_0) * width + x + x_pad_0] =
    dram[dram_base + y * x_stride + x]``, where ``width = x_pad_0 + x_size + x_pad_1``; all other
    elements of the padded box become zero.

    The load unit executes LOADs of INP and WGT, the compute unit all others. With ``x_size`` zero, a LOAD or
    STORE only pops and pushes tokens and nothing else in it is checked; with ``y_size`` zero, pad rows are
    still written. ``x_stride`` may be zero or less than ``x_size``. ACC_8BIT sign-extends bytes to int32.
    """

    OPCODE: ClassVar[Opcode] = Opcode.LOAD
    opcode: int = field(3, "operation", enum=Opcode, default=Opcode.LOAD)

    @property
    def unit(self) -> Unit:
        return Unit.LOAD if self.memory in _OPERANDS else Unit.COMPUTE

    @property
    def mnemonic(self) -> str:
        return f"LOAD.{self.memory_label}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Store(Transfer):
    """Copy consecutive accumulators' low 8 bits to rows in DRAM.

    ``for y < y_size, x < x_size: dram[dram_base + y * x_stride + x] = int8(acc[sram_base + y * x_size + x])``

    A STORE has no pads.
    """

    OPCODE: ClassVar[Opcode] = Opcode.STORE
    opcode: int = field(3, "operation", enum=Opcode, default=Opcode.STORE)
    memory: int = field(MEMORY_ID_BITS, "scratchpad", enum=Memory, default=Memory.OUT)

    @property
    def unit(self) -> Unit:
        return Unit.STORE

    @property
    def mnemonic(self) -> str:
        return f"STORE.{self.memory_label}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Loops(Instruction):
    """The fields that GEMM and ALU share: two loops around a range of micro-ops.

    Both loops add their factors to the indices of every micro-op:
    ``for i < iter_out, j < iter_in, u in [uop_begin, uop_end):
    dst = u.dst + i * dst_factor_out + j * dst_factor_in`` (src and wgt alike).
    """

    reset: bool = field(1, "GEMM: write zero instead of accumulating; ALU: ignored", default=False)
    uop_begin: int = field(lambda c: c.uop_address_bits, "first micro-op")
    uop_end: int = field(lambda c: c.uop_address_bits + 1, "micro-op behind the last")
    iter_out: int = field(LOOP_BITS, "iterations of the outer loop", default=1)
    iter_in: int = field(LOOP_BITS, "iterations of the inner loop", default=1)
    dst_factor_out: int = field(lambda c: c.acc_address_bits, "dst elements per outer iteration")
    dst_factor_in: int = field(lambda c: c.acc_address_bits, "dst elements per inner iteration")

    @property
    def unit(self) -> Unit:
        return Unit.COMPUTE

    @property
    def uop_count(self) -> int:
        """Micro-ops executed."""
        return self.iter_out * self.iter_in * max(0, self.uop_end - self.uop_begin)


@dataclass(frozen=True, kw_only=True, slots=True)
class Gemm(Loops):
    """``acc[dst][b][o] += sum over k of inp[src][b][k] * wgt[wgt][o][k]``, wrapping at 32 bits.

    With ``reset``: ``acc[dst] = 0``, and src and wgt are not looked at. Micro-ops run strictly in order; no
    iterations, or ``uop_begin >= uop_end``, do nothing.
    """

    OPCODE: ClassVar[Opcode] = Opcode.GEMM
    opcode: int = field(3, "operation", enum=Opcode, default=Opcode.GEMM)
    src_factor_out: int = field(lambda c: c.inp_address_bits, "inp elements per outer iteration")
    src_factor_in: int = field(lambda c: c.inp_address_bits, "inp elements per inner iteration")
    wgt_factor_out: int = field(lambda c: c.wgt_address_bits, "wgt elements per outer iteration")
    wgt_factor_in: int = field(lambda c: c.wgt_address_bits, "wgt elements per inner iteration")

    @property
    def mnemonic(self) -> str:
        return "GEMM"


@dataclass(frozen=True, kw_only=True, slots=True)
class Alu(Loops):
    """``acc[dst] = op(acc[dst], imm if use_imm else acc[src])`` on int32.

    ADD and MUL wrap at 32 bits. SHR is arithmetic; by a negative amount it shifts left; a right shift by 31
    or more leaves the sign, a left shift by 32 or more leaves zero. With ``use_imm`` the micro-ops' src is
    not looked at. ``reset`` is ignored. Micro-ops run strictly in order, each on what those before have
    written.
    """

    OPCODE: ClassVar[Opcode] = Opcode.ALU
    opcode: int = field(3, "operation", enum=Opcode, default=Opcode.ALU)
    src_factor_out: int = field(lambda c: c.acc_address_bits, "acc elements per outer iteration")
    src_factor_in: int = field(lambda c: c.acc_address_bits, "acc elements per inner iteration")
    alu_op: int = field(3, "operation on two operands", enum=AluOp)
    use_imm: bool = field(1, "second operand is imm", default=False)
    imm: int = field(IMMEDIATE_BITS, "immediate operand", signed=True)

    @property
    def mnemonic(self) -> str:
        return f"ALU.{_ALU_NAMES.get(self.alu_op, f'OP{self.alu_op}')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finish(Instruction):
    """End of the program; the last instruction, and nowhere else.

    The compute unit executes it, and it obeys its token flags. The run ends when it has retired, all queues
    are empty, all units idle and all writes done. Tokens may be left over.
    """

    OPCODE: ClassVar[Opcode] = Opcode.FINISH
    opcode: int = field(3, "operation", enum=Opcode, default=Opcode.FINISH)

    @property
    def unit(self) -> Unit:
        return Unit.COMPUTE

    @property
    def mnemonic(self) -> str:
        return "FINISH"


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown(Instruction):
    """A word whose opcode is none of the instruction set's; fetch stops at it."""

    @property
    def unit(self) -> Unit:
        return Unit.FETCH

    @property
    def mnemonic(self) -> str:
        return f"UNKNOWN{self.opcode}"


@dataclass(frozen=True, kw_only=True, slots=True)
class MicroOp:
    """One step of GEMM or ALU before the loops' offsets are added."""

    BITS: ClassVar[int] = 32

    dst: int = field(lambda c: c.acc_address_bits, "acc element")
    src: int = field(_source_bits, "inp element (GEMM) or acc element (ALU)")
    wgt: int = field(lambda c: c.wgt_address_bits, "wgt element (GEMM)")


CLASSES: dict[int, type[Instruction]] = {cls.OPCODE: cls for cls in (Load, Store, Gemm, Finish, Alu)}
"""Instruction class of each opcode."""


def field_specs(cls: type[Any]) -> dict[str, FieldSpec]:
    """The declared fields of an instruction or micro-op class, by name, in bit order."""
    return {f.name: f.metadata["isa"] for f in dataclasses.fields(cls) if "isa" in f.metadata}
