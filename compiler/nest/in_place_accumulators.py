"""Accumulators that the ALU changes in place, so that stages share a buffer."""

from __future__ import annotations

from functools import partial

from accel.compiler.expr.linear_expressions import bounds, linear
from accel.compiler.expr.scalar_expressions import BYTES, Read, reads
from accel.compiler.expr.tensor_expressions import Tensor, reduction
from accel.compiler.expr.window_expressions import window_of
from accel.compiler.nest.epilogue_matching import Chain, chain_of
from accel.compiler.nest.stage_placement import Lowering
from accel.compiler.schedule.schedule import Stage
from accel.compiler.target.intrinsic_declaration import AluIntrin


def alias_chains(lowering: Lowering) -> dict[Stage, Chain]:
    """Return the chains of ALU stages, which take over the buffers that they change."""
    chains: dict[Stage, Chain] = {}
    for stage in lowering.schedule.stages:
        if stage.tensorized is None or not isinstance(stage.tensorized[1], AluIntrin):
            continue
        chain = chain_of(stage.name, stage.body, partial(_may_change_in_place, lowering, stage), stage.axis)
        chains[stage] = chain
        if chain.root is not None:
            lowering.view(stage, chain.root)
    return chains


def _may_change_in_place(lowering: Lowering, stage: Stage, read: Read) -> bool:
    """Whether an ALU stage may overwrite its operand, since nothing reads it later."""
    assert isinstance(read.tensor, Tensor)
    tensor, buffer = read.tensor, lowering.buffers[read.tensor]
    others = [other for other in reads(stage.body) if other.tensor is tensor]
    others.remove(read)  # once: an expression may contain one read twice
    return (
        buffer.scope is not None
        and is_widened(lowering, tensor)
        and _in_same_loops(lowering, tensor, stage)
        and lowering.schedule.readers(tensor) == [stage]
        and all(_are_disjoint(read, other) for other in others)
        and ((read.indices == stage.axis and not others) or _is_strided(lowering, stage, read))
    )


def is_widened(lowering: Lowering, tensor: Tensor) -> bool:
    """Whether accumulators hold a tensor's values unchanged: int32, or bytes that LOAD sign-extends or a
    product with an identity matrix copies."""
    if tensor.dtype == "int32":
        return True
    if tensor in lowering.schedule.inputs:
        return False
    stage = lowering.schedule[tensor]
    if _is_identity_product(lowering, stage):
        return True
    window = window_of(stage.axis, stage.body)
    return window is not None and window.read.tensor.dtype in BYTES


def _is_identity_product(lowering: Lowering, stage: Stage) -> bool:
    total = reduction(stage.body)
    factors = [] if total is None else reads(total.body)
    hosts = {other.tensor for other in lowering.schedule.stages if other.host_packing == "identity"}
    units = [read for read in factors if _copied_tensor(lowering, read.tensor) in hosts]
    return total is not None and len(factors) == 2 and len(units) == 1 and len(total.axes) == 1


def _copied_tensor(lowering: Lowering, tensor: object) -> object:
    while isinstance(tensor, Tensor) and tensor not in lowering.schedule.inputs:
        stage = lowering.schedule[tensor]
        window = window_of(stage.axis, stage.body)
        if window is None or stage.host_packing is not None:
            break
        tensor = window.read.tensor
    return tensor


def _is_strided(lowering: Lowering, stage: Stage, read: Read) -> bool:
    """Whether a stage reads every n-th element per dimension. Only the ALU may read such elements, since
    STORE cannot store them in one instruction."""
    forms = [linear(index) for index in read.indices]
    return (
        len(forms) == len(stage.axis)
        and all(
            len(form.terms) == 1 and form.factor(axis) >= 1
            for form, axis in zip(forms, stage.axis, strict=True)
        )
        and all(
            reader.tensorized is not None and isinstance(reader.tensorized[1], AluIntrin)
            for reader in lowering.schedule.readers(stage.tensor)
        )
    )


def _are_disjoint(a: Read, b: Read) -> bool:
    for first, second in zip(a.indices, b.indices, strict=True):
        one, other = linear(first), linear(second)
        if len(one.terms) == 1 and one.terms == other.terms:
            (axis, step), distance = one.terms[0], other.constant - one.constant
            low, high = bounds(axis)
            if distance % step or abs(distance) > abs(step) * (high - low):
                return True
    return False


def _in_same_loops(lowering: Lowering, tensor: Tensor, stage: Stage) -> bool:
    producer = next((s for s in lowering.schedule.stages if s.tensor is tensor), None)
    if producer is None:
        return False
    place, nest = lowering.attachments.get(producer), lowering.nests[stage]
    if place is not None and place[0] is stage:
        return nest.outside(stage.leaves.index(place[1]) + 1) == nest.outer
    return place == lowering.attachments.get(stage)
