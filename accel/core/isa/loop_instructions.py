"""The instructions that run micro-ops."""

from typing import ClassVar

from accel.core.alu_operations import AluOp, OperationCode
from accel.core.isa.field_widths import ALU_OP_BITS, FIRST_HIGH_OP, IMMEDIATE_BITS, LOOP_BITS, OPCODE_BITS
from accel.core.isa.instruction_base import Instruction
from accel.core.isa.instruction_fields import field
from accel.core.isa.opcodes import Opcode
from accel.core.isa.operands import Operand
from accel.core.scratchpad_specs import ACC, INP, UOP, WGT
from accel.core.units import Unit


class Loops(Instruction):
    """The fields that GEMM, MAC and ALU share: a range of micro-ops and two loops around it.

    Each iteration runs all micro-ops of the range strictly in order. Both loops add their factors to the
    index of each operand: ``for i < iter_out, j < iter_in, u in [uop_begin, uop_end): dst = u.dst + i *
    dst_factor_out + j * dst_factor_in``, and in the same way src and wgt. For example, with ``iter_out=2
    iter_in=3 dst_factor_out=3 dst_factor_in=1`` a micro-op with dst 0 uses the elements 0, 1, 2, 3, 4, 5.
    The instruction does nothing if an iteration count is zero or ``uop_begin >= uop_end``.
    """

    OPERANDS: ClassVar[tuple[Operand, ...]]
    """The operands that micro-ops index."""

    uop_begin: int = field(UOP.address_bits, "first micro-op", "micro-ops")
    uop_end: int = field(lambda c: UOP.address_bits(c) + 1, "one after the last micro-op", "micro-ops")
    iter_out: int = field(LOOP_BITS, "iterations of the outer loop", "iterations", default=1)
    iter_in: int = field(LOOP_BITS, "iterations of the inner loop", "iterations", default=1)
    dst_factor_out: int = field(ACC.address_bits, "added to dst per outer iteration", "acc elements")
    dst_factor_in: int = field(ACC.address_bits, "added to dst per inner iteration", "acc elements")

    @property
    def unit(self) -> Unit:
        return Unit.COMPUTE

    @property
    def uop_count(self) -> int:
        """Micro-ops that the instruction executes."""
        return self.iter_out * self.iter_in * max(0, self.uop_end - self.uop_begin)


class Products(Loops):
    """The fields that GEMM and MAC share: the loop factors of their two inputs."""

    src_factor_out: int = field(INP.address_bits, "added to src per outer iteration", "inp elements")
    src_factor_in: int = field(INP.address_bits, "added to src per inner iteration", "inp elements")
    wgt_factor_out: int = field(WGT.address_bits, "added to wgt per outer iteration", "wgt elements")
    wgt_factor_in: int = field(WGT.address_bits, "added to wgt per inner iteration", "wgt elements")

    @property
    def multiplies(self) -> bool:
        """Whether the micro-ops multiply."""
        raise NotImplementedError

    @property
    def accumulates(self) -> bool:
        """Whether the micro-ops add to the old accumulators."""
        raise NotImplementedError


class Gemm(Products):
    """``acc[dst][b][o] += sum over k of inp[src][b][k] * wgt[wgt][o][k]``, wrapping at 32 bits.

    With ``reset`` the micro-op writes zeros instead: ``acc[dst] = 0``. Its src and wgt are then ignored
    and not checked.
    """

    OPCODE: ClassVar[Opcode] = Opcode.GEMM
    OPERANDS: ClassVar[tuple[Operand, ...]] = (
        Operand(name="dst", memory=ACC, writes=True, unless="reset"),
        Operand(name="src", memory=INP, unless="reset"),
        Operand(name="wgt", memory=WGT, unless="reset"),
    )
    opcode: int = field(OPCODE_BITS, "operation", enum=Opcode, default=Opcode.GEMM)
    reset: bool = field(1, "write zeros and do not multiply", default=False, before="uop_begin")

    @property
    def multiplies(self) -> bool:
        return not self.reset

    @property
    def accumulates(self) -> bool:
        return not self.reset

    @property
    def mnemonic(self) -> str:
        return "GEMM"


