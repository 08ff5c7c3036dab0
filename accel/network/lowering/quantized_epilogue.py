"""Epilogues of layers, with the graph's scales."""

from collections.abc import Sequence

import numpy as np

from accel.base.records import replace
from accel.compiler.expr.quantization import Order
from accel.compiler.ops.quantized_layers import Quantized, QuantizedResidual, QuantizedTable
from accel.graph.byte_functions import by_byte, byte_function
from accel.graph.elementwise_operators import Add, Mul, swaps_operands
from accel.graph.graph import Graph, Node
from accel.graph.graph_tensor import Array, Shape, Tensor
from accel.network.fused_nodes import FusedNodes, bounds
from accel.network.lowering.lowered_layer import NotOnMachine
from accel.network.lowering.unsupported_reasons import unsupported_reason


def quantized_epilogue(
    graph: Graph,
    data: Tensor,
    result: Tensor,
    scales: Array,
    fused: FusedNodes,
    residual: QuantizedResidual | None = None,
) -> Quantized:
    """Return the epilogue that requantizes sums by float32 scales, one or per channel."""
    flat = np.atleast_1d(scales)
    table = None if fused.lookup is None else lookup_table(graph, fused.lookup)
    return Quantized(
        scale=float(flat[0]) if flat.size == 1 else flat.tolist(),
        input_zero=int(data.scale_and_zero[1]),
        input_dtype=data.dtype,
        output_zero=int(result.scale_and_zero[1]),
        output_dtype=result.dtype,
        clip=bounds(fused.clips, result.dtype),
        table=table,
        residual=residual,
    )


def lookup_table(graph: Graph, node: Node) -> QuantizedTable:
    found = byte_function(graph, node)
    if found is None:
        raise NotOnMachine(unsupported_reason(graph, FusedNodes(main=node)))
    out = graph.tensors[node.output]
    zero = 0 if out.quantization is None else int(out.scale_and_zero[1])
    entries = by_byte(found.results, graph.tensors[found.operand].dtype)
    return QuantizedTable(entries=entries, dtype=out.dtype, zero=zero)


def is_channel_vector(tensor: Tensor, picture: Tensor) -> bool:
    """For example, (N, C, 1, 1) for pictures (N, C, H, W)."""
    pixels = len(picture.shape) - 2
    return (
        pixels > 0 and tensor.shape != picture.shape and tensor.shape == (*picture.shape[:2], *[1] * pixels)
    )


def quantized_residual(
    graph: Graph, combination: Node, result: Tensor, other: Tensor, clips: Sequence[Node]
) -> QuantizedResidual:
    """Return the addition or multiplication of a residual."""
    total = graph.tensors[combination.output]
    is_product = isinstance(combination.operator, Mul)
    (scale, zero), (sum_scale, sum_zero) = other.scale_and_zero, total.scale_and_zero
    return QuantizedResidual(
        result_scale=float(result.scale_and_zero[0]),
        scale=float(scale),
        zero=int(zero),
        dtype=other.dtype,
        sum_scale=float(sum_scale),
        sum_zero=int(sum_zero),
        sum_dtype=total.dtype,
        sum_clip=bounds(clips, total.dtype),
        approximate=True,
        order=_order(graph, combination, result),
        operation="multiply" if is_product else "add",
        per_channel=is_channel_vector(other, total),
    )


def fused_residual(graph: Graph, fused: FusedNodes) -> tuple[QuantizedResidual, Tensor]:
    assert fused.combination is not None
    other = graph.tensors[fused.residual]
    if other.name in graph.constants:
        raise NotOnMachine("its residual is a constant")
    before = graph.tensors[fused.result]
    return quantized_residual(graph, fused.combination, before, other, fused.combination_clips), other


def residual_shape(residual: QuantizedResidual, result: Shape) -> Shape:
    return (*result[:2], *[1] * (len(result) - 2)) if residual.per_channel else result


def require_exact_residual(quantized: Quantized, *, approximate: bool) -> tuple[Quantized, int]:
    """Mark an inexact sum or product as approximate, and count the pairs of values that differ."""
    if quantized.residual is None:
        return quantized, 0
    differences = quantized.differences
    if differences and not approximate:
        result = "sum" if quantized.product is None else "product"
        raise NotOnMachine(f"integers would change the {result} of {differences:,} of 65,536 pairs of values")
    residual = replace(quantized.residual, approximate=bool(differences))
    return replace(quantized, residual=residual), differences


def _order(graph: Graph, combination: Node, result: Tensor) -> Order:
    """Return the order of float32's operations, with the layer's result as left operand."""
    operator, operands = combination.operator, graph.operands(combination)
    out = graph.tensors[combination.output]
    if isinstance(operator, Mul):
        return "apart" if operator.in_float32 else "left"
    assert isinstance(operator, Add)
    if operator.adds_float32(operands, out):
        return "apart"
    last = 1 if swaps_operands(operands, out) else 0
    return "left" if combination.inputs[last] == result.name else "right"
