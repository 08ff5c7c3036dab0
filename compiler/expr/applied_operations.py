"""Declared ALU operations in tensor expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from accel.base.errors import ShapeError
from accel.compiler.expr.scalar_expressions import Expr, Function, as_expr
from accel.core.alu_operations import Operation, find_operation


class Applied(Function, frozen=True):
    """``operation(value, operand)`` on int32. ``operation`` names a declared operation."""

    operation: str
    value: Expr
    operand: Expr
    NAME: ClassVar[str] = "alu"

    @property
    def name(self) -> str:
        return self.operation

    def parts(self) -> tuple[Expr, ...]:
        return self.value, self.operand

    def rewritten(self, change: Callable[[Expr], Expr]) -> Applied:
        return Applied(self.operation, change(self.value), change(self.operand))

    def values(self, *parts: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return operation_values(self.operation, *parts)

    def to_data(self) -> str:
        return f"{self.operation}@{find_operation(self.operation).digest}"


def operation_values(name: str, x: npt.NDArray[Any], y: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    left, right = np.broadcast_arrays(x.astype(np.int32), y.astype(np.int32))
    return find_operation(name).function(left, right)


def apply(operation: Operation | str, x: Expr | int, y: Expr | int) -> Expr:
    """Return the value of a declared ALU operation on two values.

    For example, ``te.apply("absdiff", A[i, j], 7)`` is ``|A[i, j] - 7|`` if absdiff is ``|x - y|``.

    Raises:
        ConfigError: the operation is not declared.
        ShapeError: it crosses lanes, which elements of tensor expressions do not have.
    """
    return Applied(elementwise_operation(operation).name, as_expr(x), as_expr(y))


def elementwise_operation(operation: Operation | str) -> Operation:
    """Return a declared operation that elements of tensor expressions can have, or raise as :func:`apply`."""
    found = operation if isinstance(operation, Operation) else find_operation(operation)
    if found.crosses_lanes:
        raise ShapeError(
            f"operation {found.name!r} crosses the lanes of an element; a tensor expression has no lanes: "
            f"declare an intrinsic whose emitter uses it"
        )
    return find_operation(found.name)