class Mac(Products):
    """``acc[dst][b][o] += sum over k of inp[src][b][k] * wgt[wgt][o][k]``, wrapping at 32 bits, as GEMM.

    With ``overwrite`` the sum replaces the old value, which is not read: ``acc[dst][b][o] = sum over k``.
    If several micro-ops have the same dst, the last one wins.

    With ``depthwise`` each channel has its own sum over ``taps`` elements of inp, ``step`` elements apart:
    ``acc[dst][b][o] += sum over t < taps of inp[src + t * step][b][o] * wgt[wgt][o][t]``. SET.ACC sets
    ``taps`` and ``step``. All these elements of inp must exist. Columns of the wgt element from ``taps`` on
    are ignored. For example, with ``taps=3 step=1`` a micro-op multiplies three neighbouring pixels by one
    row of a 3x3 kernel. Depthwise MACs exist only where ``block_in`` equals ``block_out``.
    """

    OPCODE: ClassVar[Opcode] = Opcode.MAC
    REQUIRES: ClassVar[str] = "post"
    OPERANDS: ClassVar[tuple[Operand, ...]] = (
        Operand(name="dst", memory=ACC, writes=True, unless="overwrite"),
        Operand(name="src", memory=INP, tapped="depthwise"),
        Operand(name="wgt", memory=WGT),
    )
    opcode: int = field(OPCODE_BITS, "operation", enum=Opcode, default=Opcode.MAC)
    overwrite: bool = field(1, "replace the old value by the sum", default=False, before="uop_begin")
    depthwise: bool = field(1, "compute one sum per channel, over the taps of SET.ACC", default=False, at=63)

    @property
    def multiplies(self) -> bool:
        return True

    @property
    def accumulates(self) -> bool:
        return not self.overwrite

    @property
    def mnemonic(self) -> str:
        return "MAC"


class Alu(Loops):
    """``acc[dst] = op(acc[dst], imm if use_imm else acc[src])`` on int32.

    A machine has the operations that its field ``alu_ops`` names. ADD and MUL wrap at 32 bits. SHR is an
    arithmetic shift, a negative amount shifts left. A right shift by 31 or more leaves the sign, a left
    shift by 32 or more leaves zero. With ``use_imm`` the micro-op's src is ignored and not checked.
    ``reset`` is ignored. Each micro-op reads the results of earlier ones.
    """

    OPCODE: ClassVar[Opcode] = Opcode.ALU
    OPERANDS: ClassVar[tuple[Operand, ...]] = (
        Operand(name="dst", memory=ACC, writes=True),
        Operand(name="src", memory=ACC, unless="use_imm"),
    )
    opcode: int = field(OPCODE_BITS, "operation", enum=Opcode, default=Opcode.ALU)
    reset: bool = field(1, "ignored", default=False, before="uop_begin")
    src_factor_out: int = field(ACC.address_bits, "added to src per outer iteration", "acc elements")
    src_factor_in: int = field(ACC.address_bits, "added to src per inner iteration", "acc elements")
    alu_op: int = field(ALU_OP_BITS, "operation, see below", enum=AluOp)
    use_imm: bool = field(1, "the second operand is `imm` instead of `acc[src]`", default=False)
    imm: int = field(IMMEDIATE_BITS, "second operand if `use_imm`", signed=True)

    @property
    def mnemonic(self) -> str:
        code = self.alu_op
        if isinstance(code, OperationCode):
            return f"ALU.{code.name}"
        return f"ALU.{AluOp(code).name}" if code in _VTA_CODES else f"ALU.OP{code}"


_VTA_CODES = frozenset(AluOp)


class AluHigh(Alu):
    """ALU for operation numbers 8 to 15. A machine has it if it has an operation 8.

    All fields are those of ALU. ``alu_op`` holds the number less 8. For example, 0 is operation 8.
    """

    OPCODE: ClassVar[Opcode] = Opcode.ALU_HIGH
    opcode: int = field(OPCODE_BITS, "operation", enum=Opcode, default=Opcode.ALU_HIGH)
    alu_op: int = field(
        ALU_OP_BITS,
        "operation, less 8",
        enum=AluOp,
        default=FIRST_HIGH_OP,
        base=FIRST_HIGH_OP,
    )


def alu_of(code: int) -> type[Alu]:
    return Alu if code < FIRST_HIGH_OP else AluHigh
