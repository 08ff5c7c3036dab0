"""Tensor expressions as plain data, never code, for program files."""

from collections.abc import Sequence
from typing import Any

from accel.base.errors import AccelError, ProgramError
from accel.compiler.expr.applied_operations import Applied, apply
from accel.compiler.expr.quantized_expressions import Added, Requantized
from accel.compiler.expr.quantized_products import Multiplied
from accel.compiler.expr.scalar_expressions import (
    Binary,
    Cast,
    Composed,
    Const,
    Expr,
    Guarded,
    IterVar,
    Read,
    Sum,
    as_expr,
    check_dtype,
)
from accel.compiler.expr.table_expressions import LookedUp
from accel.compiler.expr.tensor_expressions import (
    Compute,
    Tensor,
    check_compute,
    check_name,
    check_shape,
    placeholder,
    producers,
    reduce_axis,
)
from accel.core.config.alu_ops_field import checked_alu_ops

_FUNCTIONS: dict[str, type[Requantized] | type[Added] | type[LookedUp] | type[Multiplied]] = {
    cls.NAME: cls for cls in (Requantized, Added, LookedUp, Multiplied)
}


def expression_to_data(outputs: Sequence[Tensor]) -> dict[str, Any]:
    """Data of all tensors that ``outputs`` depend on, each after the tensors that it reads."""
    tensors: list[dict[str, Any]] = []
    for tensor in producers(outputs):
        op = tensor.op
        entry: dict[str, Any] = {"name": op.name, "shape": list(op.shape), "dtype": op.dtype}
        if isinstance(op, Compute):
            entry["axes"] = [axis.name for axis in op.axis]
            entry["reduce"] = [[axis.name, axis.extent] for axis in op.reduce_axis]
            entry["body"] = _to_data(op.body, {v: _key(op, v) for v in (*op.axis, *op.reduce_axis)})
        tensors.append(entry)
    return {"tensors": tensors, "outputs": [t.name for t in outputs]}


def _key(op: Compute, v: IterVar) -> str:
    if v in op.axis:
        return f"s{op.axis.index(v)}"
    return f"r{op.reduce_axis.index(v)}"


def _to_data(expr: Expr, keys: dict[IterVar, str]) -> Any:
    if isinstance(expr, Const):
        return expr.value
    if isinstance(expr, IterVar):
        return keys[expr]
    if isinstance(expr, Binary):
        return [expr.op, _to_data(expr.a, keys), _to_data(expr.b, keys)]
    if isinstance(expr, Cast):
        return ["cast", expr.to, _to_data(expr.value, keys)]
    if isinstance(expr, Read):
        return ["read", expr.tensor.name, *(_to_data(i, keys) for i in expr.indices)]
    if isinstance(expr, Guarded):
        conditions = [_to_data(side, keys) for condition in expr.conditions for side in condition]
        if expr.otherwise:
            return ["guarded_else", expr.otherwise, _to_data(expr.value, keys), *conditions]
        return ["guarded", _to_data(expr.value, keys), *conditions]
    if isinstance(expr, Composed):
        return _to_data(expr.plain(), keys)
    if isinstance(expr, Requantized | Added | LookedUp | Multiplied | Applied):
        return [expr.NAME, expr.to_data(), *(_to_data(part, keys) for part in expr.parts())]
    assert isinstance(expr, Sum)
    return ["sum", _to_data(expr.body, keys)]


def expression_from_data(data: Any) -> tuple[Tensor, ...]:
    """Rebuild the output tensors. Raise a ProgramError for damaged data."""
    try:
        known: dict[str, Tensor] = {}
        for entry in data["tensors"]:
            name = check_name(entry["name"])
            if "body" in entry:
                known[name] = _compute(entry, known)
            else:
                known[name] = placeholder(entry["shape"], entry["dtype"], name=name)
        return tuple(known[name] for name in data["outputs"])
    except AccelError as error:
        raise ProgramError(f"the tensor expression is damaged: {error}") from None
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError) as error:
        raise ProgramError(f"the tensor expression is damaged: {type(error).__name__} at {error}") from None


def _compute(entry: Any, known: dict[str, Tensor]) -> Tensor:
    shape = check_shape(entry["name"], entry["shape"])
    axes = tuple(IterVar(check_name(n), size) for n, size in zip(entry["axes"], shape, strict=True))
    reduce = tuple(reduce_axis((0, size), name=n) for n, size in entry["reduce"])
    variables = {f"s{i}": v for i, v in enumerate(axes)} | {f"r{i}": v for i, v in enumerate(reduce)}
    body = _from_data(entry["body"], known, variables, reduce)
    op = Compute(entry["name"], shape, check_dtype(entry["dtype"]), axes, body)
    check_compute(op)
    return op.tensor


def _from_data(
    data: Any, known: dict[str, Tensor], variables: dict[str, IterVar], reduce: tuple[IterVar, ...]
) -> Expr:
    if isinstance(data, int):
        return as_expr(data)
    if isinstance(data, str):
        return variables[data]
    kind, *rest = data
    if kind == "cast":
        return Cast(_from_data(rest[1], known, variables, reduce), check_dtype(rest[0]))
    if kind == "read":
        return known[rest[0]][tuple(_from_data(i, known, variables, reduce) for i in rest[1:])]
    if kind == "sum":
        return Sum(_from_data(rest[0], known, variables, reduce), reduce)
    if kind in _FUNCTIONS:
        parts = [_from_data(part, known, variables, reduce) for part in rest[1:]]
        return _FUNCTIONS[kind].from_data(rest[0], tuple(parts))
    if kind == Applied.NAME:
        (name,) = checked_alu_ops([rest[0]])
        return apply(name, *(_from_data(part, known, variables, reduce) for part in rest[1:]))
    otherwise = 0
    if kind == "guarded_else":
        otherwise, *rest = rest
        as_expr(otherwise)
    parts = [_from_data(part, known, variables, reduce) for part in rest]
    if kind == "guarded_else":
        return Guarded(parts[0], tuple(zip(parts[1::2], parts[2::2], strict=True)), otherwise)
    if kind == "guarded":
        return Guarded(parts[0], tuple(zip(parts[1::2], parts[2::2], strict=True)))
    a, b = parts
    return Binary(kind, a, b)
