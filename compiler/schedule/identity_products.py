"""Sums as products with an identity matrix, see ``Stage.multiply_identity``.

The product takes one slot per element, like an addition in the ALU, but the load unit can prefetch its
operands, which need no accumulators.
"""

from accel.base.errors import ScheduleError
from accel.compiler.expr.epilogue_operators import Finished, Residual, ResidualProduct, taken_apart
from accel.compiler.expr.linear_expressions import simplify, variables
from accel.compiler.expr.scalar_expressions import (
    Cast,
    Condition,
    Const,
    Expr,
    Guarded,
    IterVar,
    Read,
    Sum,
    format_expr,
    rewrite,
)
from accel.compiler.expr.tensor_expressions import Tensor, reduction


def unit_element(axes: tuple[IterVar, ...]) -> Expr:
    row, column = axes
    return Cast(Guarded(Const(1), ((row, column + 1), (column, row + 1))), "int8")


def read_along(name: str, body: Expr, axis: IterVar) -> tuple[Read, int]:
    """Return the operand of a sum or copy, and the dimension whose index is ``axis``."""
    total = reduction(body)
    value = body if total is None else total.body
    value = value.value if isinstance(value, Guarded) else value
    if isinstance(value, Read):
        along = [d for d, index in enumerate(value.indices) if axis in variables(index)]
        if len(along) == 1 and value.indices[along[0]] == axis:
            return value, along[0]
    raise ScheduleError(
        f"{name} is not a sum of elements at {axis.name} of one tensor; only such sums can be products with "
        f"an identity matrix"
    )


def product_body(body: Expr, axis: IterVar, column: IterVar, unit: Tensor) -> Expr:
    """Multiply by ``unit`` along ``axis``, and sum over ``column``."""
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


def added_residual(name: str, body: Expr, axis: tuple[IterVar, ...], label: str) -> Residual:
    """Return the operator that adds the tensor ``label`` at the stage's own axes."""
    apart = taken_apart(body.value if isinstance(body, Cast) else body)
    added = [
        one
        for one in (() if apart is None else apart[1])
        if type(one) is Residual
        and isinstance(one.operand, Read)
        and one.operand.tensor.name == label
        and one.operand.indices == axis
    ]
    if len(added) != 1:
        raise ScheduleError(f"{name} is {format_expr(body)}; it does not add {label} to requantized sums")
    return added[0]


def with_residual_product(body: Expr, residual: Residual, unit: Tensor, axis: IterVar) -> Expr:
    """Multiply ``residual`` by an element of the matrix's diagonal. Elements along ``axis`` become blocks."""
    apart = taken_apart(body.value if isinstance(body, Cast) else body)
    assert apart is not None
    place = simplify(axis % unit.shape[0])
    product = ResidualProduct(residual.operand, unit[place, place])
    finished = Finished(apart[0], tuple(product if one == residual else one for one in apart[1]))
    return Cast(finished, body.to) if isinstance(body, Cast) else finished
