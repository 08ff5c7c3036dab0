"""The ALU."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add, or_
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from accel.core.alu_operations import LEFT, RIGHT, STOCK_NAMES, AluOp, Operation
from accel.core.config import Config
from accel.hw.datapath.gemm import ACC_BITS
from accel.hw.datapath.lane_values import lane_values
from accel.hw.datapath.register_copies import COPIES

_TOGETHER: dict[str, tuple[AluOp, ...]] = {
    "bound": (AluOp.MIN, AluOp.MAX),
    "add": (AluOp.ADD,),
    "shr": (AluOp.SHR,),
    "mul": (AluOp.MUL,),
}
"""Operations that share one result of a lane."""
assert sum(map(len, _TOGETHER.values())) == len(AluOp)


def own_operations(config: Config) -> dict[int, Operation]:
    return {code: one for code, one in config.operations.items() if one.name not in STOCK_NAMES}


def shared_results(config: Config) -> dict[str, tuple[int, ...]]:
    """Return each result of a lane by name, with the operations that share it. GEMM and MAC need the sum."""
    stock = {
        name: tuple(op for op in ops if op in config.operations or op == AluOp.ADD)
        for name, ops in _TOGETHER.items()
    }
    return {name: ops for name, ops in stock.items() if ops} | {
        f"own_{one.name}": (code,) for code, one in own_operations(config).items()
    }


def product_slots(config: Config) -> int:
    """Return the slots of MUL, or 1 if the machine lacks it."""
    return config.operations[AluOp.MUL].slots(config) if AluOp.MUL in config.operations else 1


class ControlLayout(data.StructLayout):
    """Control of a lane: one-hot selection of its result (0: none), the bound of MIN and MAX, and a bit per
    slot of MUL."""

    def __init__(self, config: Config) -> None:
        slots = product_slots(config)
        phase = {"phase": slots} if slots > 1 else {}
        super().__init__(dict.fromkeys(shared_results(config), 1) | {"largest": 1} | phase)


def control(m: Module, op: Value, config: Config, *, reset: Value, phase: Value | None = None) -> data.View:
    told = Signal(ControlLayout(config))
    m.d.comb += [
        *(
            getattr(told, name).eq(Cat(op == one for one in ops).any() & ~reset)
            for name, ops in shared_results(config).items()
        ),
        told.largest.eq(op == AluOp.MAX),
    ]
    if phase is not None:
        m.d.comb += told.phase.eq(1 << phase)
    return told


def group_of(lane: int, lanes: int) -> int:
    return lane * COPIES // lanes


class Alu(wiring.Component):
    """Computes ``result`` from the int32 lanes ``left`` and ``right`` in the same cycle, as ``control`` says.

    Each group of lanes has its own copy of ``control``. MUL takes ``mul_slots`` cycles, with constant
    operands.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lanes = config.batch * config.block_out
        self._slots = product_slots(config)
        bits = config.acc_element_bytes * 8
        super().__init__(
            {
                "control": In(data.ArrayLayout(ControlLayout(config), COPIES)),
                "left": In(bits),
                "right": In(bits),
                "result": Out(bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        lefts, rights = (
            [word.word_select(n, ACC_BITS).as_signed() for n in range(self._lanes)]
            for word in (self.left, self.right)
        )
        own = self._own_results(m, lefts, rights)
        multiplies = AluOp.MUL in self._config.operations
        for n, (left, right) in enumerate(zip(lefts, rights, strict=True)):
            told = self.control[group_of(n, self._lanes)]
            results = {name: values[n] for name, values in own.items()}
            if multiplies:
                several = self._slots > 1
                results["mul"] = self._product(m, told.phase, left, right) if several else left * right
            m.d.comb += self.result.word_select(n, ACC_BITS).eq(operate(m, told, left, right, results))
        return m

    def _own_results(
        self, m: Module, lefts: Sequence[Value], rights: Sequence[Value]
    ) -> dict[str, list[Value]]:
        found: dict[str, list[Value]] = {}
        width = self._config.block_out
        for one in own_operations(self._config).values():
            values: list[Value] = []
            for begin in range(0, self._lanes, width):
                rows = lefts[begin : begin + width], rights[begin : begin + width]
                values += operation_results(m, one, *rows)
            found[f"own_{one.name}"] = values
        return found

    def _product(self, m: Module, phase: Value, left: Value, right: Value) -> Value:
        """Return the low 32 bits of a product in the last slot.

        Every slot but the last multiplies 16-bit halves, every slot but the first accumulates. With a slot to
        spare, the factors come from registers.
        """
        half = ACC_BITS // 2
        parts = [(0, 0), (half, 0), (0, half)]
        registered = self._slots > len(parts) + 1
        late = 2 if registered else 1
        """Slots from a partial product's factors to its addition."""
        last = self._slots - late - 1
        count = -(-len(parts) // (last + 1))
        products, others = [], []
        for number in range(count):
            mine = {last - n: part for n, part in enumerate(parts[number::count])}
            factors = [
                _half(phase, {slot: part[n] for slot, part in mine.items()}, side)
                for n, side in enumerate((left, right))
            ]
            if registered:
                held = [Signal(half, name=f"factor_{n}", reset_less=True) for n in range(len(factors))]
                m.d.sync += [one.eq(factor) for one, factor in zip(held, factors, strict=True)]
                factors = held
            product = Signal(2 * half, reset_less=True)
            m.d.sync += product.eq(factors[0] * factors[1])
            products.append(product)
            if len(mine) > 1:
                others.append(product[:half])
        lower, upper = (
            products[0][:half],
            reduce(add, (one[:half] for one in products[1:]), products[0][half:]),
        )
        if others:
            total = Signal(half, reset_less=True)
            m.d.sync += total.eq(reduce(add, others, Mux(phase[late], 0, total)))
            upper = upper + total
        return Cat(lower, upper[:half])


def _half(phase: Value, begins: Mapping[int, int], value: Value) -> Value:
    high = [phase[slot] for slot, begin in begins.items() if begin]
    low = value[: ACC_BITS // 2]
    return Mux(Cat(high).any(), value[ACC_BITS // 2 :], low) if high else low


def operation_results(
    m: Module, operation: Operation, lefts: Sequence[Value], rights: Sequence[Value], **options: Any
) -> list[Value]:
    """Return an operation's int32 results in a row of lanes, in the last slot of a micro-op."""
    if operation.datapath is not None:
        return [operation.datapath(m, *operands) for operands in zip(lefts, rights, strict=True)]
    inputs = {LEFT: lefts, RIGHT: rights}
    values = lane_values(m, operation.expression, inputs, stages=operation.stages, **options)
    return [_extended(value) for value in values]


def _extended(value: Value) -> Value:
    sign = value[-1] if value.shape().signed else Const(0, 1)
    return Cat(value, sign.replicate(max(0, ACC_BITS - len(value))))


def operate(m: Module, told: data.View, left: Value, right: Value, results: Mapping[str, Value]) -> Value:
    """Return the selected result's low 32 bits, or 0. ``results`` are those that one lane cannot compute
    alone in one slot."""
    wanted = told.shape().members
    every: dict[str, Value] = {}
    if "bound" in wanted:
        every["bound"] = Mux(told.largest ^ (left < right), left, right)
    every["add"] = left + right
    if "shr" in wanted:
        every["shr"] = _shift(m, left, right)
    every |= results
    return reduce(or_, (Mux(getattr(told, name), value[:ACC_BITS], 0) for name, value in every.items()))


def _shift(m: Module, left: Value, right: Value) -> Value:
    """Shift right arithmetically by ``right``, or left if it is negative. Amounts beyond the width saturate.

    Both directions rotate right by the amount modulo the width. The left shift's result is the bits that
    wrapped around, the right shift's the others.
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
