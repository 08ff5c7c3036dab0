"""The value of a tensor expression over the whole grid of its axes, in int64. It shares no code with the
compiler.

Each operation's result wraps to int32, and each tensor's to its dtype.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.compiler.expr.scalar_expressions import Binary, Cast, Const, Expr, Guarded, IterVar, Read, Sum
from accel.compiler.expr.tensor_expressions import Compute, Tensor

Array = npt.NDArray[Any]


def expected(outputs: Sequence[Tensor], inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The values of ``outputs`` by name."""
    known: dict[Tensor, Array] = {}
    return {tensor.name: _tensor(tensor, inputs, known) for tensor in outputs}


def _tensor(tensor: Tensor, inputs: Mapping[str, Array], known: dict[Tensor, Array]) -> Array:
    if tensor not in known:
        op = tensor.op
        if isinstance(op, Compute):
            known[tensor] = _compute(op, inputs, known)
        else:
            known[tensor] = inputs[op.name]
    return known[tensor]


def _compute(op: Compute, inputs: Mapping[str, Array], known: dict[Tensor, Array]) -> Array:
    every = [*op.axis, *op.reduce_axis]
    shape = tuple(axis.extent for axis in every)
    grid = dict(zip(every, np.indices(shape, sparse=True), strict=True))
    summed = tuple(range(len(op.axis), len(every)))

    def value(expr: Expr) -> Array:
        if isinstance(expr, Const):
            return np.array(expr.value)
        if isinstance(expr, IterVar):
            return grid[expr]
        if isinstance(expr, Read):
            assert isinstance(expr.tensor, Tensor)
            source = _tensor(expr.tensor, inputs, known)
            return source[tuple(value(i) for i in expr.indices)].astype(np.int64)
        if isinstance(expr, Cast):
            return wrapped(value(expr.value), expr.to)
        if isinstance(expr, Guarded):
            return guarded(expr)
        if isinstance(expr, Sum):
            return wrapped(np.broadcast_to(value(expr.body), shape).sum(axis=summed), "int32")
        assert isinstance(expr, Binary)
        return wrapped(operated(expr.op, value(expr.a), value(expr.b)), "int32")

    def guarded(expr: Guarded) -> Array:
        """Evaluate point by point, so that guarded reads outside a tensor do not happen."""
        result = np.full(shape, expr.otherwise, dtype=np.int64)
        holds = [np.broadcast_to(value(a) < value(b), shape) for a, b in expr.conditions]
        for point in np.argwhere(np.logical_and.reduce(holds)):
            at = {v: np.array(n) for v, n in zip(every, point, strict=True)}
            whole = grid.copy()
            grid.update(at)
            result[tuple(point)] = value(expr.value).item()
            grid.update(whole)
        return result

    return np.broadcast_to(wrapped(value(op.body), op.dtype), op.shape).astype(op.dtype)


def wrapped(value: Array, dtype: str) -> Array:
    """``value`` modulo the range of ``dtype``, as int64."""
    half = 1 << (7 if dtype == "int8" else 31)
    return np.asarray((value + half) % (2 * half) - half)


def operated(op: str, a: Array, b: Array) -> Array:
    """``a op b`` on int32 values, before it wraps."""
    if op == "<<":
        op, b = ">>", -b
    if op == ">>":
        right, left = np.clip(b, 0, 31), np.clip(-b, 0, 32)
        return np.asarray((a >> right) * (1 << left))
    return np.asarray(
        {
            "+": np.add,
            "-": np.subtract,
            "*": np.multiply,
            "//": np.floor_divide,
            "%": np.mod,
            "min": np.minimum,
            "max": np.maximum,
        }[op](a, b)
    )


def some_inputs(outputs: Sequence[Tensor], seed: int) -> dict[str, Array]:
    """Random values for every placeholder."""
    rng = np.random.default_rng(seed)
    found: dict[str, Array] = {}

    def visit(tensor: Tensor) -> None:
        op = tensor.op
        if isinstance(op, Compute):
            for read in _reads(op.body):
                visit(read)
        elif op.name not in found:
            info = np.iinfo(op.dtype)
            found[op.name] = rng.integers(info.min, info.max + 1, op.shape).astype(op.dtype)

    for tensor in outputs:
        visit(tensor)
    return found


def _reads(expr: Expr) -> list[Tensor]:
    if isinstance(expr, Read):
        assert isinstance(expr.tensor, Tensor)
        return [expr.tensor]
    parts = {Binary: ("a", "b"), Cast: ("value",), Sum: ("body",), Guarded: ("value",)}.get(type(expr), ())
    return [tensor for part in parts for tensor in _reads(getattr(expr, part))]
