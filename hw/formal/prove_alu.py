"""The ALU's lanes compute what the operations declare."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.alu_operations import LEFT, OPERATIONS, RIGHT
from accel.core.config import NAMED
from accel.hw.datapath import alu
from accel.hw.datapath.gemm import ACC_BITS
from accel.hw.datapath.lane_values import lane_value
from accel.hw.formal.claims import Claims, Proof


class OneLane(wiring.Component):
    """One lane of the ALU with its control, for products of one slot."""

    def __init__(self) -> None:
        super().__init__({"op": In(3), "left": In(ACC_BITS), "right": In(ACC_BITS), "result": Out(ACC_BITS)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = NAMED["tiny"].override({"mul_slots": 1})
        left, right = self.left.as_signed(), self.right.as_signed()
        told = alu.control(m, self.op, config, reset=self.op >= len(OPERATIONS))
        m.d.comb += self.result.eq(alu.operate(m, told, left, right, left * right))
        return m


def operations() -> Claims:
    """Claim the result of each operation for all operands."""
    lane = OneLane()
    claims = Claims(lane)
    inputs = {LEFT: lane.left.as_signed(), RIGHT: lane.right.as_signed()}
    for one in OPERATIONS:
        wanted = lane_value(one.expression, inputs)
        claims.claim(one.code.name, (lane.op != one.code) | (lane.result.as_signed() == wanted))
    return claims


PROOFS = (
    Proof(
        name="alu",
        statement="each lane of the ALU computes the declared result of each operation, for all operands",
        build=operations,
    ),
)
