"""The reference semantics of tensor expressions, in numpy. It shares no code with the lowering.

All elements of a node are evaluated at once, in int32. Sums of products are matrix products in floats where
provably exact, otherwise in int64, which wraps as int32 does.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.arguments import check_mapping, plain_array
from accel.base.blas import exact, one_blas_thread
from accel.base.errors import ShapeError
from accel.compiler.expr.scalar_expressions import (
    Binary,
    Cast,
    Composed,
    Const,
    Expr,
    Function,
    Guarded,
    IterVar,
    Read,
    Sum,
    maximum,
    minimum,
    rewrite,
)
from accel.compiler.expr.tensor_expressions import Compute, Tensor, producers, reduction

Array = npt.NDArray[Any]
_Fixed = dict[IterVar, int]

_MAGNITUDES = {"int8": 1 << 7, "uint8": 1 << 8, "int16": 1 << 15, "int32": 1 << 31}
_EXACT_FLOATS = ((1 << 24, np.float32), (1 << 53, np.float64))
"""Integers up to which all sums are exact."""
_SINGLE_THREAD_PRODUCTS = 1 << 30
"""Maximum number of products for which one thread suffices."""


def evaluate(outputs: Sequence[Tensor], inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the values of ``outputs`` by name.

    Args:
        inputs: the value of every placeholder, by name.

    Raises:
        ShapeError: an input is missing or no plain array, or ``inputs`` is no mapping.
    """
    inputs = check_mapping("the inputs", inputs)
    values: dict[Tensor, Array] = {}
    for tensor in producers(outputs):
        if isinstance(tensor.op, Compute):
            values[tensor] = _compute(tensor.op, values)
        elif tensor.name in inputs:
            what = f"a numpy array of {tensor.dtype}{list(tensor.shape)}"
            values[tensor] = plain_array(tensor.name, inputs[tensor.name], what)
        else:
            raise ShapeError(f"the input {tensor.name} is missing; it is {tensor.dtype}{list(tensor.shape)}")
    return {tensor.name: values[tensor] for tensor in outputs}


def _compute(op: Compute, values: dict[Tensor, Array]) -> Array:
    total = reduction(op.body)
    result = _value(op.body, op.axis, {}, values) if total is None else _sum(op, total, values)
    return np.broadcast_to(result, op.shape).astype(op.dtype)


def _sum(op: Compute, total: Sum, values: dict[Tensor, Array]) -> Array:
    factors = _product_of_reads(total.body)
    if factors is not None:
        few = prod(op.shape) * prod(axis.extent for axis in total.axes) <= _SINGLE_THREAD_PRODUCTS
        with one_blas_thread() if few else nullcontext():
            contracted = _contract(op.axis, total.axes, factors, values)
        if contracted is not None:
            return contracted
    result = np.zeros(op.shape, dtype=np.int32)
    for numbers in product(*(range(axis.extent) for axis in total.axes)):
        result += _value(total.body, op.axis, dict(zip(total.axes, numbers, strict=True)), values)
    return result


def _product_of_reads(body: Expr) -> list[Read] | None:
    if isinstance(body, Read):
        return [body]
    if isinstance(body, Binary) and body.op == "*":
        a, b = _product_of_reads(body.a), _product_of_reads(body.b)
        if a is not None and b is not None and len(a) + len(b) <= 2:
            return a + b
    return None


@exact
def _contract(
    axes: Sequence[IterVar], reduce: Sequence[IterVar], factors: list[Read], values: dict[Tensor, Array]
) -> Array | None:
    """Compute a sum of products as matrix products, or None if an index mixes axes in a way that views
    cannot.

    Reduce axes that share an index with another variable, such as the taps of a convolution, are iterated
    over strided views.
    """
    stepped = [axis for axis in reduce if any(_shares(index, axis) for r in factors for index in r.indices)]
    letters = {v: chr(ord("a") + n) for n, v in enumerate([*axes, *reduce])}
    dtype = _exact_dtype(prod(v.extent for v in reduce if v not in stepped), factors)
    shape = tuple(axis.extent for axis in axes)
    result = np.zeros(shape, dtype=np.int64)
    for numbers in product(*(range(axis.extent) for axis in stepped)):
        fixed = dict(zip(stepped, numbers, strict=True))
        views, labels = [], []
        for read in factors:
            view = _view(read, fixed, values)
            if view is None:
                return None
            views.append(view[0].astype(dtype))
            labels.append("".join(letters[v] for v in view[1]))
        named = [v for v in axes if any(letters[v] in label for label in labels)]
        missing = [v for v in reduce if v not in stepped and not any(letters[v] in label for label in labels)]
        out = "".join(letters[v] for v in named)
        part = np.einsum(",".join(labels) + "->" + out, *views, optimize=True).astype(np.int64)
        expanded = part.reshape([v.extent if v in named else 1 for v in axes])
        result += expanded * prod(v.extent for v in missing)
    return result.astype(np.int32)


def _exact_dtype(terms: int, factors: Sequence[Read]) -> type[Any]:
    """The dtype in which sums of these products are exact in any order. int64 wraps."""
    largest = terms * prod(_MAGNITUDES[read.dtype] for read in factors)
    return next((dtype for most, dtype in _EXACT_FLOATS if largest <= most), np.int64)


