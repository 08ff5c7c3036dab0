"""Grouped computations: each output sums only the inputs of its group.

``S[o] = sum over c of A[o//rows*columns + c] * W[o, c]`` has groups of ``rows`` outputs and ``columns``
inputs. A depthwise convolution has one of each. A GEMM core multiplies whole blocks, so
``Stage.merge_groups`` merges smaller groups.
"""

from math import gcd, lcm
from typing import NamedTuple

from accel.base.errors import ScheduleError
from accel.compiler.expr.linear_expressions import Linear, linear, simplify
from accel.compiler.expr.scalar_expressions import (
    Binary,
    Condition,
    Const,
    Expr,
    Guarded,
    IterVar,
    Read,
    Sum,
    reads,
    rewrite,
)
from accel.compiler.expr.tensor_expressions import Compute, Tensor, reduction


class Groups(NamedTuple):
    """A grouped sum of ``data`` times ``weights`` over ``axis``.

    Attributes:
        output: the axis that is divided into groups of ``rows`` outputs.
        dimension: the dimension of the data that holds the inputs of all groups in order.
    """

    output: IterVar
    axis: IterVar
    data: Read
    weights: Read
    dimension: int
    rows: int

    @property
    def columns(self) -> int:
        return self.axis.extent

    @property
    def number(self) -> int:
        return -(-self.output.extent // self.rows)


def wide_weights(name: str, groups: Groups, merged: int) -> Compute:
    """Return the weights of ``merged`` groups side by side, see ``BlockDiagonal``."""
    weights = groups.weights.tensor
    assert isinstance(weights, Tensor)
    output = IterVar(groups.output.name, groups.output.extent)
    wide = IterVar(groups.axis.name, merged * groups.columns)
    rest = [IterVar(f"i{d}", weights.shape[d]) for d in range(2, len(weights.shape))]
    own = simplify(wide - output // groups.rows % merged * groups.columns)
    element = Guarded(weights[output, own, *rest], ((Const(-1), own), (own, Const(groups.columns))))
    axes = (output, wide, *rest)
    return Compute(name, tuple(v.extent for v in axes), weights.dtype, axes, element)


def merged_sum(body: Expr, groups: Groups, wide: Compute, axis: IterVar, count: int) -> Expr:
    """The sum runs over ``count`` groups, with weights from ``wide``."""
    first = simplify(groups.output // (groups.rows * count) * (groups.columns * count))
    size = groups.data.tensor.shape[groups.dimension]
    index = simplify(first + axis)
    conditions: tuple[Condition, ...] = ((index, Const(size)),) if size % axis.extent else ()

    def change(node: Expr) -> Expr | None:
        if isinstance(node, Sum):
            axes = tuple(axis if one is groups.axis else one for one in node.axes)
            return Sum(rewrite(node.body, change), axes)
        if node == groups.weights:
            return Read(wide.tensor, (groups.output, axis, *groups.weights.indices[2:]))
        if node == groups.data:
            indices = [*groups.data.indices]
            indices[groups.dimension] = index
            value = Read(groups.data.tensor, tuple(indices))
            return Guarded(value, conditions) if conditions else value
        return None

    return rewrite(body, change)


def find_groups(name: str, body: Expr, axis: IterVar) -> Groups:
    """``name`` is for messages."""
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
    """Return the number of groups, of ``count``, that fill whole blocks of the GEMM core.

    For example, 8 groups of 4 outputs and 2 inputs fill blocks of 16 x 16. ``blocks`` holds the outputs and
    inputs per block.
    """
    whole = lcm(*(block // gcd(block, size) for block, size in zip(blocks, (rows, columns), strict=True)))
    return min(count, whole)
