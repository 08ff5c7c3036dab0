"""Tensors that the host packs or pads with zeros."""

from __future__ import annotations

from accel.compiler.expr.tensor_expressions import Tensor
from accel.compiler.expr.window_expressions import window_of
from accel.compiler.nest.stage_placement import Lowering


def is_zero_padded(lowering: Lowering, tensor: object, *, centered: bool = False) -> bool:
    """Whether the host fills a tensor's last blocks with zeros: an input, or a copy of one.

    With ``centered``, copies that subtract a zero point count.
    """
    if tensor in lowering.schedule.inputs:
        return True
    assert isinstance(tensor, Tensor)
    stage = lowering.schedule[tensor]
    if stage.host_packing is not None:
        return True
    window = window_of(stage.axis, stage.body)
    if window is None or (window.zero and not centered):
        return False
    return is_zero_padded(lowering, window.read.tensor, centered=centered)


def is_host_made(lowering: Lowering, tensor: object) -> bool:
    """Whether the host makes the tensor, such as an identity matrix, or it is a copy of such a tensor."""
    if tensor in lowering.schedule.inputs:
        return False
    assert isinstance(tensor, Tensor)
    stage = lowering.schedule[tensor]
    window = window_of(stage.axis, stage.body)
    return stage.host_packing is not None or (
        window is not None and is_host_made(lowering, window.read.tensor)
    )
