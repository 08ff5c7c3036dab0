"""The numpy reference compared with the definition, also where sums are long or wrap."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from accel import te
from accel.base.errors import ShapeError
from accel.compiler.expr.numpy_reference import apply, index_values
from accel.compiler.expr.scalar_expressions import Binary
from tests.compiler.expressions import random_expression
from tests.compiler.oracle import expected, operated, some_inputs, wrapped
from tests.expect import refused
from tests.strategies import examples

MIN, MAX = -(1 << 31), (1 << 31) - 1


@examples(300)
@given(st.integers(0, 1 << 32))
def test_random_expressions(seed: int) -> None:
    output = random_expression(Random(seed))
    inputs = some_inputs([output], seed)
    want = expected([output], inputs)[output.name]
    found = te.evaluate([output], inputs)[output.name]
    assert found.dtype == output.dtype
    np.testing.assert_array_equal(found, want)


def convolution() -> te.Tensor:
    D = te.placeholder((2, 5, 9, 9), name="D")
    W = te.placeholder((4, 5, 3, 3), name="W")
    c, dy, dx = (te.reduce_axis((0, n), name=v) for v, n in (("c", 5), ("dy", 3), ("dx", 3)))
    return te.compute(
        (2, 4, 4, 4),
        lambda n, o, y, x: te.sum(D[n, c, 2 * y + dy, 2 * x + dx] * W[o, c, dy, dx], axis=[c, dy, dx]),
    )


def repeated_sum() -> te.Tensor:
    """A sum over an axis that its body does not depend on."""
    A = te.placeholder((6, 5), name="A")
    r, k = te.reduce_axis((0, 7), name="r"), te.reduce_axis((0, 5), name="k")
    return te.compute((6,), lambda y: te.sum(A[y, k], axis=[k, r]))


def wide_product() -> te.Tensor:
    """Sums that exceed the integers of float64."""
    A, B = (te.placeholder((6, 40), "int32", name=name) for name in "AB")
    k = te.reduce_axis((0, 40), name="k")
    return te.compute((6, 6), lambda y, x: te.sum(A[y, k] * B[x, k], axis=k))


@pytest.mark.parametrize("make", [convolution, repeated_sum, wide_product])
def test_sums(make: Any) -> None:
    output = make()
    inputs = some_inputs([output], 1)
    np.testing.assert_array_equal(
        te.evaluate([output], inputs)[output.name], expected([output], inputs)[output.name]
    )


def test_a_missing_input() -> None:
    A = te.placeholder((6, 5), name="A")
    with refused(ShapeError, "the input A is missing; it is int8[6, 5]"):
        te.evaluate([te.compute((6,), lambda y: A[y, 0] + 1)], {})


# --- operations ----------------------------------------------------------------------------------

numbers = st.sampled_from([MIN, MIN + 1, -129, -1, 0, 1, 2, 31, 32, 33, 127, MAX - 1, MAX]) | st.integers(
    MIN, MAX
)
shifts = st.integers(-40, 40) | st.sampled_from([MIN, MAX])


@examples(400)
@example("//", MIN, -1, 0)
@given(st.sampled_from(["+", "-", "*", "min", "max", "//", "%", ">>", "<<"]), numbers, numbers, shifts)
def test_operations_wrap_at_32_bits(op: str, a: int, b: int, shift: int) -> None:
    b = shift if op in (">>", "<<") else b or 1
    want = wrapped(operated(op, np.array([a]), np.array([b])), "int32")
    np.testing.assert_array_equal(apply(op, np.array([a]), np.array([b])), want)


@pytest.mark.parametrize("op", ["//", "%"])
def test_division_by_zero(op: str) -> None:
    with refused(ShapeError, "a tensor expression divides by zero"):
        apply(op, np.array([4, 5]), np.array([1, 0]))


def test_index_values() -> None:
    y, x = te.IterVar("y", 3), te.IterVar("x", 2)
    np.testing.assert_array_equal(index_values(Binary("+", y * 4, x), [y, x]), [[0, 1], [4, 5], [8, 9]])
