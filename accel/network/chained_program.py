"""Several layers as one program."""

from collections.abc import Mapping

from msgspec import Struct

from accel.base.records import replace
from accel.graph.graph import Graph
from accel.network.lowering.layer_operand import Operand
from accel.network.memory_plan import MemoryPlan
from accel.network.network_part import NetworkPart
from accel.run.program import Program


class Chain(Struct, frozen=True, kw_only=True):
    """Layers that the machine executes without the host.

    Attributes:
        ends: index after the last instruction of each layer.
        compared: cycles by strategy, see :mod:`accel.network.chain_waits`.
    """

    parts: tuple[NetworkPart, ...]
    program: Program
    operands: dict[str, Operand]
    outputs: dict[str, str]
    ends: tuple[int, ...]
    memory: MemoryPlan
    compared: Mapping[str, int]

    @property
    def name(self) -> str:
        return self.parts[0].fused.name

    @property
    def layers(self) -> tuple[NetworkPart, ...]:
        return tuple(part for part in self.parts if part.on_machine)

    def with_constants(self, graph: Graph) -> Program:
        segments, tensors = list(self.program.segments), list(self.program.tensors)
        for at, tensor in enumerate(tensors):
            operand = self.operands.get(tensor.name)
            values = None if operand is None else operand.constant_values(graph)
            if values is not None:
                segments.append((tensor.offset, tensor.pack(values).tobytes()))
                tensors[at] = replace(tensor, role="constant")
        return replace(self.program, tensors=tuple(tensors), segments=tuple(segments))
