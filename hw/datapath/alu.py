"""The ALU: one operation on all lanes of an accumulator element."""

from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.isa import AluOp
from accel.hw.datapath.gemm import ACC_BITS


class Alu(wiring.Component):
    """``result = op(left, right)`` on int32 lanes, in the same cycle."""

    def __init__(self, config: Config) -> None:
        self._lanes = config.batch * config.block_out
        bits = config.acc_element_bytes * 8
        super().__init__({"op": In(3), "left": In(bits), "right": In(bits), "result": Out(bits)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        for n in range(self._lanes):
            left = self.left.word_select(n, ACC_BITS).as_signed()
            right = self.right.word_select(n, ACC_BITS).as_signed()
            m.d.comb += self.result.word_select(n, ACC_BITS).eq(operate(m, self.op, left, right))
        return m


def operate(m: Module, op: Value, left: Value, right: Value) -> Value:
    """The low 32 bits of one lane's result."""
    results = {
        AluOp.MIN: Mux(left < right, left, right),
        AluOp.MAX: Mux(left < right, right, left),
        AluOp.ADD: left + right,
        AluOp.SHR: _shift(m, left, right),
        AluOp.MUL: (left * right)[:ACC_BITS],
    }
    return Array(results[AluOp(n)] for n in range(len(AluOp)))[op]


def _shift(m: Module, left: Value, right: Value) -> Value:
    """Arithmetic shift right by ``right``, left if it is negative; amounts beyond the width saturate."""
    down = Signal(5)
    up = Signal(6)
    distance = Signal(signed(ACC_BITS + 1))
    m.d.comb += [
        distance.eq(-right),
        down.eq(Mux(right > ACC_BITS - 1, ACC_BITS - 1, right)),
        up.eq(Mux(distance > ACC_BITS, ACC_BITS, distance)),
    ]
    return Mux(right < 0, (left << up)[:ACC_BITS].as_signed(), left >> down)
