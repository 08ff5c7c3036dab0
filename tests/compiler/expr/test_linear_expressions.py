"""Index expressions: normal forms keep the value, and ranges contain all values."""

from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel import te
from accel.base.errors import ShapeError
from accel.compiler.expr.linear_expressions import (
    Derived,
    at_zero,
    bounds,
    ceil_div,
    evaluate,
    holds_in_loops,
    linear,
    simplify,
    values_of,
    variables,
    without,
)
from accel.compiler.expr.scalar_expressions import Binary, Const, Expr, IterVar, format_expr
from tests.expect import refused
from tests.strategies import examples

VARIABLES = [IterVar(name, extent) for name, extent in (("u", 1), ("v", 2), ("w", 3), ("x", 5))]
U, V, W, X = VARIABLES
VALUES = [dict(zip(VARIABLES, v, strict=True)) for v in product(*(range(v.extent) for v in VARIABLES))]

_leaves = st.sampled_from(VARIABLES) | st.integers(-9, 9).map(Const)
_positive = st.integers(1, 9).map(Const)


def _larger(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    plain = st.builds(Binary, st.sampled_from(["+", "-", "*", "min", "max"]), parts, parts)
    return plain | st.builds(Binary, st.sampled_from(["//", "%"]), parts, _positive)


indices = st.recursive(_leaves, _larger, max_leaves=8)


def values(expr: Expr) -> list[int]:
    return [evaluate(expr, v) for v in VALUES]


@examples(400)
@given(indices)
def test_simplifying_keeps_values_and_is_idempotent(expr: Expr) -> None:
    simple = simplify(expr)
    assert values(simple) == values(expr)
    assert format_expr(simplify(simple)) == format_expr(simple)


@examples(400)
@given(indices)
def test_bounds_hold_all_values(expr: Expr) -> None:
    low, high = bounds(expr)
    assert low <= min(values(expr))
    assert max(values(expr)) <= high


@examples(100)
@given(st.lists(st.integers(-4, 4), min_size=4, max_size=4), st.integers(-9, 9))
def test_bounds_of_sums_are_exact(factors: list[int], constant: int) -> None:
    expr: Expr = Const(constant)
    for variable, factor in zip(VARIABLES, factors, strict=True):
        expr = expr + variable * factor
    assert bounds(expr) == (min(values(expr)), max(values(expr)))
    form = linear(expr)
    assert form.constant == constant
    assert [form.factor(v) for v in VARIABLES] == factors
    assert values(form.expr()) == values(expr)


@examples(100)
@given(indices, st.integers(1, 9))
def test_division_rounded_up(expr: Expr, divisor: int) -> None:
    assert values(ceil_div(expr, divisor)) == [-(-value // divisor) for value in values(expr)]


@examples(100)
@given(indices, st.sets(st.sampled_from(VARIABLES)))
def test_variables_set_to_zero(expr: Expr, inner: set[IterVar]) -> None:
    start = at_zero(expr, inner)
    assert not set(variables(start)) & inner
    at = [dict.fromkeys(inner, 0) for _ in VALUES]
    assert values(start) == [evaluate(expr, v | zero) for v, zero in zip(VALUES, at, strict=True)]


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        ((V * 8 + X) // 8, "v"),
        ((V * 8 + X) % 8, "x"),
        ((V * 8 + W * 3 + X) // 4, "v*2+(w*3+x)//4"),
        (V + X - V, "x"),
        (X * 2 + X * -2, "0"),
        (10 - X * 3, "10-x*3"),
        (V * -1 + X, "v*-1+x"),
        (te.min(8, 100 - V * 8), "8"),
        (te.min(8, 10 - V * 8), "min(8, 10-v*8)"),
        (te.min(3, te.min(16, 9 - X * 2)), "min(3, 9-x*2)"),
        (te.max(te.max(X, V), 4), "4"),
        (te.min(W * 8 + 8, 20) // 8, "min(w+1, 2)"),
        (V * X, "v*x"),
        (X // 7, "0"),
        (U + 3, "u+3"),
    ],
)
def test_normal_forms(expr: Expr, text: str) -> None:
    assert format_expr(simplify(expr)) == text


def test_variables_are_in_order_of_appearance() -> None:
    assert variables(X * 2 + V + X) == [X, V]


@pytest.mark.parametrize(
    ("expr", "term"), [(X // V, "x//v"), (X % 0, "x%0"), (X + (V // -2), "v//-2"), (X >> 1, "x >> 1")]
)
def test_expressions_without_bounds(expr: Expr, term: str) -> None:
    with refused(
        ShapeError,
        f"the index has the term {term}; it may use + - * min max // %, the last two by positive constants",
    ):
        bounds(expr)


def test_results_are_cached_for_each_value_of_an_expression() -> None:
    found: list[int] = []
    half = Binary("//", X, Const(2))

    def halved(env: Mapping[IterVar, int]) -> int:
        found.append(env[X])
        return env[X] // 2

    derived = Derived(values_of([half, Const(7), half]), halved)
    assert [derived.at({X: x}) for x in (*range(5), *range(5))] == [0, 0, 1, 1, 2] * 2
    assert found == [0, 2, 4]


def test_inputs_of_expressions_other_than_some_variables() -> None:
    mixed, other = Binary("+", X, Binary("*", W, V)), Binary("+", V, W)
    assert list(without({X}, [mixed, other, X])) == [W, V, other]


@given(st.integers(1, 60), st.integers(1, 20), st.integers(1, 6), st.integers(-4, 4))
def test_conditions_that_hold_in_loops(size: int, tile: int, block: int, less: int) -> None:
    """Tiles of blocks, of which the last ones are shorter. A block starts inside of the tensor."""
    whole = tile * block
    outer = IterVar("yo", -(-size // whole))
    inner = IterVar("yi", min(tile, -(-size // block)))
    start = Binary("+", Binary("*", outer, Const(whole)), Binary("*", inner, Const(block)))
    blocks = Binary("-", Const(-(-size // block)), Binary("*", outer, Const(tile)))
    extents = {inner: simplify(Binary("min", Const(tile), blocks))}
    limit = size - less
    found = holds_in_loops((simplify(start), Const(limit)), extents)
    starts = range(0, size, block)
    assert found <= all(one < limit for one in starts)
    if less <= 0:
        assert found
