"""Unfused sums and products of two tensors: a layer copies one operand and has the other as residual.

The other operand has the same shape, or one value per channel, for example (1, 64, 1, 1) in a
squeeze-and-excite block.
"""

from accel.graph.graph import Graph
from accel.graph.graph_tensor import QUANTIZED, Tensor
from accel.network.fused_nodes import FusedNodes
from accel.network.lowering.diagonal_layer import copied, is_matrix, with_residual
from accel.network.lowering.elementwise_lowering import lower_elementwise
from accel.network.lowering.lowered_layer import LoweredLayer, NotOnMachine
from accel.network.lowering.quantized_epilogue import (
    is_channel_vector,
    quantized_residual,
)
from accel.network.lowering.unsupported_reasons import unsupported_reason


def lower_combination(graph: Graph, fused: FusedNodes, approximate: bool) -> LoweredLayer:
    if any(name in graph.constants for name in fused.main.inputs):
        return lower_elementwise(graph, fused, approximate)
    out = graph.tensors[fused.main.output]
    if out.dtype not in QUANTIZED:
        raise NotOnMachine(unsupported_reason(graph, fused))
    data, other = _operands(graph, fused, out)
    residual = quantized_residual(graph, fused.main, data, other, fused.clips)
    return with_residual(graph, data, ([1], [0]), copied(data), residual, other, approximate=approximate)


def _operands(graph: Graph, fused: FusedNodes, out: Tensor) -> tuple[Tensor, Tensor]:
    left, right = graph.operands(fused.main)
    if left.shape == right.shape == out.shape:
        return left, right
    for data, other in ((left, right), (right, left)):
        is_vector = data.shape == out.shape and is_channel_vector(other, out)
        if is_vector and not is_matrix(graph, data):
            return data, other
    verb = "adds" if fused.main.operator.kind == "Add" else "multiplies"
    raise NotOnMachine(
        f"it {verb} {left.shape} and {right.shape}; the machine {verb} what has one shape, and pictures and "
        f"one value per channel"
    )
