"""Windows as parameters of operators with two spatial axes."""

from typing import Any

from accel.graph.graph_tensor import Shape
from accel.graph.movement_operators import Pad
from accel.graph.window_geometry import Windows
from accel.network.fused_nodes import FusedNodes
from accel.network.lowering.lowered_layer import NotOnMachine


def padded_windows(fused: FusedNodes, windows: Windows) -> Windows:
    if fused.pad is None:
        return windows
    pad = fused.pad.operator
    assert isinstance(pad, Pad)
    begin, end = (
        tuple(a + b for a, b in zip(own, added[2:], strict=True))
        for own, added in ((windows.begin, pad.begin), (windows.end, pad.end))
    )
    return Windows(
        kernel=windows.kernel, strides=windows.strides, dilations=windows.dilations, begin=begin, end=end
    )


def require_two_axes(windows: Windows) -> None:
    if windows.rank > 2:
        raise NotOnMachine(f"its windows have {windows.rank} axes; the machine's have two at most")


def with_two_axes(shape: Shape, rank: int) -> Shape:
    """(N, C, W) becomes (N, C, 1, W)."""
    return shape if rank == 2 else (*shape[:2], 1, *shape[2:])


def size_parameters(shape: Shape, windows: Windows) -> dict[str, int]:
    height, width = with_two_axes(shape, windows.rank)[2:]
    return {"H": height, "W": width}


def window_parameters(windows: Windows) -> dict[str, Any]:
    """A single axis is horizontal."""
    kernel, strides, dilations, begin, end = (
        (for_height, *values) if windows.rank == 1 else values
        for for_height, values in (
            (1, windows.kernel),
            (1, windows.strides),
            (1, windows.dilations),
            (0, windows.begin),
            (0, windows.end),
        )
    )
    return {"kernel": kernel, "stride": strides, "padding": (*begin, *end), "dilation": dilations}
