"""The ALU: one operation on all lanes of an accumulator element."""

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.isa import AluOp
from accel.core.isa.instructions import ALU_OP_BITS
from accel.hw.datapath.gemm import ACC_BITS


class Alu(wiring.Component):
    """``result = op(left, right)`` on int32 lanes, or 0 with ``reset``, in the same cycle.

    MUL takes ``mul_slots`` cycles; of several, a bit of ``phase`` each says which it is. The operands hold
    still, and the result is there in the last one.
    """

    def __init__(self, config: Config) -> None:
        self._lanes = config.batch * config.block_out
        self._slots = config.mul_slots
        bits = config.acc_element_bytes * 8
        super().__init__(
            {
                "op": In(ALU_OP_BITS),
                "reset": In(1),
                **({"phase": In(config.mul_slots)} if config.mul_slots > 1 else {}),
                "left": In(bits),
                "right": In(bits),
                "result": Out(bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        for n in range(self._lanes):
            left = self.left.word_select(n, ACC_BITS).as_signed()
            right = self.right.word_select(n, ACC_BITS).as_signed()
            product = left * right if self._slots == 1 else self._product(m, left, right)
            result = operate(m, self.op, left, right, product, none=self.reset)
            m.d.comb += self.result.word_select(n, ACC_BITS).eq(result)
        return m

    def _product(self, m: Module, left: Value, right: Value) -> Value:
        """The low 32 bits of a product, in the last of several slots.

        Of the halves' products three matter. In each slot but the last one some of them are multiplied, by as
        few multipliers as do; in each but the first one they are added up.
        """
        half = ACC_BITS // 2
        parts = [(0, 0), (0, half), (half, 0)]
        count = -(-len(parts) // (self._slots - 1))
        total: Value = Signal(ACC_BITS)
        found = Mux(self.phase[1], 0, total)
        for number in range(count):
            mine = dict(enumerate(parts[number::count]))
            factors = [
                _chosen(self.phase, {slot: side[part[n] :][:half] for slot, part in mine.items()})
                for n, side in enumerate((left, right))
            ]
            shifted = _chosen(self.phase, {slot + 1: Const(int(any(part)), 1) for slot, part in mine.items()})
            product = Signal(2 * half)
            m.d.sync += product.eq(factors[0] * factors[1])
            found = found + Mux(shifted, product << half, product)
        m.d.sync += total.eq(found)
        return found[:ACC_BITS]


def _chosen(phase: Value, values: Mapping[int, Value]) -> Value:
    """The value of a phase; anything in others."""
    (_, found), *others = values.items()
    for number, value in others:
        found = Mux(phase[number], value, found)
    return found


def operate(m: Module, op: Value, left: Value, right: Value, product: Value, *, none: Value) -> Value:
    """The low 32 bits of one lane's result: what each operation makes of the operands, if it is that one, or
    0 if it is ``none``."""
    less = (op == AluOp.MAX) ^ (left < right)
    results = {
        (AluOp.MIN, AluOp.MAX): Mux(less, left, right),
        (AluOp.ADD,): (left + right)[:ACC_BITS],
        (AluOp.SHR,): _shift(m, left, right),
        (AluOp.MUL,): product[:ACC_BITS],
    }
    assert sum(len(ops) for ops in results) == len(AluOp)
    parts = []
    for ops, value in results.items():
        chosen = Signal(name="chosen_" + "_".join(one.name.lower() for one in ops))
        m.d.comb += chosen.eq(Cat(op == one for one in ops).any() & ~none)
        parts.append(Mux(chosen, value[:ACC_BITS], 0))
    return reduce(or_, parts)


def _shift(m: Module, left: Value, right: Value) -> Value:
    """Arithmetic shift right by ``right``, left if it is negative; amounts beyond the width saturate.

    In both directions bits are rotated right by the amount modulo the width. Of the result, the upper bits,
    as many as that, are those that went round: they count in a shift to the left, the others in one to the
    right.
    """
    bits = (ACC_BITS - 1).bit_length()
    up, low, high = right[-1], right[:bits], right[bits:-1]
    sign, beyond = Signal(), Signal()
    m.d.comb += [
        sign.eq(left[-1] & ~up),
        beyond.eq(Mux(up, ~high.all() | (low == 0), high.any())),
    ]
    value: Value = left
    for bit in range(bits):
        rotated = Signal(ACC_BITS, name=f"rotated_{bit}")
        m.d.comb += rotated.eq(Mux(low[bit], value.rotate_right(1 << bit), value))
        value = rotated
    counts = Signal(ACC_BITS)
    m.d.comb += counts.eq(Cat(((low >= ACC_BITS - n) == up) & ~beyond for n in range(ACC_BITS)))
    return (value & counts) | (sign.replicate(ACC_BITS) & ~counts)