def _affine(index: Expr, fixed: _Fixed) -> tuple[int, dict[IterVar, int]] | None:
    if isinstance(index, Const):
        return index.value, {}
    if isinstance(index, IterVar):
        return (fixed[index], {}) if index in fixed else (0, {index: 1})
    if not isinstance(index, Binary) or index.op not in ("+", "-", "*"):
        return None
    a, b = _affine(index.a, fixed), _affine(index.b, fixed)
    if a is None or b is None:
        return None
    if index.op == "*":
        if b[1]:
            a, b = b, a
        return None if b[1] else (a[0] * b[0], {v: f * b[0] for v, f in a[1].items()})
    sign = 1 if index.op == "+" else -1
    factors = dict(a[1])
    for v, f in b[1].items():
        factors[v] = factors.get(v, 0) + sign * f
    return a[0] + sign * b[0], {v: f for v, f in factors.items() if f}


def _shares(index: Expr, axis: IterVar) -> bool:
    form = _affine(index, {})
    return form is not None and axis in form[1] and form != (0, {axis: 1})


def _view(read: Read, fixed: _Fixed, values: dict[Tensor, Array]) -> tuple[Array, list[IterVar]] | None:
    """Return a view with one dimension per variable, in order of ``read``'s indices."""
    assert isinstance(read.tensor, Tensor)
    slices: list[int | slice] = []
    order: list[IterVar] = []
    for index in read.indices:
        form = _affine(index, fixed)
        if form is None or len(form[1]) > 1:
            return None
        start, factors = form
        if not factors:
            slices.append(start)
            continue
        ((v, step),) = factors.items()
        if v in order or step < 1:
            return None
        order.append(v)
        slices.append(slice(start, start + step * (v.extent - 1) + 1, step))
    return values[read.tensor][tuple(slices)], order


def _value(expr: Expr, axes: Sequence[IterVar], fixed: _Fixed, values: dict[Tensor, Array]) -> Array:
    if isinstance(expr, Const):
        return np.array(expr.value, dtype=np.int32)
    if isinstance(expr, IterVar):
        if expr in fixed:
            return np.array(fixed[expr], dtype=np.int32)
        shape = [axis.extent if axis is expr else 1 for axis in axes]
        return np.arange(expr.extent, dtype=np.int32).reshape(shape)
    if isinstance(expr, Cast):
        return _value(expr.value, axes, fixed, values).astype(expr.to)
    if isinstance(expr, Read):
        assert isinstance(expr.tensor, Tensor)
        index = tuple(_value(i, axes, fixed, values) for i in expr.indices)
        return values[expr.tensor][index].astype(np.int32)
    if isinstance(expr, Guarded):
        holds = np.array(True)
        for a, b in expr.conditions:
            holds = holds & (_value(a, axes, fixed, values) < _value(b, axes, fixed, values))
        inside = rewrite(expr.value, _clamped)
        return np.where(holds, _value(inside, axes, fixed, values), np.int32(expr.otherwise))
    if isinstance(expr, Composed):
        return _value(expr.plain(), axes, fixed, values)
    if isinstance(expr, Function):
        return expr.values(*(_value(part, axes, fixed, values) for part in expr.parts())).astype(np.int32)
    assert isinstance(expr, Binary)
    return apply(expr.op, _value(expr.a, axes, fixed, values), _value(expr.b, axes, fixed, values))


def _clamped(node: Expr) -> Expr | None:
    if not isinstance(node, Read):
        return None
    sizes = zip(node.indices, node.tensor.shape, strict=True)
    return Read(node.tensor, tuple(minimum(maximum(i, 0), size - 1) for i, size in sizes))


def index_values(index: Expr, axes: Sequence[IterVar]) -> Array:
    """An index expression for all values of ``axes``, one array dimension each."""
    return _value(index, axes, {}, {})


def values_at(index: Expr, at: Mapping[IterVar, Array]) -> Array:
    """An index expression for the values ``at`` of its variables."""
    if isinstance(index, Const):
        return np.array(index.value)
    if isinstance(index, IterVar):
        return at[index]
    assert isinstance(index, Binary)
    a, b = values_at(index.a, at), values_at(index.b, at)
    operations = {
        "+": np.add,
        "-": np.subtract,
        "*": np.multiply,
        "//": np.floor_divide,
        "%": np.remainder,
        "min": np.minimum,
        "max": np.maximum,
    }
    return np.asarray(operations[index.op](a, b))


def apply(op: str, a: Array, b: Array) -> Array:
    """Shifts by negative amounts go the other way."""
    x, y = np.broadcast_arrays(a.astype(np.int32), b.astype(np.int32))
    if op in ("<<", ">>"):
        right = y.astype(np.int64) if op == ">>" else -y.astype(np.int64)
        wide = x.astype(np.int64)
        shifted: Array = np.where(right >= 0, wide >> right.clip(0, 63), wide << (-right).clip(0, 32))
        return np.asarray(shifted, dtype=np.int64).astype(np.int32)
    if op in ("//", "%"):
        if (y == 0).any():
            raise ShapeError("a tensor expression divides by zero")
        wide = x.astype(np.int64)
        return np.asarray(wide // y if op == "//" else wide % y).astype(np.int32)
    simple = {"+": np.add, "-": np.subtract, "*": np.multiply, "min": np.minimum, "max": np.maximum}
    return np.asarray(simple[op](x, y))
