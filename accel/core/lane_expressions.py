"""Expressions over the integers of one lane.

Each node has exactly one meaning on integers, and the range of its values. For example, with x and y in
int32, ``x + y`` ranges from -2**32 to 2**32 - 2, so it has 33 bits, and ``wrapped(x + y, 32)`` keeps the low
32 of them. :mod:`accel.core.lane_evaluation` computes nodes, :mod:`accel.hw.datapath.lane_values` builds
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy.typing as npt

from accel.base.arguments import plain_integer
from accel.base.errors import AccelError

Array = npt.NDArray[Any]
Rounding = Literal["up", "even", "away"]
WIDEST = 64
"""numpy has no wider integers."""
MAX_LANES = 256
"""Lanes of the widest row: the largest ``block_out``."""


@dataclass(frozen=True, eq=False, repr=False)
class Lane:
    """A node of an expression.

    Attributes:
        kind: ``input``, ``constant``, or the operation.
        low, high: the range of its values.
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

    def __repr__(self) -> str:
        return f"<{self.kind} in {self.low}..{self.high}>"

    def __bool__(self) -> bool:
        raise AccelError("an expression of a lane has no truth value; select(condition, a, b) chooses")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        raise AccelError("expressions of a lane have no ==; equal(a, b) is 1 where two values are equal")

    __hash__ = object.__hash__

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

    def __radd__(self, other: int) -> Lane:
        return as_lane(other) + self

    def __rsub__(self, other: int) -> Lane:
        return as_lane(other) - self

    def __rmul__(self, other: int) -> Lane:
        return as_lane(other) * self

    def __neg__(self) -> Lane:
        return as_lane(0) - self

    def __lshift__(self, amount: Lane | int) -> Lane:
        """Multiply by ``2**amount``. The amount must not be negative."""
        right = _amount(amount)
        corners = [a << b for a in (self.low, self.high) for b in (right.low, right.high)]
        return Lane("shift_left", (self, right), min(corners), max(corners))

    def __rshift__(self, amount: Lane | int) -> Lane:
        """Divide by ``2**amount``, and round down. The amount must not be negative."""
        right = _amount(amount)
        corners = [a >> b for a in (self.low, self.high) for b in (right.low, right.high)]
        return Lane("shift_right", (self, right), min(corners), max(corners))

    def __lt__(self, other: Lane | int) -> Lane:
        return Lane("less", (self, as_lane(other)), 0, 1)

    def __gt__(self, other: Lane | int) -> Lane:
        return as_lane(other) < self

    def __ge__(self, other: Lane | int) -> Lane:
        return as_lane(1) - (self < other)

    def __le__(self, other: Lane | int) -> Lane:
        return as_lane(1) - (self > other)

    def __and__(self, other: Lane | int) -> Lane:
        """Bitwise and. Negative numbers have ones above their sign."""
        right = as_lane(other)
        highs = [one.high for one in (self, right) if one.low >= 0]
        low, high = (0, min(highs)) if highs else _bits_range(self, right)
        return Lane("and", (self, right), low, high)

    def __or__(self, other: Lane | int) -> Lane:
        right = as_lane(other)
        return Lane("or", (self, right), *_bits_range(self, right))

    def __xor__(self, other: Lane | int) -> Lane:
        right = as_lane(other)
        return Lane("xor", (self, right), *_bits_range(self, right))

    def __invert__(self) -> Lane:
        """``-1 - x``"""
        return as_lane(-1) - self


def _bits_range(a: Lane, b: Lane) -> tuple[int, int]:
    bits = max(a.width - (a.low < 0), b.width - (b.low < 0))
    return -(1 << bits) if a.low < 0 or b.low < 0 else 0, (1 << bits) - 1


def _amount(value: Lane | int) -> Lane:
    found = as_lane(value)
    if not 0 <= found.low <= found.high < WIDEST:
        raise AccelError(f"a shift is by {found.low} to {found.high} bits; it must be by 0 to {WIDEST - 1}")
    return found


def as_lane(value: Lane | int) -> Lane:
    """Return a constant's node, or the node itself.

    Raises:
        AccelError: the value is neither an expression nor an integer.
    """
    if isinstance(value, Lane):
        return value
    number = plain_integer(value)
    if number is None:
        raise AccelError(f"{value!r} is a {type(value).__name__}; expressions of a lane hold integers only")
    return Lane("constant", (), number, number, number)


