"""Expressions over a lane's integers: numpy, Python's integers and ranges agree."""

from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.base.errors import AccelError
from accel.core.alu_operations import STOCK, operations_by_code
from accel.core.isa import AluOp
from accel.core.lane_evaluation import evaluate, ufunc_of, with_constant
from accel.core.lane_expressions import (
    Lane,
    as_lane,
    bit_slice,
    lane_input,
    lane_maximum,
    lane_minimum,
    lane_sum,
    leading_zeros,
    lookup,
    minimum,
    rounded_shift,
    select,
    text_of,
    wrapped,
)
from tests.expect import refused
from tests.random_lane_expressions import EDGES, random_expression
from tests.strategies import examples, seeded

INT32 = st.integers(-(2**31), 2**31 - 1)
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
    if node.kind == "leading_zeros":
        return int(node.parameter - values[0].bit_length())
    if node.kind == "lookup":
        return int(node.parameter[values[0]])
    return int(
        {
            "add": lambda a, b: a + b,
            "subtract": lambda a, b: a - b,
            "multiply": lambda a, b: a * b,
            "shift_left": lambda a, b: a << b,
            "shift_right": lambda a, b: a >> b,
            "absolute": abs,
            "round_even": lambda a, b: round(Fraction(a, 2**b)),
            "less": lambda a, b: a < b,
            "equal": lambda a, b: a == b,
            "and": lambda a, b: a & b,
            "or": lambda a, b: a | b,
            "xor": lambda a, b: a ^ b,
            "minimum": min,
            "maximum": max,
            "select": lambda c, a, b: a if c else b,
        }[node.kind](*values)
    )


def expressions() -> st.SearchStrategy[Lane]:
    """Expressions of x and y whose lanes are independent."""
    return seeded(random_expression)


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


@pytest.mark.parametrize(
    ("value", "results"),
    [(5, (3, 2, 3)), (-5, (-2, -2, -3)), (7, (4, 4, 4)), (-7, (-3, -4, -4)), (4, (2, 2, 2))],
)
def test_halves_are_rounded_up_to_even_or_away(value: int, results: tuple[int, int, int]) -> None:
    kinds: tuple[Literal["up", "even", "away"], ...] = ("up", "even", "away")
    found = tuple(exact(rounded_shift(X, 1, half), {"x": value}) for half in kinds)
    assert found == results
    assert rounded_shift(X, 0, "even") is X


@pytest.mark.parametrize(
    ("function", "result"),
    [
        (lane_sum, [[10, 10, 10, 10], [2, 2, 2, 2]]),
        (lane_maximum, [[4] * 4, [5] * 4]),
        (lane_minimum, [[1] * 4, [-3] * 4]),
    ],
)
def test_reductions_of_the_lanes_of_a_row(function: Any, result: list[list[int]]) -> None:
    x = np.array([[1, 2, 3, 4], [0, 0, 5, -3]], np.int32)
    assert evaluate(function(X), {"x": x}).tolist() == result
    assert evaluate(X - function(X), {"x": x}).tolist() == (x - np.array(result)).tolist()
    constant = {"x": x, "y": np.asarray(np.int32(3))}
    wanted = 12 if function is lane_sum else 3
    assert evaluate(function(Y), constant).tolist() == np.full(x.shape, wanted).tolist()
    assert (
        evaluate(with_constant(function(Y), "y", 3), {"x": x}).tolist() == np.full(x.shape, wanted).tolist()
    )


def test_equal_expressions_have_equal_texts() -> None:
    assert text_of(wrapped(X + Y)) == text_of(wrapped(lane_input("x") + lane_input("y")))
    shared = X + Y
    assert text_of(shared - shared) == text_of((X + Y) - (X + Y))
    texts = {text_of(one) for one in (X + Y, Y + X, X - Y, wrapped(X + Y), wrapped(X + Y, 16), X, as_lane(3))}
    assert len(texts) == 7


def test_values_that_an_operation_does_not_take() -> None:
    with refused(AccelError, "leading_zeros is of -2147483648..2147483647; it must be of 32 bits, unsigned"):
        leading_zeros(X)
    with refused(AccelError, "a table of 2 entries is read at 0..3; an index must be in 0..1"):
        lookup([1, 2], bit_slice(X, 0, 2))
    with refused(AccelError, "expressions of a lane have no ==; equal(a, b) is 1 where two values are equal"):
        select(X == 3, X, Y)
    with refused(AccelError, "an expression of a lane has no truth value; select(condition, a, b) chooses"):
        _ = X if X < Y else Y
    with refused(AccelError, "0.5 is a float; expressions of a lane hold integers only"):
        _ = X * 0.5  # type: ignore[operator]
    with refused(AccelError, "True is a bool; expressions of a lane hold integers only"):
        select(True, X, Y)  # type: ignore[arg-type]
    with refused(AccelError, "a slice has the bits 4..4; it needs 0 <= begin < end < 64"):
        bit_slice(X, 4, 4)


@pytest.mark.parametrize("operation", STOCK, ids=lambda one: one.name)
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


@pytest.mark.parametrize("operation", STOCK, ids=lambda one: one.name)
def test_whether_operands_may_be_combined_first(operation: Any) -> None:
    rng = np.random.default_rng(0)
    x, y, z = (rng.choice(EDGES, 400).astype(np.int32) for _ in range(3))
    function = operation.function
    one, other = function(function(x, y), z), function(x, function(y, z))
    assert np.array_equal(one, other) == operation.is_associative


def test_declarations_have_the_numbers_of_the_instruction_set() -> None:
    names = tuple(one.name for one in STOCK)
    assert list(operations_by_code(names)) == list(AluOp)


def test_simple_operations_are_computed_in_place() -> None:
    assert ufunc_of(wrapped(X + Y), ("x", "y")) is np.add
    assert ufunc_of(minimum(X, Y), ("x", "y")) is np.minimum
    assert ufunc_of(X + Y, ("x", "y")) is None
    assert ufunc_of(minimum(X, 3), ("x", "y")) is None
    assert ufunc_of(wrapped(X + X), ("x", "y")) is None
    assert ufunc_of(wrapped(Y - X), ("x", "y")) is None


def test_values_that_are_too_wide() -> None:
    with pytest.raises(AccelError, match=r"multiply has values from -.*; a lane has at most 64 bits, signed"):
        _ = X * X * X
    with refused(AccelError, "a shift is by -2147483648 to 2147483647 bits; it must be by 0 to 63"):
        _ = X << Y
