"""The hardware of an expression over a lane's integers."""

from collections.abc import Callable, Mapping

from amaranth.hdl import Const, Mux, Value

from accel.core.lane_expressions import Lane

_VALUES: dict[str, Callable[..., Value]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "shift_left": lambda a, b: a << b.as_unsigned(),
    "shift_right": lambda a, b: a >> b.as_unsigned(),
    "less": lambda a, b: a < b,
    "minimum": lambda a, b: Mux(a < b, a, b),
    "maximum": lambda a, b: Mux(a < b, b, a),
    "select": lambda condition, then, otherwise: Mux(condition != 0, then, otherwise),
}


def lane_value(node: Lane, inputs: Mapping[str, Value]) -> Value:
    """Return the value of an expression as combinational logic.

    Args:
        inputs: the operands by name, signed.
    """
    return _built(node, inputs, {})


def _built(node: Lane, inputs: Mapping[str, Value], known: dict[int, Value]) -> Value:
    if id(node) not in known:
        known[id(node)] = _narrowed(node, _computed(node, inputs, known))
    return known[id(node)]


def _computed(node: Lane, inputs: Mapping[str, Value], known: dict[int, Value]) -> Value:
    if node.kind == "input":
        return inputs[node.parameter]
    if node.kind == "constant":
        return Const(node.parameter)
    operands = [_built(one, inputs, known) for one in node.operands]
    return operands[0] if node.kind == "wrapped" else _VALUES[node.kind](*operands)


def _narrowed(node: Lane, value: Value) -> Value:
    """Return the bits that the node's values need. Others repeat the sign or are zero."""
    width = max(1, node.width)
    bits = value[:width] if len(value) >= width else value
    if node.low >= 0:
        return bits.as_unsigned() if len(value) >= width else value
    return bits.as_signed() if len(value) >= width else value
