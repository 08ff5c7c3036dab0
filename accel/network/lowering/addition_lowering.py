"""Unfused additions: a layer that copies one operand and adds the other as residual."""

from dataclasses import replace

from accel.compiler.ops.quantized_layers import Quantized
from accel.graph.graph import Graph
from accel.graph.graph_tensor import QUANTIZED
from accel.network.fused_nodes import FusedNodes
from accel.network.lowering.diagonal_layer import diagonal_layer
from accel.network.lowering.elementwise_lowering import lower_elementwise
from accel.network.lowering.lowered_layer import LoweredLayer, NotOnMachine, Operand
from accel.network.lowering.quantized_epilogue import require_exact_sum, residual_addition
from accel.network.lowering.unsupported_reasons import unsupported_reason


def lower_addition(graph: Graph, fused: FusedNodes, approximate: bool) -> LoweredLayer:
    """Lower an Add."""
    if any(name in graph.constants for name in fused.main.inputs):
        return lower_elementwise(graph, fused, approximate)
    left, right = graph.operands(fused.main)
    total = graph.tensors[fused.main.output]
    if total.dtype not in QUANTIZED:
        raise NotOnMachine(unsupported_reason(graph, fused))
    if not left.shape == right.shape == total.shape:
        raise NotOnMachine(f"it adds {left.shape} and {right.shape}; the machine adds what has one shape")
    zero = int(left.scale_and_zero[1])
    quantized = Quantized(
        scale=1.0,
        input_zero=zero,
        input_dtype=left.dtype,
        output_zero=zero,
        output_dtype=left.dtype,
        residual=residual_addition(graph, fused.main, left, right, fused.clips),
    )
    quantized, differences = require_exact_sum(quantized, approximate=approximate)
    layer = diagonal_layer(graph, left, [1], [0], quantized)
    residual = Operand(name="residual", tensor=right.name, shape=layer.operands[0].shape)
    return replace(layer, operands=(*layer.operands, residual), differences=differences)
