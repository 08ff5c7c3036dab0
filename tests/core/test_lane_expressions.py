"""Expressions over a lane's integers: numpy, Python's integers and ranges agree."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.base.errors import AccelError
from accel.core.alu_operations import BY_CODE, OPERATIONS
from accel.core.isa import AluOp
from accel.core.lane_expressions import (
    Lane,
    as_lane,
    evaluate,
    lane_input,
    maximum,
    minimum,
    rounded_shift,
    saturated,
    select,
    ufunc_of,
    with_constant,
    wrapped,
)
from tests.expect import refused
from tests.strategies import examples

INT32 = st.integers(-(2**31), 2**31 - 1)
EDGES = [0, 1, -1, 2, 31, 32, 33, -31, -32, -33, 2**31 - 1, -(2**31), 12345, -98765]
X, Y = lane_input("x"), lane_input("y")


def exact(node: Lane, inputs: dict[str, int]) -> int:
    """Compute an expression in Python's integers."""
    if node.kind == "input":
        return inputs[node.parameter]
    if node.kind == "constant":
        return int(node.parameter)
    values = [exact(one, inputs) for one in node.operands]
    if node.kind == "wrapped":
        half = 1 << node.parameter - 1
        return (values[0] + half) % (2 * half) - half
    return int(
        {
            "add": lambda a, b: a + b,
            "subtract": lambda a, b: a - b,
            "multiply": lambda a, b: a * b,
            "shift_left": lambda a, b: a << b,
            "shift_right": lambda a, b: a >> b,
            "less": lambda a, b: a < b,
            "minimum": min,
            "maximum": max,
            "select": lambda c, a, b: a if c else b,
        }[node.kind](*values)
    )


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> Lane:
    """An expression of x and y whose values fit in 64 bits."""
    if not depth or draw(st.booleans()):
        return draw(st.sampled_from([X, Y, as_lane(draw(st.sampled_from(EDGES)))]))
    a, b = (draw(expressions(depth - 1)) for _ in range(2))
    amount = minimum(maximum(b, 0), 15)
    makers: list[Any] = [
        lambda: a + b,
        lambda: a - b,
        lambda: wrapped(a * b) if a.width + b.width <= 64 else wrapped(a + b),
        lambda: wrapped(a << amount) if a.width <= 48 else a >> amount,
        lambda: a >> amount,
        lambda: minimum(a, b),
        lambda: maximum(a, b),
        lambda: select(a < b, a, b),
        lambda: saturated(a, -128, 127),
        lambda: wrapped(a, 16),
        lambda: rounded_shift(wrapped(a), 3),
    ]
    made = draw(st.sampled_from(makers))
    return made() if max(a.width, b.width) < 62 else wrapped(a)


@examples(300)
@given(expressions(), st.lists(st.tuples(INT32, INT32), min_size=1, max_size=8))
def test_numpy_computes_the_exact_values(node: Lane, pairs: list[tuple[int, int]]) -> None:
    pairs += [(a, b) for a in EDGES for b in EDGES[:3]]
    arrays = {name: np.array([pair[n] for pair in pairs], np.int32) for n, name in enumerate("xy")}
    wanted = [exact(node, {"x": a, "y": b}) for a, b in pairs]
    found = np.broadcast_to(evaluate(node, arrays), len(pairs))
    assert found.tolist() == wanted
    assert all(node.low <= value <= node.high for value in wanted)
    assert all(-(1 << node.width) <= value < 1 << node.width for value in wanted)


@examples(100)
@given(expressions(), INT32, INT32)
def test_a_number_takes_the_place_of_an_input(node: Lane, x: int, y: int) -> None:
    fixed = with_constant(node, "y", y)
    assert exact(fixed, {"x": x}) == exact(node, {"x": x, "y": y})


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_repeated_immediates(operation: Any) -> None:
    for immediate in EDGES:
        if not -(2**15) <= immediate < 2**15:
            continue
        for times in (1, 2, 3, 7, 40):
            one = np.array(EDGES, np.int32)
            for _ in range(times):
                operation.apply(one, np.int32(immediate))
            other = np.array(EDGES, np.int32)
            operation.apply(other, np.int32(operation.repeated(immediate, times)))
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_whether_the_order_of_operands_matters(operation: Any) -> None:
    rng = np.random.default_rng(0)
    x, y, z = (rng.choice(EDGES, 400).astype(np.int32) for _ in range(3))
    function = operation.function
    one, other = function(function(x, y), z), function(x, function(z, y))
    assert np.array_equal(one, other) == operation.commutes


def test_declarations_have_the_numbers_of_the_instruction_set() -> None:
    assert [one.code for one in OPERATIONS] == list(AluOp) == sorted(BY_CODE)


def test_simple_operations_are_computed_in_place() -> None:
    assert ufunc_of(wrapped(X + Y)) is np.add
    assert ufunc_of(minimum(X, Y)) is np.minimum
    assert ufunc_of(X + Y) is None
    assert ufunc_of(minimum(X, 3)) is None


def test_values_that_are_too_wide() -> None:
    with pytest.raises(AccelError, match=r"multiply has values from -.*; a lane has at most 64 bits, signed"):
        _ = X * X * X
    with refused(AccelError, "a shift is by -2147483648 to 2147483647 bits; it must be by 0 to 63"):
        _ = X << Y
