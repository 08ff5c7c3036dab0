"""Calls that copy between DRAM and scratchpads."""

from __future__ import annotations

from accel.base.errors import TensorizeError
from accel.compiler.expr.linear_expressions import (
    at_zero,
    simplify,
)
from accel.compiler.expr.scalar_expressions import (
    BYTES,
)
from accel.compiler.expr.tensor_expressions import Tensor
from accel.compiler.expr.window_expressions import Range, window_of
from accel.compiler.nest.nest import (
    Buffer,
    Copy,
    Node,
    Region,
)
from accel.compiler.nest.stage_loops import StageNest, inner_region
from accel.compiler.nest.stage_placement import Lowering
from accel.compiler.schedule.schedule import Stage


def copy_call(lowering: Lowering, nest: StageNest, block: int) -> Node:
    """Return the copy of the loops from position ``block`` inward."""
    stage = nest.stage
    where = stage.scope.name if stage.scope is not None else "DRAM"
    window = window_of(stage.axis, stage.body)
    if window is None:
        raise TensorizeError(
            f"{stage.name} in {where} is neither tensorized nor a plain copy; tensorize it, "
            f"or compute it in acc_buffer (cache_write) and tensorize that with the machine's alu"
        )
    tensor = window.read.tensor
    assert isinstance(tensor, Tensor)
    source = lowering.buffers[tensor]
    target = inner_region(nest, block)
    if target is None:
        raise TensorizeError(f"the inner loops of {stage.name} do not cover a box; only boxes can be copied")
    if (target.buffer.scope is None) == (source.scope is None):
        raise TensorizeError(
            f"{stage.name} copies from {source.scope or 'DRAM'} to {where}; "
            f"dma_copy2d goes between DRAM and a scratchpad"
        )
    _check_dtypes(stage, source, target.buffer, window.zero)
    inner = nest.inside(block)
    first = [at_zero(nest.index(d), inner) for d in range(len(target.ranges))]
    ranges, padding = window.source(first, [r.extent for r in target.ranges])
    starts = lowering.starts[tensor]
    relative = tuple(
        Range(simplify(r.start - start), r.extent) for r, start in zip(ranges, starts, strict=True)
    )
    region = Region(source, relative, lowering.buffer_extents[source])
    steps = window.steps if max(window.steps) > 1 else ()
    return Copy(target, region, padding, steps, window.zero or 0, stage=stage.name)


def _check_dtypes(stage: Stage, source: Buffer, target: Buffer, zero: int | None) -> None:
    """Refuse dtypes that the DMA cannot move: bytes to inp and wgt, int32 or bytes to acc, int32 to par, and
    the low bytes of acc to DRAM. With ``post=1`` LOAD also subtracts zero points and reads uint8."""
    if source.scope is not None:
        if source.scope.name != "acc_buffer":
            raise TensorizeError(
                f"{stage.name} copies {source.name} from {source.scope.name} to DRAM; "
                f"STORE reads acc_buffer only"
            )
        if target.dtype not in BYTES and not (source.scope.config.post and target.dtype == "int32"):
            raise TensorizeError(
                f"{stage.name} copies {source.name} to DRAM as {target.dtype}; STORE writes the low bytes of "
                f"acc_buffer as int8: give the output dtype='int8', or clip it. Machines with post=1 also "
                f"store int32"
            )
        return
    scope = target.scope
    assert scope is not None
    if (zero is not None or source.dtype == "uint8") and not scope.config.post:
        what = f"the zero point {zero}" if zero else "uint8 values"
        raise TensorizeError(
            f"{stage.name} loads {source.name} with {what}; configuration {scope.config.name!r} has post=0, "
            f"and only machines with post=1, as 'vta-int8', do that"
        )
    centering = ("inp_buffer", "wgt_buffer") if scope.config.wgt_zero else ("inp_buffer",)
    if scope.name in centering and source.dtype == "uint8" and zero is None:
        raise TensorizeError(
            f"{stage.name} copies {source.name}, which is uint8; {scope.name} holds 9 bits, signed: subtract "
            f"its zero point and cast to int16"
        )
    if scope.name == "wgt_buffer" and zero is not None and not scope.config.wgt_zero:
        raise TensorizeError(
            f"{stage.name} copies {source.name} less {zero} to {scope.name}; configuration "
            f"{scope.config.name!r} has wgt_zero=0, and only machines with wgt_zero=1 do that"
        )
    if zero is not None and scope.name not in centering:
        raise TensorizeError(
            f"{stage.name} copies {source.name} less {zero} to {scope.name}; LOAD subtracts zero points on "
            f"the way to {' and '.join(centering)} only"
        )
    by_scope = {
        "wgt_buffer": BYTES if scope.config.wgt_zero else ("int8",),
        "inp_buffer": BYTES,
        "par_buffer": ("int32",),
    }
    taken = (by_scope | {"tab_buffer": ("uint8",)}).get(scope.name)
    if taken is not None and source.dtype not in taken:
        raise TensorizeError(
            f"{stage.name} copies {source.name}, which is {source.dtype}; {scope.name} holds {taken[0]}"
        )
