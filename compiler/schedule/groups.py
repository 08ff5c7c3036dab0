"""Grouped computations: which inputs an output sums up depends on its group.

``S[o] = sum over c of A[o//rows*columns + c] * W[o, c]`` has groups of ``rows`` outputs and ``columns``
inputs; with one of each it is depthwise. A GEMM core sums up whole blocks of inputs for whole blocks of
outputs, so groups smaller than that are merged: the sum runs over the inputs of several groups, and the
weights of all but an output's own group are zero.
"""

from math import gcd, lcm
from typing import NamedTuple

from accel.base.errors import ScheduleError
from accel.compiler.expr.linear import Linear, linear, simplify
from accel.compiler.expr.scalar import Binary, Condition, Const, Expr, Guarded, IterVar, Read, reads, rewrite
from accel.compiler.expr.tensor import Tensor, reduction


class Groups(NamedTuple):
    """A grouped sum.

    Attributes:
        output: the axis whose groups these are.
        axis: what is summed up within a group.
        data, weights: the two factors.
        dimension: of the data, that has the groups' inputs one behind the other.
        rows: outputs of a group.
    """

    output: IterVar
    axis: IterVar
    data: Read
    weights: Read
    dimension: int
    rows: int

    @property
    def columns(self) -> int:
        """Inputs of a group."""
        return self.axis.extent

    @property
    def number(self) -> int:
        """How many groups there are."""
        return -(-self.output.extent // self.rows)

    def merged(self, body: Expr, wide: Tensor, axis: IterVar, count: int) -> Expr:
        """The sum's body with ``count`` groups side by side and weights from ``wide``."""
        first = simplify(self.output // (self.rows * count) * (self.columns * count))
        size = self.data.tensor.shape[self.dimension]
        index = simplify(first + axis)
        conditions: tuple[Condition, ...] = ((index, Const(size)),) if size % axis.extent else ()

        def change(node: Expr) -> Expr | None:
            if node == self.weights:
                return Read(wide, (self.output, axis, *self.weights.indices[2:]))
            if node == self.data:
                indices = [*self.data.indices]
                indices[self.dimension] = index
                value = Read(self.data.tensor, tuple(indices))
                return Guarded(value, conditions) if conditions else value
            return None

        return rewrite(body, change)


def grouped_weight(weights: Tensor, rows: int, merged: int, axes: tuple[IterVar, ...]) -> Expr:
    """An element of the wide weights; see :class:`~accel.image.layout.BlockDiagonal`."""
    output, wide, *rest = axes
    columns = weights.shape[1]
    own = simplify(wide - output // rows % merged * columns)
    return Guarded(weights[output, own, *rest], ((Const(-1), own), (own, Const(columns))))


def find_groups(name: str, body: Expr, axis: IterVar) -> Groups:
    """The groups of a sum over ``axis``.

    Args:
        name: of the computation, for messages.
        body: of the computation.
        axis: what is summed up within a group.

    Raises:
        ScheduleError: it is no product of data at ``group * columns + axis`` and weights at
            ``[output, axis, ...]``.
    """
    total = reduction(body)
    factors = [] if total is None else reads(total.body)
    for weights, data in (factors, factors[::-1]) if len(factors) == 2 else ():
        if len(weights.indices) < 2 or weights.indices[1] != axis or weights.tensor.shape[1] != axis.extent:
            continue
        output = weights.indices[0]
        for d, index in enumerate(data.indices):
            rows = _rows(linear(index), output, axis)
            if rows and isinstance(output, IterVar):
                return Groups(output, axis, data, weights, d, rows)
    raise ScheduleError(
        f"{name} has no groups along {axis.name}; they are merged where data at row // rows * columns + "
        f"{axis.name} is multiplied by weights at [row, {axis.name}, ...] with {axis.extent} columns"
    )


def _rows(index: Linear, output: Expr, axis: IterVar) -> int:
    """Outputs of a group, if data are read at this index; else 0."""
    of_group = dict(index.terms)
    if index.constant or of_group.pop(axis, 0) != 1 or list(of_group.values()) != [axis.extent]:
        return 0
    (group,) = of_group
    if group == output:
        return 1
    if isinstance(group, Binary) and group.op == "//" and group.a == output and isinstance(group.b, Const):
        return group.b.value
    return 0


def groups_to_merge(count: int, rows: int, columns: int, blocks: tuple[int, int]) -> int:
    """How many groups make whole blocks of the GEMM core, or all of them.

    Args:
        count: groups.
        rows, columns: outputs and inputs of each.
        blocks: outputs and inputs of a block.
    """
    whole = lcm(*(block // gcd(block, size) for block, size in zip(blocks, (rows, columns), strict=True)))
    return min(count, whole)
