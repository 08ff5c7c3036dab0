"""Scalar expressions: construction, comparison, text and errors."""

import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel import te
from accel.base.errors import ShapeError
from accel.compiler.expr.scalar_expressions import (
    Binary,
    Cast,
    Const,
    Expr,
    IterVar,
    Read,
    as_expr,
    cast,
    clip,
    format_expr,
    maximum,
    minimum,
    reads,
    rewrite,
    substitute,
    walk,
)
from tests.expect import refused
from tests.strategies import examples

i, j = IterVar("i", 8), IterVar("j", 4)
A = te.placeholder((8, 4), name="A")
B = te.placeholder((8,), "int32", name="B")

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    ">>": operator.rshift,
    "<<": operator.lshift,
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("op", ["+", "-", "*", "//", "%", ">>", "<<"])
def test_operators_build_nodes(op: str) -> None:
    assert OPERATORS[op](i, j) == Binary(op, i, j)
    assert OPERATORS[op](i, 3) == Binary(op, i, Const(3))


def test_reflected_operators_keep_the_order() -> None:
    assert Binary("+", Const(3), i) == 3 + i
    assert Binary("-", Const(3), i) == 3 - i
    assert Binary("*", Const(3), i) == 3 * i
    assert Binary("*", i, Const(-1)) == -i


def test_nodes_compare_by_structure_and_variables_by_identity() -> None:
    assert A[i, j] + 1 == A[i, j] + 1
    assert A[i, j] != A[j, i]
    assert A[i, j] != te.placeholder((8, 4), name="A")[i, j]
    assert IterVar("i", 8) != i


def test_dtypes() -> None:
    assert (A[i, j].dtype, B[i].dtype, (A[i, j] * A[i, j]).dtype) == ("int8", "int32", "int32")
    assert cast(B[i], "int8") == Cast(B[i], "int8")
    assert cast(A[i, j], "int8") == A[i, j]
    assert A[i, j].astype("int32").dtype == "int32"


def test_bounds_of_values() -> None:
    assert clip(i, -3, 5) == minimum(maximum(i, -3), 5)
    assert te.min(3, i) == Binary("min", Const(3), i)
    with refused(ShapeError, "clip has the range 5..4; it must not be empty"):
        clip(i, 5, 4)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.5, "1.5 is a float; expressions hold integers only"),
        (True, "True is a bool; expressions hold integers only"),
        ("i", "'i' is a str; expressions hold integers only"),
        (1 << 31, "the constant is 2147483648; it must fit int32"),
        (-(1 << 31) - 1, "the constant is -2147483649; it must fit int32"),
    ],
)
def test_values_that_are_no_expression(value: Any, message: str) -> None:
    with refused(ShapeError, message):
        as_expr(value)
    with refused(ShapeError, message):
        i + value


def test_unsupported_operations() -> None:
    with refused(ShapeError, "an expression has no truth value; it stands for all elements at once"):
        bool(i + 1)
    with refused(ShapeError, "the dtype is 'int64'; it must be 'int8', 'uint8', 'int16' or 'int32'"):
        cast(i, "int64")
    with refused(ShapeError, "'/' is not an operation on expressions; valid are min max << >> + - * // %"):
        Binary("/", i, j)


def test_walking_and_rewriting() -> None:
    expr = te.max(A[i + 1, j] * B[j], 0)
    assert list(walk(A[i, 2])) == [A[i, 2], i, Const(2)]
    assert reads(expr) == [A[i + 1, j], B[j]]
    assert substitute(expr, {j: Const(2)}) == te.max(A[i + 1, 2] * B[Const(2)], 0)
    swapped = rewrite(te.sum(expr, axis=te.reduce_axis((0, 2))), lambda n: B[i] if n == B[j] else None)
    assert reads(swapped) == [A[i + 1, j], B[i]]
    assert rewrite(cast(B[j], "int8"), lambda n: i if n is j else None) == cast(B[i], "int8")


# --- as text -------------------------------------------------------------------------------------

scalars = st.recursive(
    st.sampled_from([i, j]) | st.integers(-9, 9).map(Const),
    lambda parts: st.builds(Binary, st.sampled_from([*OPERATORS]), parts, parts),
    max_leaves=8,
)


def value_of(expr: Expr, values: dict[IterVar, int]) -> int:
    if isinstance(expr, IterVar):
        return values[expr]
    if isinstance(expr, Const):
        return expr.value
    assert isinstance(expr, Binary)
    return int(OPERATORS[expr.op](value_of(expr.a, values), value_of(expr.b, values)))


@examples(500)
@given(scalars, st.integers(-5, 5), st.integers(-5, 5))
def test_the_text_is_equivalent_python(expr: Expr, first: int, second: int) -> None:
    try:
        expected = value_of(expr, {i: first, j: second})
    except (ArithmeticError, ValueError):  # division by zero, shift by a negative amount
        return
    assert eval(format_expr(expr), {"min": min, "max": max, "i": first, "j": second}) == expected


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (i * 8 + j, "i*8+j"),
        ((i + j) * 8, "(i+j)*8"),
        (i - (j - 2), "i-(j-2)"),
        (i * (j // 2), "i*(j//2)"),
        (i * j // 2 % 3, "i*j//2%3"),
        (te.min(i + 8, 13), "min(i+8, 13)"),
        (A[i * 8 + j, j] * B[j], "A[i*8+j][j] * B[j]"),
        (te.clip(B[i] + B[j] >> 4, -128, 127), "min(max(B[i] + B[j] >> 4, -128), 127)"),
        (B[i] + (B[j] >> 4), "B[i] + (B[j] >> 4)"),
        (
            te.cast(te.sum(A[i, j] * 2, axis=te.reduce_axis((0, 4), name="k")), "int8"),
            "int8(sum(A[i][j] * 2, axis=[k]))",
        ),
    ],
)
def test_text(expr: Expr, text: str) -> None:
    assert format_expr(expr) == text


def test_reads_of_buffers_print_alike() -> None:
    assert isinstance(A(i, j), Read)
    assert format_expr(A(i, j)) == "A[i][j]"
