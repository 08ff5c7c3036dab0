"""Expressions over the integers of one lane, from which a lane's numpy function and its hardware follow.

Each node has exactly one meaning on integers, and the range of its values. For example, with x and y in
int32, ``x + y`` ranges from -2**32 to 2**32 - 2, so it has 33 bits, and ``wrapped(x + y, 32)`` keeps the low
32 of them. :func:`evaluate` computes a node for arrays, and :mod:`accel.hw.datapath.lane_values` builds it in
hardware.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from accel.base.errors import AccelError

Array = npt.NDArray[Any]
Rounding = Literal["up", "even", "away"]
WIDEST = 64
"""Bits of the widest value. numpy has no wider integers."""
MAX_LANES = 256
"""Lanes of the widest row of an element: the largest ``block_out``."""


@dataclass(frozen=True, eq=False)
class Lane:
    """A node of an expression.

    Attributes:
        kind: ``input``, ``constant``, or the operation.
        operands: the nodes that it reads.
        low, high: its least and its largest value.
        parameter: the name of an input, the value of a constant, the width of ``wrapped`` or
            ``leading_zeros``, or the values of a table.

    Raises:
        AccelError: its values need more than :data:`WIDEST` bits.
    """

    kind: str
    operands: tuple[Lane, ...]
    low: int
    high: int
    parameter: Any = None

    def __post_init__(self) -> None:
        if not -(1 << WIDEST - 1) <= self.low <= self.high < 1 << WIDEST - 1:
            raise AccelError(
                f"{self.kind} has values from {self.low} to {self.high}; a lane has at most {WIDEST} bits, "
                f"signed"
            )

    @property
    def width(self) -> int:
        """Bits of its values, with a sign bit if some are negative."""
        if self.low >= 0:
            return self.high.bit_length()
        return max((~self.low).bit_length(), self.high.bit_length()) + 1

    def __add__(self, other: Lane | int) -> Lane:
        right = as_lane(other)
        return Lane("add", (self, right), self.low + right.low, self.high + right.high)

    def __sub__(self, other: Lane | int) -> Lane:
        right = as_lane(other)
        return Lane("subtract", (self, right), self.low - right.high, self.high - right.low)

    def __mul__(self, other: Lane | int) -> Lane:
        right = as_lane(other)
        corners = [a * b for a in (self.low, self.high) for b in (right.low, right.high)]
        return Lane("multiply", (self, right), min(corners), max(corners))

    def __neg__(self) -> Lane:
        return as_lane(0) - self

    def __lshift__(self, amount: Lane | int) -> Lane:
        """Multiply by two to the power of the amount, which must not be negative."""
        right = _amount(amount)
        corners = [a << b for a in (self.low, self.high) for b in (right.low, right.high)]
        return Lane("shift_left", (self, right), min(corners), max(corners))

    def __rshift__(self, amount: Lane | int) -> Lane:
        """Divide by two to the power of the amount, which must not be negative, and round down."""
        right = _amount(amount)
        corners = [a >> b for a in (self.low, self.high) for b in (right.low, right.high)]
        return Lane("shift_right", (self, right), min(corners), max(corners))

    def __lt__(self, other: Lane | int) -> Lane:
        """1 if this is less than the other, else 0."""
        return Lane("less", (self, as_lane(other)), 0, 1)

    def __gt__(self, other: Lane | int) -> Lane:
        """1 if this is greater than the other, else 0."""
        return as_lane(other) < self

    def __ge__(self, other: Lane | int) -> Lane:
        """1 if this is not less than the other, else 0."""
        return as_lane(1) - (self < other)

    def __le__(self, other: Lane | int) -> Lane:
        """1 if this is not greater than the other, else 0."""
        return as_lane(1) - (self > other)

    def __and__(self, other: Lane | int) -> Lane:
        """The bits that both have. Negative numbers have ones above their sign."""
        right = as_lane(other)
        highs = [one.high for one in (self, right) if one.low >= 0]
        low, high = (0, min(highs)) if highs else _bits_range(self, right)
        return Lane("and", (self, right), low, high)

    def __or__(self, other: Lane | int) -> Lane:
        """The bits that either has."""
        right = as_lane(other)
        return Lane("or", (self, right), *_bits_range(self, right))

    def __xor__(self, other: Lane | int) -> Lane:
        """The bits that one of the two has."""
        right = as_lane(other)
        return Lane("xor", (self, right), *_bits_range(self, right))

    def __invert__(self) -> Lane:
        """All bits inverted: ``-1 - x``."""
        return as_lane(-1) - self


def _bits_range(a: Lane, b: Lane) -> tuple[int, int]:
    """Return the range of bitwise results of two values."""
    bits = max(a.width - (a.low < 0), b.width - (b.low < 0))
    return -(1 << bits) if a.low < 0 or b.low < 0 else 0, (1 << bits) - 1


def _amount(value: Lane | int) -> Lane:
    found = as_lane(value)
    if not 0 <= found.low <= found.high < WIDEST:
        raise AccelError(f"a shift is by {found.low} to {found.high} bits; it must be by 0 to {WIDEST - 1}")
    return found


def as_lane(value: Lane | int) -> Lane:
    """Return a constant's node, or the node itself."""
    return value if isinstance(value, Lane) else Lane("constant", (), value, value, value)


