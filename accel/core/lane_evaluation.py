"""The numpy function of a lane expression: a list of numpy calls, one for equal nodes."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from accel.core.lane_expressions import (
    CROSS_LANE_KINDS,
    Array,
    Lane,
    absolute,
    as_lane,
    equal,
    lane_maximum,
    lane_minimum,
    lane_sum,
    leading_zeros,
    lookup,
    maximum,
    minimum,
    nodes_of,
    rounded_shift,
    select,
    wrapped,
)

_EXACT_FLOAT_BITS = 52
"""Integers of up to 52 bits have an exact exponent as float64."""


def evaluate(node: Lane, inputs: Mapping[str, Any]) -> Array:
    """Compute an expression for arrays that broadcast.

    Args:
        inputs: int32 or int64 arrays by name. Their last dimension is the lanes of a row.

    Returns:
        int32 where all values of the node fit, otherwise int64.
    """
    names = list(inputs)
    return function_of(node, names)(*(np.asarray(inputs[name]) for name in names))


class _Step(NamedTuple):
    call: Callable[..., Any]
    operands: tuple[int, ...]


def function_of(node: Lane, names: Sequence[str]) -> Callable[..., Array]:
    """Return the numpy function of an expression, with these inputs in this order."""
    steps, result = _steps_of(node, names)
    dtype = _dtype(node)

    def function(*arrays: Any) -> Array:
        values: list[Any] = [*arrays, np.broadcast_shapes(*(np.shape(one) for one in arrays))]
        with np.errstate(over="ignore"):  # wrapping is intended
            for call, operands in steps:
                values.append(call(*[values[one] for one in operands]))
        return np.asarray(values[result]).astype(dtype, copy=False)

    return function


def _steps_of(node: Lane, names: Sequence[str]) -> tuple[list[_Step], int]:
    """Return the steps, and the position of the result among inputs, their common shape, and steps."""
    steps: list[_Step] = []
    shape_at = len(names)
    position: dict[int, int] = {}
    known: dict[tuple[Any, ...], int] = {}
    for one in nodes_of(node):
        if one.kind == "input":
            position[id(one)] = names.index(one.parameter)
            continue
        operands = tuple(position[id(operand)] for operand in one.operands)
        key = one.kind, one.parameter, operands
        if key not in known:
            if one.kind in CROSS_LANE_KINDS:
                operands = *operands, shape_at
            known[key] = shape_at + 1 + len(steps)
            steps.append(_Step(_call_of(one), operands))
        position[id(one)] = known[key]
    return steps, position[id(node)]


def _call_of(node: Lane) -> Callable[..., Any]:
    kind = node.kind
    if kind == "constant":
        value = node.parameter  # a Python integer takes the other operand's type
        return lambda: value
    if kind == "wrapped":
        return partial(_wrap, width=node.parameter)
    if kind in _COMPARISONS:
        return _COMPARISONS[kind]
    if kind == "select":
        return partial(_choose, dtype=_dtype(node))
    if kind == "round_even":
        value, amount = node.operands
        fits = value.high + (1 << amount.high >> 1) < 1 << 31  # half is added first
        return partial(_round_even, dtype=_wide(node) if fits else np.int64)
    if kind == "leading_zeros":
        fits = node.operands[0].high < 1 << _EXACT_FLOAT_BITS
        return partial(_short_leading_zeros if fits else _leading_zeros, width=node.parameter)
    if kind == "lookup":
        return partial(np.take, np.asarray(node.parameter, _dtype(node)))
    if kind in CROSS_LANE_KINDS:
        return partial(_across_lanes, _REDUCTIONS[kind], dtype=_dtype(node))
    return partial(_ARITHMETIC[kind], dtype=_wide(node))


def _wide(node: Lane) -> Any:
    return np.int64 if any(_dtype(one) is np.int64 for one in (node, *node.operands)) else np.int32


def _dtype(node: Lane) -> Any:
    return np.int32 if node.low >= -(1 << 31) and node.high < 1 << 31 else np.int64


_ARITHMETIC: dict[str, np.ufunc] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "absolute": np.absolute,
}
_COMPARISONS: dict[str, np.ufunc] = {"less": np.less, "equal": np.equal}
_REDUCTIONS: dict[str, np.ufunc] = {
    "lane_sum": np.add,
    "lane_maximum": np.maximum,
    "lane_minimum": np.minimum,
}
_RING = {"add", "subtract", "multiply"}
"""Operations whose low bits depend only on their operands' low bits."""


