"""Unfused sums and products of two tensors: a layer that copies one operand and has the other as residual.

The other operand has the same shape, or one value for all pixels of each channel. For example, a
squeeze-and-excite block multiplies pictures of (1, 64, 28, 28) by factors of (1, 64, 1, 1).
"""

from dataclasses import replace

from accel.compiler.ops.quantized_layers import Quantized
from accel.graph.graph import Graph
from accel.graph.graph_tensor import QUANTIZED, Tensor
from accel.network.fused_nodes import FusedNodes
from accel.network.lowering.diagonal_layer import diagonal_layer, is_matrix
from accel.network.lowering.elementwise_lowering import lower_elementwise
from accel.network.lowering.lowered_layer import LoweredLayer, NotOnMachine, Operand
from accel.network.lowering.quantized_epilogue import (
    is_channel_vector,
    quantized_residual,
    require_exact_residual,
    residual_shape,
)
from accel.network.lowering.unsupported_reasons import unsupported_reason


def lower_combination(graph: Graph, fused: FusedNodes, approximate: bool) -> LoweredLayer:
    """Lower an Add or a Mul."""
    if any(name in graph.constants for name in fused.main.inputs):
        return lower_elementwise(graph, fused, approximate)
    out = graph.tensors[fused.main.output]
    if out.dtype not in QUANTIZED:
        raise NotOnMachine(unsupported_reason(graph, fused))
    copied, other = _operands(graph, fused, out)
    zero = int(copied.scale_and_zero[1])
    combined = quantized_residual(graph, fused.main, copied, other, fused.clips)
    quantized = Quantized(
        scale=1.0,
        input_zero=zero,
        input_dtype=copied.dtype,
        output_zero=zero,
        output_dtype=copied.dtype,
        residual=combined,
    )
    quantized, differences = require_exact_residual(quantized, approximate=approximate)
    layer = diagonal_layer(graph, copied, [1], [0], quantized)
    shape = residual_shape(combined, layer.operands[0].shape)
    residual = Operand(name="residual", tensor=other.name, shape=shape)
    return replace(layer, operands=(*layer.operands, residual), differences=differences)


def _operands(graph: Graph, fused: FusedNodes, out: Tensor) -> tuple[Tensor, Tensor]:
    """Return the operand that is copied, and the residual."""
    left, right = graph.operands(fused.main)
    if left.shape == right.shape == out.shape:
        return left, right
    for copied, other in ((left, right), (right, left)):
        is_vector = copied.shape == out.shape and is_channel_vector(other, out)
        if is_vector and not is_matrix(graph, copied):
            return copied, other
    verb = "adds" if fused.main.operator.kind == "Add" else "multiplies"
    raise NotOnMachine(
        f"it {verb} {left.shape} and {right.shape}; the machine {verb} what has one shape, and pictures and "
        f"one value per channel"
    )
