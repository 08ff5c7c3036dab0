"""The ALU's lanes compute what the operations declare."""

from functools import partial
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from msgspec import Struct

from accel.core.alu_operations import LEFT, RIGHT, Operation
from accel.core.config import NAMED, Config
from accel.core.lane_expressions import Lane
from accel.hw.datapath import alu
from accel.hw.datapath.gemm import ACC_BITS
from accel.hw.datapath.lane_values import lane_value, lane_values
from accel.hw.formal.claims import Claims, Proof

_LANES = 4
"""Lanes for operations that cross lanes."""


class OneLane(wiring.Component):
    """One lane of the ALU with its control, for VTA's operations in one slot."""

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__({"op": In(3), "left": In(ACC_BITS), "right": In(ACC_BITS), "result": Out(ACC_BITS)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        left, right = self.left.as_signed(), self.right.as_signed()
        told = alu.control(m, self.op, self._config, reset=self.op >= len(self._config.operations))
        m.d.comb += self.result.eq(alu.operate(m, told, left, right, {"mul": left * right}))
        return m


def operations() -> Claims:
    """Claim the result of each of VTA's operations."""
    config = NAMED["tiny"].override({"mul_slots": 1})
    lane = OneLane(config)
    claims = Claims(lane)
    inputs = {LEFT: lane.left.as_signed(), RIGHT: lane.right.as_signed()}
    for code, one in config.operations.items():
        wanted = lane_value(one.expression, inputs)
        claims.claim(one.mnemonic, (lane.op != int(code)) | (lane.result.as_signed() == wanted))
    return claims


class OperationRow(wiring.Component):
    """The hardware of one operation in a row of lanes."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self.products: dict[tuple[int, int], _Product] = {}
        self._lanes = _LANES if operation.crosses_lanes else 1
        bits = self._lanes * ACC_BITS
        super().__init__({"left": In(bits), "right": In(bits), "result": Out(bits)})

    @property
    def operands(self) -> dict[str, list[Any]]:
        return {
            name: [word.word_select(n, ACC_BITS).as_signed() for n in range(self._lanes)]
            for name, word in ((LEFT, self.left), (RIGHT, self.right))
        }

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        replaced = {"multiply": self._product}
        results = alu.operation_results(m, self._operation, *self.operands.values(), replaced=replaced)
        m.d.comb += self.result.eq(Cat(results))
        return m

    def _product(self, node: Lane, lane: int, left: Value, right: Value) -> Value:
        """Return the declared product of equal factors, and anything for others."""
        declared = self.products[id(node), lane]
        is_same = (left == declared.left) & (right == declared.right)
        return Mux(is_same, declared.value, declared.other).as_signed()


class _Product(Struct, frozen=True):
    left: Value
    right: Value
    value: Signal
    other: Signal


def one_operation(operation: Operation) -> Claims:
    """Claim an operation's result after its stages, in which the operands are constant.

    No solver can multiply 32 by 32 bits. So an arbitrary value replaces each product of the declaration, and
    the hardware's product of the same factors.
    """
    row = OperationRow(operation)

    def product(node: Lane, lane: int, left: Value, right: Value) -> Value:
        names = (f"{name}_{len(row.products)}" for name in ("product", "other"))
        value, other = (Signal(signed(node.width), name=name) for name in names)
        row.products[id(node), lane] = _Product(left, right, value, other)
        return value

    wanted = lane_values(None, operation.expression, row.operands, replaced={"multiply": product})
    claims = Claims(row)
    age = claims.register(range(operation.stages + 1), "age")
    claims.follows(age, Mux(age == operation.stages, age, age + 1))
    for one in row.products.values():
        claims.undriven(one.value)
        claims.undriven(one.other)
    for constant in (row.left, row.right, *(one.value for one in row.products.values())):
        claims.assume(~claims.begun | (claims.before(constant) == constant))
    for n, value in enumerate(wanted):
        result = row.result.word_select(n, ACC_BITS).as_signed()
        claims.claim(f"{operation.mnemonic}, lane {n}", (age < operation.stages) | (result == value))
    return claims


def proof_of(operation: Operation) -> Proof:
    return Proof(
        name=f"alu: {operation.name}",
        statement=f"the hardware of {operation.mnemonic} computes its declaration in slot "
        f"{operation.stages}, for all operands",
        build=partial(one_operation, operation),
        depth=operation.stages + 1,
    )


PROOFS = (
    Proof(
        name="alu",
        statement="each lane of the ALU computes the declared result of each operation, for all operands",
        build=operations,
    ),
)