def lane_input(name: str, width: int = 32) -> Lane:
    """Return a signed operand of the operation."""
    return Lane("input", (), -(1 << width - 1), (1 << width - 1) - 1, name)


def minimum(left: Lane | int, right: Lane | int) -> Lane:
    """Return the smaller of two values."""
    a, b = as_lane(left), as_lane(right)
    return Lane("minimum", (a, b), min(a.low, b.low), min(a.high, b.high))


def maximum(left: Lane | int, right: Lane | int) -> Lane:
    """Return the larger of two values."""
    a, b = as_lane(left), as_lane(right)
    return Lane("maximum", (a, b), max(a.low, b.low), max(a.high, b.high))


def select(condition: Lane, then: Lane | int, otherwise: Lane | int) -> Lane:
    """Return ``then`` where the condition is not 0, else ``otherwise``."""
    a, b = as_lane(then), as_lane(otherwise)
    return Lane("select", (condition, a, b), min(a.low, b.low), max(a.high, b.high))


def saturated(value: Lane, low: int, high: int) -> Lane:
    """Return the value within bounds."""
    return minimum(maximum(value, low), high)


def wrapped(value: Lane, width: int = 32) -> Lane:
    """Return the low bits as a signed number. For example, 2**31 in 32 bits is -2**31."""
    return Lane("wrapped", (value,), -(1 << width - 1), (1 << width - 1) - 1, width)


def equal(left: Lane | int, right: Lane | int) -> Lane:
    """Return 1 if two values are equal, else 0."""
    return Lane("equal", (as_lane(left), as_lane(right)), 0, 1)


def absolute(value: Lane) -> Lane:
    """Return the magnitude. That of the least int32 is 2**31, which has 33 bits with a sign."""
    return maximum(value, -value)


def bit_slice(value: Lane, begin: int, end: int) -> Lane:
    """Return the bits from ``begin`` up to ``end``, exclusive, as an unsigned number. For example, bits 4 to
    8 of 0xAB are 0xA."""
    if not 0 <= begin < end < WIDEST:
        raise AccelError(f"a slice has the bits {begin}..{end}; it needs 0 <= begin < end < {WIDEST}")
    return (value >> begin) & ((1 << end - begin) - 1)


def leading_zeros(value: Lane, width: int = 32) -> Lane:
    """Return how many of the ``width`` bits of a value are zero before the first one: 24 for 200 in 32 bits.

    Raises:
        AccelError: the value may be negative or need more bits.
    """
    if value.low < 0 or value.high >> width:
        raise AccelError(
            f"leading_zeros is of {value.low}..{value.high}; it must be of {width} bits, unsigned"
        )
    return Lane("leading_zeros", (value,), 0, width, width)


def lookup(table: Sequence[int], index: Lane) -> Lane:
    """Return the entry of a table. The table must have an entry for each value of the index."""
    entries = tuple(int(one) for one in table)
    if not 0 <= index.low <= index.high < len(entries):
        raise AccelError(
            f"a table of {len(entries)} entries is read at {index.low}..{index.high}; "
            f"an index must be in 0..{len(entries) - 1}"
        )
    return Lane("lookup", (index,), min(entries), max(entries), entries)


def lane_sum(value: Lane) -> Lane:
    """Return the sum over all lanes of a row of an element, in each of these lanes.

    An element has ``batch`` rows of ``block_out`` lanes. For example, with four lanes 1, 2, 3 and 4, each
    lane gets 10.
    """
    low, high = min(value.low, value.low * MAX_LANES), max(value.high, value.high * MAX_LANES)
    return Lane("lane_sum", (value,), low, high)


