"""Epilogues of layers, with the graph's scales."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from accel.compiler.expr.quantized_expressions import Order
from accel.compiler.ops.quantized_layers import Quantized, QuantizedResidual, QuantizedTable
from accel.graph.byte_functions import by_byte, byte_function
from accel.graph.elementwise_operators import Add, swaps_operands
from accel.graph.graph import Graph, Node
from accel.graph.graph_tensor import Array, Tensor
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
    """Return the epilogue that requantizes sums.

    Args:
        scales: float32, one or per channel.
    """
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
    """Return a function of one byte as a table."""
    found = byte_function(graph, node)
    if found is None:
        raise NotOnMachine(unsupported_reason(graph, FusedNodes(main=node)))
    out = graph.tensors[node.output]
    zero = 0 if out.quantization is None else int(out.scale_and_zero[1])
    entries = by_byte(found.results, graph.tensors[found.operand].dtype)
    return QuantizedTable(entries=entries, dtype=out.dtype, zero=zero)


def residual_addition(
    graph: Graph, addition: Node, result: Tensor, other: Tensor, clips: Sequence[Node]
) -> QuantizedResidual:
    """Return the addition of a residual."""
    total = graph.tensors[addition.output]
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
        order=_addition_order(graph, addition, result),
    )


def require_exact_sum(quantized: Quantized, *, approximate: bool) -> tuple[Quantized, int]:
    """Mark an inexact addition as approximate, and count the pairs of values that differ."""
    if quantized.residual is None or quantized.sum is None:
        return quantized, 0
    differences = quantized.sum.addition.differences
    if differences and not approximate:
        raise NotOnMachine(f"integers would change the sum of {differences} of 65,536 pairs of values")
    residual = replace(quantized.residual, approximate=bool(differences))
    return replace(quantized, residual=residual), differences


def _addition_order(graph: Graph, addition: Node, result: Tensor) -> Order:
    """Return the order of float32's multiply-adds, with the layer's result as left operand."""
    operator, operands, out = addition.operator, graph.operands(addition), graph.tensors[addition.output]
    assert isinstance(operator, Add)
    if operator.adds_float32(operands, out):
        return "apart"
    last = 1 if swaps_operands(operands, out) else 0
    return "left" if addition.inputs[last] == result.name else "right"
