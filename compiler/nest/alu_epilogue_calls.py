"""Epilogues that the ALU computes in place, block by block."""

from __future__ import annotations

from accel.base.errors import TensorizeError
from accel.compiler.expr.epilogue_operators import (
    PostOp,
    ResidualProduct,
)
from accel.compiler.expr.scalar_expressions import (
    Const,
    IterVar,
    Read,
    format_expr,
)
from accel.compiler.expr.tensor_expressions import Tensor
from accel.compiler.expr.window_expressions import Range
from accel.compiler.nest.epilogue_matching import Chain
from accel.compiler.nest.host_packed_tensors import is_host_made
from accel.compiler.nest.in_place_accumulators import is_widened
from accel.compiler.nest.intrinsic_unification import (
    Access,
    map_axes,
)
from accel.compiler.nest.nest import (
    AppliedOp,
    BlockEpilogue,
    Buffer,
    Region,
)
from accel.compiler.nest.stage_loops import StageNest, block_loops
from accel.compiler.nest.stage_placement import Lowering
from accel.compiler.target.intrinsic_declaration import AluIntrin


def block_epilogue(lowering: Lowering, chain: Chain, nest: StageNest, block: int) -> BlockEpilogue:
    """Return the epilogue of the loops from position ``block`` inward."""
    stage = nest.stage
    assert stage.tensorized is not None
    intrin = stage.tensorized[1]
    assert isinstance(intrin, AluIntrin)
    rows, columns = IterVar("i", intrin.block[0]), IterVar("j", intrin.block[1])
    loops = block_loops(nest, block)
    place = lowering.lowered(stage.tensor[stage.axis], nest)
    assert isinstance(place, Read)
    buffer_extents = lowering.buffer_extents[nest.buffer]
    target = Access(nest.buffer, buffer_extents, place.indices, (rows, columns), "acc[i][j]", output=True)
    accesses = [target]
    ops = [lowering.lowered_op(op, nest) for op in chain.ops]
    elements = [next(iter(op.elements()), None) for op in chain.ops]
    units = [_unit_matrix(lowering, nest, op, intrin.block) for op in chain.ops]
    accesses += [
        _operand_access(lowering, nest, e, (rows, columns), unit)
        for e, unit in zip(elements, units, strict=True)
        if e is not None
    ]
    block_of, *others = map_axes(intrin.name, loops, (rows, columns), accesses).operands
    operands = iter(others)
    placed = []
    for op, element, unit in zip(ops, elements, units, strict=True):
        operand = next(operands) if element is not None else None
        placed.append(AppliedOp(op) if operand is None else AppliedOp(op, operand.region, operand.dims, unit))
    return BlockEpilogue(intrin, block_of.region, block_of.dims, tuple(placed), stage=stage.name)


def _unit_matrix(lowering: Lowering, nest: StageNest, op: PostOp, block: tuple[int, int]) -> Region | None:
    if not isinstance(op, ResidualProduct):
        return None
    stage = nest.stage
    assert isinstance(op.unit, Read)
    matrix = op.unit.tensor
    assert isinstance(matrix, Tensor)
    buffer, width = lowering.buffers[matrix], block[1]
    scope = buffer.scope
    if scope is None or scope.name != "wgt_buffer" or not is_host_made(lowering, matrix):
        raise TensorizeError(
            f"{stage.name} multiplies by {matrix.name} in {scope or 'DRAM'}; "
            f"the GEMM core reads wgt_buffer: use cache_read"
        )
    if buffer.shape != (width, width) or scope.config.block_in != width:
        raise TensorizeError(
            f"{stage.name} multiplies by {matrix.name} of {list(buffer.shape)}; a GEMM core with "
            f"blocks of {scope.config.block_in} x {width} needs an identity matrix of that size, and "
            f"square blocks"
        )
    whole = tuple(Range(Const(0), Const(width)) for _ in range(2))
    return Region(buffer, whole, lowering.buffer_extents[buffer])


def _operand_access(
    lowering: Lowering, nest: StageNest, element: Read, axes: tuple[IterVar, IterVar], unit: Region | None
) -> Access:
    stage = nest.stage
    lowered = lowering.lowered(element, nest)
    assert isinstance(lowered, Read)
    assert isinstance(lowered.tensor, Buffer)
    assert isinstance(element.tensor, Tensor)
    buffer_extents = lowering.buffer_extents[lowered.tensor]
    if unit is not None:
        scope = lowered.tensor.scope
        if scope is None or scope.name != "inp_buffer":
            raise TensorizeError(
                f"{stage.name} multiplies {format_expr(lowered)} from {scope or 'DRAM'}; the GEMM core "
                f"reads inp_buffer: use cache_read"
            )
        return Access(lowered.tensor, buffer_extents, lowered.indices, axes, "inp[i][j]")
    if lowered.tensor.scope is None:
        raise TensorizeError(
            f"{stage.name} reads {format_expr(lowered)} from DRAM; the ALU reads acc_buffer: use cache_read"
        )
    if not is_widened(lowering, element.tensor):
        name = lowered.tensor.name
        raise TensorizeError(
            f"{stage.name} reads {format_expr(lowered)} from {lowered.tensor.scope}, where sums "
            f"are not truncated to int8; store {name} and load it again (cache_read), or make it int32"
        )
    return Access(lowered.tensor, buffer_extents, lowered.indices, axes, "acc[i][j]")