def lane_maximum(value: Lane) -> Lane:
    """Return the largest value of the lanes of a row, in each of these lanes."""
    return Lane("lane_maximum", (value,), value.low, value.high)


def lane_minimum(value: Lane) -> Lane:
    """Return the least value of the lanes of a row, in each of these lanes."""
    return Lane("lane_minimum", (value,), value.low, value.high)


def with_constant(node: Lane, name: str, value: int) -> Lane:
    """Return an expression with a number for an input, and computed where all operands are numbers.

    For example, ``select(y < 0, 0, x >> y)`` is ``x >> 3`` for y = 3.
    """
    if node.kind == "input":
        return as_lane(value) if node.parameter == name else node
    operands = [with_constant(one, name, value) for one in node.operands]
    if node.kind == "select" and operands[0].kind == "constant":
        return operands[1] if operands[0].parameter else operands[2]
    if node.kind == "constant":
        return node
    if all(one.kind == "constant" for one in operands) and node.kind not in CROSS_LANE_KINDS:
        whole = Lane(node.kind, tuple(operands), node.low, node.high, node.parameter)
        return as_lane(int(evaluate(whole, {})))
    return _rebuilt(node, operands)


def _rebuilt(node: Lane, operands: Sequence[Lane]) -> Lane:
    """Return the same operation of other operands, with the range of its values."""
    if node.kind == "wrapped":
        return wrapped(operands[0], node.parameter)
    if node.kind == "leading_zeros":
        return leading_zeros(operands[0], node.parameter)
    if node.kind == "lookup":
        return lookup(node.parameter, operands[0])
    return _MAKERS[node.kind](*operands)


def rounded_shift(value: Lane, amount: int, half: Rounding = "up") -> Lane:
    """Divide by two to the power of the amount, and round to the nearest integer.

    Args:
        half: direction of halves. By 2**1, 5 and -5 are 3 and -2 with ``up``, 2 and -2 with ``even``, and 3
            and -3 with ``away`` (from zero).
    """
    if amount == 0:
        return value
    one_half = 1 << amount - 1
    if half == "up":
        return (value + one_half) >> amount
    if half == "away":
        return (value + one_half - (value < 0)) >> amount
    return (value + (one_half - 1) + bit_slice(value, amount, amount + 1)) >> amount


def evaluate(node: Lane, inputs: Mapping[str, Array]) -> Array:
    """Compute an expression for arrays of equal shape, or for shapes that broadcast.

    Args:
        inputs: int32 arrays by name. Their last dimension is the lanes of a row.

    Returns:
        int32 where all values of the node fit, otherwise int64.
    """
    return _evaluate(node, inputs, {})


def _evaluate(node: Lane, inputs: Mapping[str, Array], known: dict[int, Array]) -> Array:
    if id(node) not in known:
        known[id(node)] = _computed(node, inputs, known)
    return known[id(node)]


def _computed(node: Lane, inputs: Mapping[str, Array], known: dict[int, Array]) -> Array:
    if node.kind == "input":
        return inputs[node.parameter]
    if node.kind == "constant":
        return np.asarray(node.parameter, _dtype(node))
    if node.kind == "wrapped":
        return _modulo(node, inputs, known)
    if node.kind in _PARAMETRIC:
        return _PARAMETRIC[node.kind](_evaluate(node.operands[0], inputs, known), node.parameter)
    operands = [_evaluate(one, inputs, known) for one in node.operands]
    if node.kind in CROSS_LANE_KINDS:  # a constant stands in every lane
        shape = np.broadcast_shapes(*(one.shape for one in inputs.values()))
        operands = [np.broadcast_to(one, shape) for one in operands]
    dtype = np.result_type(_dtype(node), *(one.dtype for one in operands))
    wide = [one.astype(dtype, copy=False) for one in operands]
    return np.asarray(_FUNCTIONS[node.kind](*wide)).astype(_dtype(node), copy=False)


