"""Epilogues that the store unit computes on the way from accumulators to DRAM."""

from __future__ import annotations

from collections.abc import Sequence

from accel.base.errors import TensorizeError
from accel.compiler.expr.epilogue_operators import (
    Finished,
    PostOp,
    StoreCombination,
    StoreLookUp,
    StoreRequantize,
)
from accel.compiler.expr.linear_expressions import (
    at_zero,
    simplify,
)
from accel.compiler.expr.scalar_expressions import (
    Binary,
    Cast,
    Const,
    IterVar,
    Read,
    format_expr,
)
from accel.compiler.expr.tensor_expressions import Tensor
from accel.compiler.expr.window_expressions import Range
from accel.compiler.nest.nest import (
    AppliedOp,
    Node,
    Region,
    StoreEpilogue,
)
from accel.compiler.nest.stage_loops import StageNest, inner_region
from accel.compiler.nest.stage_placement import Lowering


def store_epilogue(lowering: Lowering, nest: StageNest, block: int) -> Node:
    """Return the epilogue of the loops from position ``block`` inward."""
    stage = nest.stage
    body = stage.body.value if isinstance(stage.body, Cast) else stage.body
    ops = body.ops if isinstance(body, Finished) else ()
    if not isinstance(body, Finished) or not ops or not isinstance(ops[0], StoreRequantize):
        raise TensorizeError(
            f"{stage.name} computes {format_expr(body)}; the store unit needs the result of pack_parameters"
        )
    root = body.value
    if not isinstance(root, Read) or root.indices != stage.axis or stage.scope is not None:
        raise TensorizeError(
            f"{stage.name} finishes {format_expr(root)}; the store unit moves sums from acc_buffer to "
            f"DRAM, element by element"
        )
    target = inner_region(nest, block)
    if target is None:
        raise TensorizeError(
            f"the inner loops of {stage.name} do not cover a box; the store unit requantizes boxes"
        )
    source = _same_box(lowering, nest, block, root)
    if source.buffer.scope is None or source.buffer.scope.name != "acc_buffer":
        raise TensorizeError(
            f"{stage.name} reads {source.buffer.name} from {source.buffer.scope or 'DRAM'}; "
            f"the store unit reads acc_buffer"
        )
    first, *rest = ops
    parameters, d = _parameters(lowering, nest, block, first)
    placed = [AppliedOp(lowering.lowered_op(first, nest), parameters, (d, None))]
    for op in rest:
        if isinstance(op, StoreLookUp):
            placed.append(AppliedOp(op, _table(lowering, stage.name, op), (None, None)))
            continue
        assert isinstance(op, StoreCombination)
        if not isinstance(op.operand, Read) or not _is_elementwise(op.operand, stage.axis):
            raise TensorizeError(
                f"{stage.name} has the residual {format_expr(op.operand)}; the store unit takes residuals "
                f"element by element, or one for all pixels of a channel"
            )
        residual = _same_box(lowering, nest, block, op.operand)
        if residual.buffer.scope is not None:
            raise TensorizeError(
                f"{stage.name} has the residual {residual.buffer.name} in {residual.buffer.scope}; "
                f"the store unit loads residuals from DRAM itself"
            )
        placed.append(AppliedOp(lowering.lowered_op(op, nest), residual))
    return StoreEpilogue(target, source, tuple(placed), stage=stage.name)


def _is_elementwise(read: Read, axes: Sequence[IterVar]) -> bool:
    """Whether a residual is read at the result's indices, or at 0 along all axes but the first two."""
    return read.indices in (tuple(axes), (*axes[:2], *(Const(0) for _ in axes[2:])))


def _same_box(lowering: Lowering, nest: StageNest, block: int, read: Read) -> Region:
    """The region has one element along axes that are read at 0."""
    tensor = read.tensor
    assert isinstance(tensor, Tensor)
    target = inner_region(nest, block)
    assert target is not None
    inner = nest.inside(block)
    starts = lowering.starts[tensor]
    ranges = tuple(
        Range(Const(0), Const(1))
        if index == Const(0)
        else Range(simplify(Binary("-", at_zero(nest.index(d), inner), start)), r.extent)
        for d, (index, r, start) in enumerate(zip(read.indices, target.ranges, starts, strict=True))
    )
    buffer = lowering.buffers[tensor]
    return Region(buffer, ranges, lowering.buffer_extents[buffer])


def _table(lowering: Lowering, stage: str, op: StoreLookUp) -> Region:
    read = op.operand
    buffer = None
    if isinstance(read, Read) and isinstance(read.tensor, Tensor):
        buffer = lowering.buffers[read.tensor]
    if buffer is None or buffer.scope is None or buffer.scope.name != "tab_buffer":
        raise TensorizeError(
            f"{stage} looks values up in DRAM; the store unit reads tab_buffer: use pack_table and cache_read"
        )
    ranges = tuple(Range(Const(0), Const(size)) for size in buffer.scope.element)
    return Region(buffer, ranges, lowering.buffer_extents[buffer])


def _parameters(lowering: Lowering, nest: StageNest, block: int, op: PostOp) -> tuple[Region, int]:
    stage = nest.stage
    assert isinstance(op, StoreRequantize)
    read = op.bias
    assert isinstance(read, Read)
    assert isinstance(read.tensor, Tensor)
    channel = read.indices[0]
    buffer = lowering.buffers[read.tensor]
    if buffer.scope is None or buffer.scope.name != "par_buffer":
        raise TensorizeError(
            f"{stage.name} reads {buffer.name} from {buffer.scope or 'DRAM'}; "
            f"the store unit reads par_buffer: use cache_read"
        )
    target = inner_region(nest, block)
    assert target is not None
    start = lowering.starts[read.tensor][0]
    axis, alike = channel, None
    if isinstance(channel, Binary) and channel.op == "%":
        axis, alike = channel.a, channel.b
    if axis not in stage.axis:
        raise TensorizeError(
            f"{stage.name} has parameters of channel {format_expr(channel)}; one of its axes is needed"
        )
    assert isinstance(axis, IterVar)
    d = stage.axis.index(axis)
    first = at_zero(nest.index(d), nest.inside(block))
    if alike is not None:
        width = buffer.scope.element[0]
        if alike != Const(width) or simplify(first % width) != Const(0):
            raise TensorizeError(
                f"{stage.name} has parameters of channel {format_expr(channel)}, of tiles that start at "
                f"{format_expr(first)}; whole elements of {width} channels are needed"
            )
        ranges = (Range(Const(0), Const(width)), Range(Const(0), Const(2)))
        return Region(buffer, ranges, lowering.buffer_extents[buffer]), d
    start = simplify(Binary("-", first, start))
    ranges = (Range(start, target.ranges[d].extent), Range(Const(0), Const(2)))
    return Region(buffer, ranges, lowering.buffer_extents[buffer]), d
