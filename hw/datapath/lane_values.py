"""The hardware of an expression over the integers of a row of lanes.

A micro-op's operands are constant in its slots. So a register in an expression only delays a value: after
``stages`` registers on a path, the result is right in slot ``stages``. A register follows each node where the
delay from the operands passes a multiple of the longest delay divided by ``stages + 1``.
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, log2
from operator import add

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value

from accel.core.lane_expressions import CROSS_LANE_KINDS, Lane, nodes_of


def quotient_parts(value: Value, amount: Value) -> Value:
    """Return ``value / 2**amount`` with two bits after the integer part: the half, and whether any lower bit
    is set (sticky). It is signed if the value is."""
    doubled: Value = Cat(Const(0, 1), value)
    doubled = doubled.as_signed() if value.shape().signed else doubled
    rest = doubled & ((Const(1) << amount.as_unsigned()) - 1)
    parts = Cat(rest.any(), doubled >> amount.as_unsigned())
    return parts.as_signed() if value.shape().signed else parts


def nearest_even(parts: Value) -> Value:
    """Return the integer nearest to a quotient in parts, half to even."""
    whole: Value = parts[2:].as_signed() if parts.shape().signed else parts[2:]
    return whole + (parts[1] & (parts[0] | parts[2]))


_VALUES: dict[str, Callable[..., Value]] = {
    "round_even": lambda a, b: nearest_even(quotient_parts(a, b)),
    "multiply": lambda a, b: a * b,
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "shift_left": lambda a, b: a << b.as_unsigned(),
    "shift_right": lambda a, b: a >> b.as_unsigned(),
    "absolute": lambda a: Mux(a < 0, -a, a),
    "less": lambda a, b: a < b,
    "equal": lambda a, b: a == b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "minimum": lambda a, b: Mux(a < b, a, b),
    "maximum": lambda a, b: Mux(a < b, b, a),
    "select": lambda condition, then, otherwise: Mux(condition != 0, then, otherwise),
}
_OF_PAIRS: dict[str, Callable[[Value, Value], Value]] = {
    "lane_sum": add,
    "lane_maximum": _VALUES["maximum"],
    "lane_minimum": _VALUES["minimum"],
}


def _tree(m: Module | None, kind: str, values: Sequence[Value], at: Sequence[int]) -> Value:
    """Combine values two by two. ``at`` is the stage of each level."""
    before = at[0] if at else 0
    for stage in at:
        if stage > before:
            values = _registers(m, kind, values)
        pairs = [_OF_PAIRS[kind](*values[n : n + 2]) for n in range(0, len(values) - 1, 2)]
        values = [*pairs, *values[2 * len(pairs) :]]
        before = stage
    (result,) = values
    return result


Replaced = Mapping[str, Callable[..., Value]]
"""By kind of node, a function of node, lane and operands that replaces its value. Proofs replace products."""


def lane_value(node: Lane, inputs: Mapping[str, Value], replaced: Replaced | None = None) -> Value:
    """Return an expression's value in one lane as combinational logic of signed ``inputs``."""
    row = {name: [one] for name, one in inputs.items()}
    (value,) = lane_values(None, node, row, replaced=replaced)
    return value


def lane_values(
    m: Module | None,
    node: Lane,
    inputs: Mapping[str, Sequence[Value]],
    *,
    stages: int = 0,
    replaced: Replaced | None = None,
) -> list[Value]:
    """Return an expression's values in all lanes of a row.

    Args:
        m: the module for the registers, or None without stages.
        inputs: each lane's operands by name, signed.
    """
    lanes = len(next(iter(inputs.values())))
    at = stages_of(node, stages, lanes)
    known: dict[int, list[Value]] = {}
    held: dict[int, list[Value]] = {}
    for one in nodes_of(node):
        operands = []
        for operand in one.operands:
            values = known[id(operand)]
            if at[id(operand)][-1] < at[id(one)][0] and operand.operands:
                if id(operand) not in held:
                    held[id(operand)] = _registers(m, operand.kind, values)
                values = held[id(operand)]
            operands.append(values)
        if one.kind in CROSS_LANE_KINDS:
            levels = at[id(one)] if lanes > 1 else ()
            known[id(one)] = [_narrowed(one, _tree(m, one.kind, operands[0], levels))] * lanes
        else:
            known[id(one)] = _narrowed_row(one, inputs, operands, lanes, replaced or {})
    return known[id(node)]


def _registers(m: Module | None, name: str, values: Sequence[Value]) -> list[Value]:
    assert m is not None
    found: list[Value] = []
    for value in values:
        register = Signal(value.shape(), name=name, reset_less=True)
        m.d.sync += register.eq(value)
        found.append(register)
    return found