def _modulo(node: Lane, inputs: Mapping[str, Array], known: dict[int, Array]) -> Array:
    """Compute ``wrapped``. Sums and products modulo 2**32 need no wider integers."""
    (value,) = node.operands
    if node.parameter == 32 and value.kind in _RING:
        operands = [_evaluate(one, inputs, known).astype(np.int32, copy=False) for one in value.operands]
        with np.errstate(over="ignore"):
            return np.asarray(_FUNCTIONS[value.kind](*operands))
    shift = WIDEST - node.parameter
    wide = _evaluate(value, inputs, known).astype(np.int64)
    return np.asarray((wide << shift) >> shift).astype(_dtype(node))


def _dtype(node: Lane) -> Any:
    return np.int32 if node.low >= -(1 << 31) and node.high < 1 << 31 else np.int64


CROSS_LANE_KINDS = frozenset({"lane_sum", "lane_maximum", "lane_minimum"})
"""Operations whose result in one lane depends on all lanes of a row."""
_RING = {"add", "subtract", "multiply"}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
    "less": np.less,
    "equal": np.equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "lane_sum": lambda value: np.broadcast_to(value.sum(axis=-1, keepdims=True), value.shape),
    "lane_maximum": lambda value: np.broadcast_to(value.max(axis=-1, keepdims=True), value.shape),
    "lane_minimum": lambda value: np.broadcast_to(value.min(axis=-1, keepdims=True), value.shape),
    "select": lambda condition, then, otherwise: np.where(condition != 0, then, otherwise),
}
"""The numpy function of each operation on integers that cannot overflow."""


def _count_leading_zeros(value: Array, width: int) -> Array:
    bits = np.zeros(value.shape, np.int32)
    for step in (32, 16, 8, 4, 2, 1):
        is_longer = value >> step != 0
        bits += step * is_longer.astype(np.int32)
        value = np.where(is_longer, value >> step, value)
    return np.asarray(width - bits - (value != 0), np.int32)


def _look_up(index: Array, table: tuple[int, ...]) -> Array:
    fits = min(table) >= -(1 << 31) and max(table) < 1 << 31
    return np.asarray(table, np.int32 if fits else np.int64)[index]


_PARAMETRIC: dict[str, Callable[[Array, Any], Array]] = {
    "leading_zeros": lambda value, width: _count_leading_zeros(value.astype(np.int64), width),
    "lookup": _look_up,
}
"""The numpy function of each operation with a parameter."""

_MAKERS: dict[str, Callable[..., Lane]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "shift_left": lambda a, b: a << b,
    "shift_right": lambda a, b: a >> b,
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


def ufunc_of(node: Lane) -> np.ufunc | None:
    """Return the numpy function that computes an expression of two int32 inputs in place, if there is one."""
    is_modulo = node.kind == "wrapped" and node.parameter == 32 and node.operands[0].kind in _RING
    inner = node.operands[0] if is_modulo else node
    if not is_modulo and inner.kind not in {"minimum", "maximum"}:
        return None
    found = _FUNCTIONS[inner.kind]
    is_plain = [one.kind for one in inner.operands] == ["input", "input"]
    return found if is_plain and isinstance(found, np.ufunc) else None


def nodes_of(node: Lane) -> list[Lane]:
    """Return the nodes of an expression, each once, operands before the nodes that read them."""
    found: dict[int, Lane] = {}
    left = [(node, False)]
    while left:
        one, is_ready = left.pop()
        if is_ready:
            found[id(one)] = one
        elif id(one) not in found:
            left += [(one, True), *((operand, False) for operand in reversed(one.operands))]
    return list(found.values())


def text_of(node: Lane) -> str:
    """Return an expression as text, one numbered line per node. Equal expressions have equal texts."""
    numbers: dict[int, int] = {}
    lines: dict[str, int] = {}
    for one in nodes_of(node):
        operands = " ".join(f"%{numbers[id(operand)]}" for operand in one.operands)
        parameter = "" if one.parameter is None else f" {one.parameter!r}"
        line = f"{one.kind} {operands}{parameter} in {one.low}..{one.high}"
        numbers[id(one)] = lines.setdefault(line, len(lines))
    return "\n".join(lines)


def crosses_lanes(node: Lane) -> bool:
    """Return whether a lane's result depends on other lanes."""
    return any(one.kind in CROSS_LANE_KINDS for one in nodes_of(node))


def function_of(node: Lane, names: Sequence[str]) -> Callable[..., Array]:
    """Return the numpy function of an expression of these inputs, in this order."""

    def function(*arrays: Array) -> Array:
        return evaluate(node, dict(zip(names, arrays, strict=True)))

    return function
