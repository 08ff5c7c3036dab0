"""Tensor expressions: construction, and errors that are raised where the expression is written."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

from accel import te
from accel.base.errors import ShapeError
from accel.compiler.expr.scalar_expressions import Cast, Const, Expr, IterVar, Sum
from accel.compiler.expr.tensor_expressions import (
    LONGEST_REDUCTION,
    LONGEST_SUM,
    Compute,
    check_compute,
    producers,
    reduction,
)
from tests.expect import refused

A = te.placeholder((8, 6), name="A")
k = te.reduce_axis((0, 6), name="k")


def compute_op(*args: Any, **options: Any) -> Compute:
    op = te.compute(*args, **options).op
    assert isinstance(op, Compute)
    return op


def test_a_placeholder() -> None:
    T = te.placeholder((2, 3), "int32", name="T")
    assert (T.name, T.shape, T.dtype, repr(T)) == ("T", (2, 3), "int32", "Tensor(T, (2, 3), int32)")


def test_parameters_name_the_axes() -> None:
    op = compute_op((4, 6), lambda row, column: A[row, column], name="C")
    assert [(axis.name, axis.extent, axis.kind) for axis in op.axis] == [
        ("row", 4, "space"),
        ("column", 6, "space"),
    ]
    assert [axis.name for axis in compute_op((4, 6), lambda *axes: A[axes]).axis] == ["i0", "i1"]


def test_a_sum_has_reduce_axes() -> None:
    op = compute_op((8,), lambda y: te.sum(A[y, k], axis=k), name="C", dtype="int8")
    assert op.reduce_axis == (k,)
    assert isinstance(op.body, Cast)
    assert reduction(op.body) == Sum(A[op.axis[0], k], (k,))
    assert compute_op((8,), lambda y: A[y, 0]).reduce_axis == ()


@pytest.mark.parametrize(
    ("body", "dtype", "expected"),
    [
        (lambda y: A[y, 0], None, "int8"),
        (lambda y: A[y, 0] + 1, None, "int32"),
        (lambda y: A[y, 0] + 1, "int8", "int8"),
        (lambda y: A[y, 0], "int32", "int32"),
        (lambda y: 5, None, "int32"),
        (lambda y: te.sum(1, axis=k), "int8", "int8"),
    ],
)
def test_dtypes(body: Callable[[IterVar], Expr], dtype: str | None, expected: str) -> None:
    C = te.compute((8,), body, dtype=dtype)
    assert C.dtype == expected


def test_producers_come_after_what_they_read() -> None:
    B = te.compute((8,), lambda y: A[y, 0], name="B")
    C = te.compute((8,), lambda y: B[y] + A[y, 1], name="C")
    D = te.compute((8,), lambda y: B[y] * C[y], name="D")
    assert producers([D]) == [A, B, C, D]
    assert producers([C, D]) == [A, B, C, D]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: te.placeholder((0, 4), name="P"),
            "the shape of P is (0, 4); it must be one or more positive integers",
        ),
        (
            lambda: te.placeholder((), name="P"),
            "the shape of P is (); it must be one or more positive integers",
        ),
        (
            lambda: te.placeholder((True,), name="P"),
            "the shape of P is (True,); it must be one or more positive integers",
        ),
        (
            lambda: te.placeholder((4,), "int16"),
            "placeholder is given as int16; DRAM holds 'int8', 'uint8' and 'int32'",
        ),
        (lambda: te.placeholder((4,), name="2x"), "the name is '2x'; it must be an identifier"),
        (
            lambda: te.reduce_axis((1, 4)),
            "the reduce axis 'k' runs over 1..4; it must start at 0 and not be empty",
        ),
        (
            lambda: te.reduce_axis((0, 0)),
            "the reduce axis 'k' runs over 0..0; it must start at 0 and not be empty",
        ),
        (lambda: A[0], "A is read with 1 indices; it has 2 dimensions"),
        (lambda: A[0, 6], "A is read at 6 in dimension 1; indices there are 0..5"),
        (lambda: A[-1, k], "A is read at -1 in dimension 0; indices there are 0..7"),
        (lambda: te.sum(A[0, k], axis=[]), "sum runs over no axis; it must be one or more axes, each once"),
        (lambda: te.sum(A[0, k], axis=[k, k]), "sum runs over k, k; it must be one or more axes, each once"),
        (
            lambda: te.sum(A[0, k], axis=IterVar("y", 8)),
            "sum runs over IterVar(y, 8, space); it must be made by reduce_axis",
        ),
        (
            lambda: te.compute((8,), lambda y, x: A[y, x]),
            "the computation takes 2 indices; its shape has 1 dimensions",
        ),
        (
            lambda: te.compute((8,), lambda y: te.sum(A[y, k], axis=k) + 1, name="C"),
            "C has a sum inside another expression; make the sum a computation of its own",
        ),
        (
            lambda: te.compute((8,), lambda y: A[y, k], name="C"),
            "C uses the axis 'k', which neither its shape nor a sum binds",
        ),
        (
            lambda: te.compute((8,), lambda y: A[y, A[0, 0]], name="C"),
            "C reads A at an index that is itself read from a tensor",
        ),
        (
            lambda: te.compute((8,), lambda y: A[y + 1, 0], name="C"),
            "C reads A at y+1 in dimension 0, which runs over 1..8; the tensor has 8 there",
        ),
        (
            lambda: te.compute((8,), lambda y: A[y, 2 - y], name="C"),
            "C reads A at 2-y in dimension 1, which runs over -5..2; the tensor has 6 there",
        ),
    ],
)
def test_refused_arguments(make: Callable[[], object], message: str) -> None:
    with refused(ShapeError, message):
        make()


def test_products_whose_sum_may_overflow_int32() -> None:
    """The largest product of two int8 values is 2**14."""
    assert LONGEST_REDUCTION * (1 << 14) < 1 << 31 <= (LONGEST_REDUCTION + 1) * (1 << 14)

    def dot(length: int) -> te.Tensor:
        P, Q = (te.placeholder((length,), name=name) for name in "PQ")
        n = te.reduce_axis((0, length))
        return te.compute((1,), lambda y: te.sum(P[n] * Q[n], axis=n), name="C")

    dot(LONGEST_REDUCTION)
    with refused(ShapeError, "C sums 131072 products of int8 values; int32 can hold 131071"):
        dot(LONGEST_REDUCTION + 1)


def test_elements_whose_sum_may_overflow_int32() -> None:
    """The largest magnitude of an int8 value is 2**7. Padding does not change it."""
    assert LONGEST_SUM * (1 << 7) < 1 << 31 <= (LONGEST_SUM + 1) * (1 << 7)

    def total(length: int) -> te.Tensor:
        P = te.pad(te.placeholder((length,), name="P"), [1])
        n = te.reduce_axis((0, length))
        return te.compute((1,), lambda y: te.sum(P[n], axis=n), name="C")

    total(LONGEST_SUM)
    with refused(ShapeError, "C sums 16777216 int8 values; int32 can hold 16777215"):
        total(LONGEST_SUM + 1)


@pytest.mark.parametrize("shape", [(1 << 20, (1 << 20) + 1), (10**30,)])
def test_tensors_larger_than_the_address_space(shape: tuple[int, ...]) -> None:
    message = f"A has {prod(shape)} elements; DRAM's addresses of 40 bits reach 1099511627776 of one byte"
    with refused(ShapeError, message):
        te.placeholder(shape, name="A")
    with refused(ShapeError, message):
        te.compute(shape, lambda *i: 0, name="A")
    assert te.placeholder((1 << 20, 1 << 20), name="A").shape == (1 << 20, 1 << 20)


def test_elements_have_the_tensors_dtype() -> None:
    axis = IterVar("y", 8)
    with refused(ShapeError, "C is int8; its elements are int32"):
        check_compute(Compute("C", (8,), "int8", (axis,), Const(1)))


# --- operators on whole tensors ---------------------------------------------------------------------


def test_tensors_are_added_scaled_and_multiplied() -> None:
    A, B = (te.placeholder((3, 4), name=name) for name in "AB")
    W = te.placeholder((4, 2), name="W")
    given = {
        "A": np.arange(12, dtype=np.int8).reshape(3, 4),
        "B": np.full((3, 4), -5, np.int8),
        "W": np.arange(8, dtype=np.int8).reshape(4, 2),
    }
    a, b, w = (given[name].astype(np.int32) for name in "ABW")
    for tensor, expected in ((A + B, a + b), (A - B, a - b), (A * B, a * b), (A * 3, 3 * a), (A @ W, a @ w)):
        inputs = {name: value for name, value in given.items() if name in tensor.name.split("_")}
        (found,) = te.evaluate([tensor], inputs).values()
        assert tensor.dtype == "int32"
        np.testing.assert_array_equal(found, expected)


def test_tensors_of_other_shapes_are_refused() -> None:
    A, W = te.placeholder((3, 4), name="A"), te.placeholder((4, 2), name="W")
    with refused(ShapeError, "A + W has shapes (3, 4) and (4, 2); they must be equal"):
        A + W
    with refused(ShapeError, "W @ A has shapes (4, 2) and (3, 4); they must be (M, K) and (K, N)"):
        W @ A