def stages_of(node: Lane, stages: int, lanes: int) -> dict[int, tuple[int, ...]]:
    """Return each node's stage by id: 0 to ``stages``, the registers before it.

    A reduction over lanes has a stage for each level of its tree, any other node one.
    """
    arrival: dict[int, float] = {}
    nodes = nodes_of(node)
    for one in nodes:
        before = max((arrival[id(operand)] for operand in one.operands), default=0.0)
        arrival[id(one)] = before + _delay(one) * _levels(one, lanes)
    part = arrival[id(node)] / (stages + 1)
    at: dict[int, tuple[int, ...]] = {}
    for one in nodes:
        latest = max((at[id(operand)][-1] for operand in one.operands), default=0)
        found = []
        for level in range(_levels(one, lanes)):
            centre = arrival[id(one)] - _delay(one) * (_levels(one, lanes) - level - 0.5)
            latest = max(latest, min(stages, int(centre / part))) if part and one.operands else 0
            found.append(latest)
        at[id(one)] = tuple(found)
    return at


def _levels(node: Lane, lanes: int) -> int:
    return max(1, ceil(log2(lanes))) if node.kind in CROSS_LANE_KINDS else 1


_MULTIPLY_DELAY = 6.0
_CARRY_DELAY = 0.05
"""Delays of a product, and of a bit of a carry chain, in levels of logic."""


def _delay(node: Lane) -> float:
    """Estimate the delay of a node, or of a level of a reduction, in levels of logic."""
    width = max((operand.width for operand in node.operands), default=0)
    carry = 1 + _CARRY_DELAY * width
    if node.kind in ("input", "constant", "wrapped"):
        return 0.0
    if node.kind in ("and", "or", "xor", "select"):
        return 1.0
    if node.kind == "multiply":
        return _MULTIPLY_DELAY
    if node.kind in ("shift_left", "shift_right", "round_even"):
        amount = node.operands[1]
        shifting = 0.0 if amount.kind == "constant" else float(amount.width)
        return shifting + (carry if node.kind == "round_even" else 0.0)
    if node.kind == "leading_zeros":
        return float(ceil(log2(max(2, width)))) + 1
    if node.kind == "lookup":
        return width / 2 + 1
    chooses = node.kind in ("minimum", "maximum", "lane_minimum", "lane_maximum")
    return carry + chooses


def _narrowed_row(
    node: Lane,
    inputs: Mapping[str, Sequence[Value]],
    operands: Sequence[Sequence[Value]],
    lanes: int,
    replaced: Replaced,
) -> list[Value]:
    if node.kind in replaced:
        rows = enumerate(zip(*operands, strict=True))
        return [_narrowed(node, replaced[node.kind](node, lane, *values)) for lane, values in rows]
    return [
        _narrowed(node, _computed(node, {name: row[lane] for name, row in inputs.items()}, values))
        for lane, values in enumerate(zip(*operands, strict=True) if operands else [()] * lanes)
    ]


def _computed(node: Lane, inputs: Mapping[str, Value], operands: Sequence[Value]) -> Value:
    if node.kind == "input":
        return inputs[node.parameter]
    if node.kind == "constant":
        return Const(node.parameter)
    if node.kind == "wrapped":
        return operands[0]
    if node.kind == "leading_zeros":
        return _leading_zeros(operands[0], node.parameter)
    if node.kind == "lookup":
        return Array(Const(entry, _shape(node)) for entry in node.parameter)[operands[0].as_unsigned()]
    return _VALUES[node.kind](*operands)


def _leading_zeros(value: Value, width: int) -> Value:
    size = 1 << (width - 1).bit_length()
    bits = [*value[:width], *[Const(0, 1)] * (width - len(value[:width]))]
    padded = [*[Const(1, 1)] * (size - width), *bits]  # a one below the bits ends the count at ``width``
    return _zeros_before_one([(bit, Const(0, 0)) for bit in padded])


def _zeros_before_one(parts: list[tuple[Value, Value]]) -> Value:
    """Combine parts of equal size, lowest first: whether each has a one, and the zeros above it."""
    size = 1
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [
            (low_any | high_any, Mux(high_any, high, low + size))
            for (low_any, low), (high_any, high) in pairs
        ]
        size *= 2
    any_one, zeros = parts[0]
    return Mux(any_one, zeros, size)


def _shape(node: Lane) -> object:
    return range(node.low, node.high + 1)


def _narrowed(node: Lane, value: Value) -> Value:
    """Return only the bits that the node's values need."""
    width = max(1, node.width)
    bits = value[:width] if len(value) >= width else value
    if node.low >= 0:
        return bits.as_unsigned() if len(value) >= width else value
    return bits.as_signed() if len(value) >= width else value