def lane_input(name: str, width: int = 32, *, signed: bool = True) -> Lane:
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    return Lane("input", (), low, high, name)


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
    return Lane("select", (as_lane(condition), a, b), min(a.low, b.low), max(a.high, b.high))


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
    """Return the magnitude. That of the least int32 is 2**31, which needs 32 bits."""
    least = max(0, value.low, -value.high)
    return Lane("absolute", (value,), least, max(-value.low, value.high))


def bit_slice(value: Lane, begin: int, end: int) -> Lane:
    """Return the bits in [``begin``, ``end``), unsigned. For example, bits 4 to 8 of 0xAB are 0xA."""
    if not 0 <= begin < end < WIDEST:
        raise AccelError(f"a slice has the bits {begin}..{end}; it needs 0 <= begin < end < {WIDEST}")
    return (value >> begin) & ((1 << end - begin) - 1)


def leading_zeros(value: Lane, width: int = 32) -> Lane:
    """Return the number of zeros above the highest one of ``width`` bits: 24 for 200 in 32 bits.

    Raises:
        AccelError: the value may be negative or need more bits.
    """
    if value.low < 0 or value.high >> width:
        raise AccelError(
            f"leading_zeros is of {value.low}..{value.high}; it must be of {width} bits, unsigned"
        )
    return Lane("leading_zeros", (value,), 0, width, width)


def lookup(table: Sequence[int], index: Lane) -> Lane:
    """Return the entry of a table, which must have one for each value of the index."""
    entries = tuple(int(one) for one in table)
    if not 0 <= index.low <= index.high < len(entries):
        raise AccelError(
            f"a table of {len(entries)} entries is read at {index.low}..{index.high}; "
            f"an index must be in 0..{len(entries) - 1}"
        )
    return Lane("lookup", (index,), min(entries), max(entries), entries)


def lane_sum(value: Lane) -> Lane:
    """Return the sum over a row's lanes, in each of them.

    An element has ``batch`` rows of ``block_out`` lanes. With four lanes 1, 2, 3, 4, each gets 10.
    """
    low, high = min(value.low, value.low * MAX_LANES), max(value.high, value.high * MAX_LANES)
    return Lane("lane_sum", (value,), low, high)


def lane_maximum(value: Lane) -> Lane:
    """Return the largest value of a row's lanes, in each of them."""
    return Lane("lane_maximum", (value,), value.low, value.high)


def lane_minimum(value: Lane) -> Lane:
    """Return the least value of a row's lanes, in each of them."""
    return Lane("lane_minimum", (value,), value.low, value.high)


def rounded_shift(value: Lane, amount: Lane | int, half: Rounding = "up") -> Lane:
    """Divide by ``2**amount``, and round to the nearest integer.

    Args:
        amount: at least 0.
        half: direction of halves. By 2**1, 5 and -5 are 3 and -2 with ``up``, 2 and -2 with ``even``, and 3
            and -3 with ``away`` (from zero).
    """
    bits = _amount(amount)
    if bits.kind == "constant" and bits.parameter == 0:
        return value
    if half == "even":
        floors = [value.low >> n for n in (bits.low, bits.high)] + [
            value.high >> n for n in (bits.low, bits.high)
        ]
        return Lane("round_even", (value, bits), min(floors), max(floors) + 1)
    added = (as_lane(1 << bits.parameter) if bits.kind == "constant" else as_lane(1) << bits) >> 1
    if half == "away":
        added = added - ((value < 0) if bits.low > 0 else (value < 0) & (bits > 0))
    return (value + added) >> bits


CROSS_LANE_KINDS = frozenset({"lane_sum", "lane_maximum", "lane_minimum"})


def nodes_of(node: Lane) -> list[Lane]:
    """Return the nodes of an expression once, operands first."""
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
    """Return a line per node. Equal expressions have equal texts."""
    numbers: dict[int, int] = {}
    lines: dict[str, int] = {}
    for one in nodes_of(node):
        operands = " ".join(f"%{numbers[id(operand)]}" for operand in one.operands)
        parameter = "" if one.parameter is None else f" {one.parameter!r}"
        line = f"{one.kind} {operands}{parameter} in {one.low}..{one.high}"
        numbers[id(one)] = lines.setdefault(line, len(lines))
    return "\n".join(lines)


def crosses_lanes(node: Lane) -> bool:
    return any(one.kind in CROSS_LANE_KINDS for one in nodes_of(node))