def _wrap(value: Any, width: int) -> Any:
    if width == np.iinfo(np.int32).bits:
        return np.asarray(value).astype(np.int32)
    shift = np.iinfo(np.int64).bits - width
    return np.asarray(value, np.int64) << shift >> shift


def _choose(condition: Any, then: Any, otherwise: Any, dtype: Any) -> Any:
    return np.where(np.asarray(condition, bool), np.asarray(then, dtype), np.asarray(otherwise, dtype))


def _round_even(value: Any, amount: Any, dtype: Any) -> Any:
    """Add half, or one less where a tie would round to an odd result, and round down."""
    half = np.left_shift(1, amount, dtype=dtype) >> 1
    down = np.asarray(np.right_shift(value, amount, dtype=dtype) & 1 ^ 1) & (half > 0)
    return (half - down + value) >> amount


def _short_leading_zeros(value: Any, width: int) -> Any:
    return width - np.frexp(np.asarray(value, np.float64))[1]


def _leading_zeros(value: Any, width: int) -> Any:
    rest = np.asarray(value, np.int64)
    bits = np.zeros(rest.shape, np.int32)
    for step in (32, 16, 8, 4, 2, 1):
        is_longer = rest >> step != 0
        bits += step * is_longer.astype(np.int32)
        rest = np.where(is_longer, rest >> step, rest)
    return width - bits - (rest != 0)


def _across_lanes(reduction: np.ufunc, value: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Reduce the last dimension. A smaller value, such as a constant, stands in every lane."""
    row = np.broadcast_to(value, shape)
    return np.broadcast_to(reduction.reduce(row, axis=-1, keepdims=True, dtype=dtype), shape)


def ufunc_of(node: Lane, names: tuple[str, str]) -> np.ufunc | None:
    """Return the ufunc that computes an expression of two int32 inputs in place, if any."""
    is_modulo = node.kind == "wrapped" and node.parameter == 32 and node.operands[0].kind in _RING
    inner = node.operands[0] if is_modulo else node
    is_plain = [(one.kind, one.parameter) for one in inner.operands] == [("input", name) for name in names]
    if not is_plain or not (is_modulo or inner.kind in {"minimum", "maximum"}):
        return None
    return _ARITHMETIC[inner.kind]


def with_constant(node: Lane, name: str, value: int) -> Lane:
    """Replace an input by a number, and fold constants.

    For example, ``select(y < 0, 0, x >> y)`` is ``x >> 3`` for y = 3.
    """
    changed: dict[int, Lane] = {}
    for one in nodes_of(node):
        operands = [changed[id(operand)] for operand in one.operands]
        if one.kind == "input":
            changed[id(one)] = as_lane(value) if one.parameter == name else one
        elif one.kind == "constant":
            changed[id(one)] = one
        elif one.kind == "select" and operands[0].kind == "constant":
            changed[id(one)] = operands[1] if operands[0].parameter else operands[2]
        elif all(other.kind == "constant" for other in operands) and one.kind not in CROSS_LANE_KINDS:
            whole = Lane(one.kind, tuple(operands), one.low, one.high, one.parameter)
            changed[id(one)] = as_lane(int(evaluate(whole, {})))
        else:
            changed[id(one)] = _rebuilt(one, operands)
    return changed[id(node)]


def _rebuilt(node: Lane, operands: Sequence[Lane]) -> Lane:
    if node.kind == "wrapped":
        return wrapped(operands[0], node.parameter)
    if node.kind == "leading_zeros":
        return leading_zeros(operands[0], node.parameter)
    if node.kind == "lookup":
        return lookup(node.parameter, operands[0])
    return _MAKERS[node.kind](*operands)


_MAKERS: dict[str, Callable[..., Lane]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "shift_left": lambda a, b: a << b,
    "shift_right": lambda a, b: a >> b,
    "absolute": absolute,
    "round_even": lambda a, b: rounded_shift(a, b, "even"),
    "less": lambda a, b: a < b,
    "equal": equal,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "minimum": minimum,
    "maximum": maximum,
    "lane_sum": lane_sum,
    "lane_maximum": lane_maximum,
    "lane_minimum": lane_minimum,
    "select": select,
}
