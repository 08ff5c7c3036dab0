"""The hardware of an expression over the integers of a row of lanes.

The operands of a micro-op are constant in its slots. So a register anywhere in an expression delays a value,
and never mixes two micro-ops: after ``stages`` registers on a path, the result is right in slot ``stages``.
Each node has a delay, and a register follows a node where the delay from the operands passes a multiple of
the longest delay divided by ``stages + 1``.
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, log2
from operator import add

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value

from accel.core.lane_expressions import CROSS_LANE_KINDS, Lane, nodes_of

_VALUES: dict[str, Callable[..., Value]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "shift_left": lambda a, b: a << b.as_unsigned(),
    "shift_right": lambda a, b: a >> b.as_unsigned(),
    "less": lambda a, b: a < b,
    "equal": lambda a, b: a == b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "minimum": lambda a, b: Mux(a < b, a, b),
    "maximum": lambda a, b: Mux(a < b, b, a),
    "select": lambda condition, then, otherwise: Mux(condition != 0, then, otherwise),
}
_OF_ROWS: dict[str, Callable[[Sequence[Value]], Value]] = {
    "lane_sum": lambda values: _tree(add, values),
    "lane_maximum": lambda values: _tree(_VALUES["maximum"], values),
    "lane_minimum": lambda values: _tree(_VALUES["minimum"], values),
}


def _tree(function: Callable[[Value, Value], Value], values: Sequence[Value]) -> Value:
    """Combine values two by two, so that a result is ``log2`` of their number deep."""
    while len(values) > 1:
        pairs = [function(*values[n : n + 2]) for n in range(0, len(values) - 1, 2)]
        values = [*pairs, *values[2 * len(pairs) :]]
    return values[0]


def lane_value(node: Lane, inputs: Mapping[str, Value]) -> Value:
    """Return the value of an expression in one lane as combinational logic.

    Args:
        inputs: the operands by name, signed.
    """
    (value,) = lane_values(None, node, {name: [one] for name, one in inputs.items()})
    return value


Multiply = Callable[[Lane, int, Value, Value], Value]
"""Returns the product of a node in a lane. A proof replaces products, which no solver can multiply."""


def lane_values(
    m: Module | None,
    node: Lane,
    inputs: Mapping[str, Sequence[Value]],
    *,
    stages: int = 0,
    multiply: Multiply = lambda node, lane, a, b: a * b,
) -> list[Value]:
    """Return the values of an expression in all lanes of a row.

    Args:
        m: the module that gets the registers, or None without stages.
        inputs: the operands of each lane by name, signed.
        stages: registers on the way from the operands to the results.
    """
    lanes = len(next(iter(inputs.values())))
    at = stages_of(node, stages, lanes)
    known: dict[int, list[Value]] = {}
    held: dict[int, list[Value]] = {}
    for one in nodes_of(node):
        operands = []
        for operand in one.operands:
            values = known[id(operand)]
            if at[id(operand)] < at[id(one)] and operand.operands:
                if id(operand) not in held:
                    assert m is not None
                    held[id(operand)] = [_register(m, operand.kind, value) for value in values]
                values = held[id(operand)]
            operands.append(values)
        known[id(one)] = _narrowed_row(one, inputs, operands, lanes, multiply)
    return known[id(node)]


def _register(m: Module, name: str, value: Value) -> Value:
    register = Signal(value.shape(), name=name, reset_less=True)
    m.d.sync += register.eq(value)
    return register


def stages_of(node: Lane, stages: int, lanes: int) -> dict[int, int]:
    """Return the stage of each node by its id: 0 to ``stages``, the number of registers before it."""
    arrival: dict[int, float] = {}
    nodes = nodes_of(node)
    for one in nodes:
        before = max((arrival[id(operand)] for operand in one.operands), default=0.0)
        arrival[id(one)] = before + _delay(one, lanes)
    part = arrival[id(node)] / (stages + 1)
    at: dict[int, int] = {}
    for one in nodes:
        earliest = max((at[id(operand)] for operand in one.operands), default=0)
        centre = arrival[id(one)] - _delay(one, lanes) / 2
        at[id(one)] = max(earliest, min(stages, int(centre / part))) if part and one.operands else 0
    return at


_MULTIPLY_DELAY = 6.0
_CARRY_DELAY = 0.05
"""Delay of a bit of a carry chain, and of a product, where a level of logic has the delay 1."""


def _delay(node: Lane, lanes: int) -> float:
    """Return the estimated delay of a node, in levels of logic."""
    width = max((operand.width for operand in node.operands), default=0)
    carry = 1 + _CARRY_DELAY * width
    if node.kind in ("input", "constant", "wrapped"):
        return 0.0
    if node.kind in ("and", "or", "xor", "select"):
        return 1.0
    if node.kind == "multiply":
        return _MULTIPLY_DELAY
    if node.kind in ("shift_left", "shift_right"):
        amount = node.operands[1]
        return 0.0 if amount.kind == "constant" else float(amount.width)
    if node.kind == "leading_zeros":
        return float(ceil(log2(max(2, width)))) + 1
    if node.kind == "lookup":
        return width / 2 + 1
    if node.kind in CROSS_LANE_KINDS:
        each = carry if node.kind == "lane_sum" else carry + 1
        return each * ceil(log2(max(1, lanes)))
    return carry + (node.kind in ("minimum", "maximum"))


def _narrowed_row(
    node: Lane,
    inputs: Mapping[str, Sequence[Value]],
    operands: Sequence[Sequence[Value]],
    lanes: int,
    multiply: Multiply,
) -> list[Value]:
    if node.kind == "multiply":
        pairs = enumerate(zip(*operands, strict=True))
        return [_narrowed(node, multiply(node, lane, a, b)) for lane, (a, b) in pairs]
    if node.kind in _OF_ROWS:
        return [_narrowed(node, _OF_ROWS[node.kind](operands[0]))] * lanes
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
    """Return the zeros before the first one, half of the bits at a time."""
    size = 1 << (width - 1).bit_length()
    bits = [*value[:width], *[Const(0, 1)] * (width - len(value[:width]))]
    padded = [*[Const(1, 1)] * (size - width), *bits]  # a one below the bits ends the count at ``width``
    return _zeros_before_one([(bit, Const(0, 0)) for bit in padded])


def _zeros_before_one(parts: list[tuple[Value, Value]]) -> Value:
    """Combine parts of equal size, lowest first, each whether it has a one and the zeros above it."""
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
    """Return the bits that the node's values need. Others repeat the sign or are zero."""
    width = max(1, node.width)
    bits = value[:width] if len(value) >= width else value
    if node.low >= 0:
        return bits.as_unsigned() if len(value) >= width else value
    return bits.as_signed() if len(value) >= width else value
