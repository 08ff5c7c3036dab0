"""Random expressions over lanes, and random declarations of operations."""

from collections.abc import Callable
from random import Random

from accel.core.lane_expressions import (
    Lane,
    absolute,
    as_lane,
    bit_slice,
    equal,
    lane_input,
    lane_maximum,
    lane_minimum,
    lane_sum,
    leading_zeros,
    lookup,
    maximum,
    minimum,
    rounded_shift,
    saturated,
    select,
    wrapped,
)
from accel.operations import Operation

EDGES = [0, 1, -1, 2, 31, 32, 33, -31, -32, -33, 2**31 - 1, -(2**31), 12345, -98765]
_WIDEST_PRODUCT = 64
_WIDE = 48
"""Bits of values that are shifted or summed before they are wrapped."""


def random_expression(rng: Random, depth: int = 4, *, rows: bool = False) -> Lane:
    """Return an expression of x and y, whose values fit in 64 bits.

    Args:
        rows: whether it may contain reductions of the lanes of a row.
    """
    if not depth or rng.random() < 0.2:
        return rng.choice([lane_input("x"), lane_input("y"), as_lane(rng.choice(EDGES))])
    a, b = (random_expression(rng, depth - 1, rows=rows) for _ in range(2))
    if max(a.width, b.width) >= _WIDEST_PRODUCT - 2:
        return wrapped(a)
    amount = minimum(maximum(b, 0), 15)
    table = [rng.choice(EDGES) for _ in range(8)]
    makers: list[Callable[[], Lane]] = [
        lambda: a + b,
        lambda: a - b,
        lambda: wrapped(a * b) if a.width + b.width <= _WIDEST_PRODUCT else wrapped(a + b),
        lambda: wrapped(a << amount) if a.width <= _WIDE else a >> amount,
        lambda: a >> amount,
        lambda: minimum(a, b),
        lambda: maximum(a, b),
        lambda: select(a < b, a, b),
        lambda: saturated(a, -128, 127),
        lambda: wrapped(a, 16),
        lambda: rounded_shift(wrapped(a), 3),
        lambda: rounded_shift(wrapped(a), 1, rng.choice(["even", "away"])),
        lambda: rounded_shift(a, amount, rng.choice(["up", "even", "away"])) if a.width < _WIDE else a,
        lambda: wrapped(a) & b,
        lambda: a | b,
        lambda: a ^ ~b,
        lambda: absolute(a),
        lambda: equal(a, b) + (a >= b) * (a > b) - (a <= b),
        lambda: bit_slice(a, 3, 9),
        lambda: leading_zeros(wrapped(a) & 0xFFFFF, rng.choice([20, 32, 33])),
        lambda: lookup(table, bit_slice(a, 0, 3)),
    ]
    if rows:
        makers += [
            lambda: lane_sum(wrapped(a)),
            lambda: lane_maximum(a) - lane_minimum(b) if a.width < _WIDE else lane_maximum(a),
        ]
    return rng.choice(makers)()


def random_operation(rng: Random, name: str) -> Operation:
    """Return a declaration with up to four stages."""
    node = wrapped(random_expression(rng, rng.randint(1, 4), rows=True))
    return Operation(name=name, result=lambda x, y: node, stages=rng.choice((0, 0, 1, 2, 4)))
