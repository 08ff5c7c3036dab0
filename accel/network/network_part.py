"""A part of a compiled network, which can be read without importing the compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from accel.graph.graph import Graph
from accel.image.image_tensor import ImageTensor
from accel.network.fused_nodes import FusedNodes
from accel.network.strip_layout import LayerLayouts
from accel.run.program import Program

if TYPE_CHECKING:
    from accel.network.lowering.lowered_layer import LoweredLayer

Where = Literal["machine", "host"]
QUANTIZE_HINT = "some multiply float32; 'accel quantize' turns a network into integers"


class NetworkPart(Struct, frozen=True, kw_only=True):
    """Fused nodes with their placement.

    Attributes:
        layer, program: of the machine, or None on the host and from a file.
        layouts: of pictures in strips, or None otherwise, and from a file.
        mapping: empty if unknown.
        alone: predicted cycles in isolation, or None if unknown.
    """

    fused: FusedNodes
    where: Where
    reason: str = ""
    layer: LoweredLayer | None = None
    program: Program | None = None
    layouts: LayerLayouts | None = None
    mapping: str = ""
    alone: int | None = None

    @property
    def on_machine(self) -> bool:
        return self.where == "machine"

    @property
    def output(self) -> ImageTensor:
        assert self.layer is not None
        if self.layouts is not None:
            return self.layouts.plain_output
        assert self.program is not None
        return next(one for one in self.program.tensors if one.name == self.layer.output)

    @property
    def moves_nothing(self) -> bool:
        return self.fused.moves_nothing


def multiplies_float32(graph: Graph, parts: Sequence[NetworkPart]) -> bool:
    return any(
        tensor.dtype == "float32"
        for part in parts
        if not part.on_machine and part.fused.macs(graph)
        for tensor in graph.operands(part.fused.main)
    )
