"""Sums as products with an identity matrix, so that a GEMM core can do them.

``S[o] = sum over d of A[o, d]`` is the sum over d and c of ``A[o//16*16 + c, d] * I[o%16, c]``. That takes a
slot of the compute unit for each element, as an addition in the ALU does; but operands come through the load
unit, which works ahead, and need no accumulators.
"""

from accel.base.errors import ScheduleError
from accel.compiler.expr.linear import simplify, variables
from accel.compiler.expr.scalar import Cast, Condition, Const, Expr, Guarded, IterVar, Read, Sum, rewrite
from accel.compiler.expr.tensor import Tensor, reduction


def unit_element(axes: tuple[IterVar, ...]) -> Expr:
    """An element of the identity matrix."""
    row, column = axes
    return Cast(Guarded(Const(1), ((row, column + 1), (column, row + 1))), "int8")


def read_along(name: str, body: Expr, axis: IterVar) -> tuple[Read, int]:
    """What a computation sums up, or copies, and the dimension in which its index is ``axis``.

    Raises:
        ScheduleError: it is no sum or copy of elements of one tensor, or has no such dimension.
    """
    total = reduction(body)
    value = body if total is None else total.body
    value = value.value if isinstance(value, Guarded) else value
    if isinstance(value, Read):
        along = [d for d, index in enumerate(value.indices) if axis in variables(index)]
        if len(along) == 1 and value.indices[along[0]] == axis:
            return value, along[0]
    raise ScheduleError(
        f"{name} is no sum of elements at {axis.name} of one tensor; only such are products with an identity "
        f"matrix"
    )


def product_body(body: Expr, axis: IterVar, column: IterVar, unit: Tensor) -> Expr:
    """The body, multiplied by ``unit`` along ``axis`` and summed up over ``column``, too.

    Args:
        body: of the computation.
        axis: along which blocks are multiplied.
        column: of the unit matrix.
        unit: the matrix, as large as a block.
    """
    size = column.extent
    limit = axis.extent
    index = simplify(axis // size * size + column) if size < limit else column
    conditions: tuple[Condition, ...] = ((index, Const(limit)),) if limit % size else ()

    def change(node: Expr) -> Expr | None:
        if not isinstance(node, Read):
            return None
        shifted = Read(node.tensor, tuple(index if i == axis else i for i in node.indices))
        return Guarded(shifted, conditions) if conditions else shifted

    total = reduction(body)
    factor = Read(unit, (simplify(axis % size), column))
    product = rewrite(body if total is None else total.body, change) * factor
    if total is None:
        return Sum(product, (column,))
    return rewrite(body, lambda n: Sum(product, (column, *total.axes)) if n is total else None)
