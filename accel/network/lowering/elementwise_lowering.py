"""Functions of one quantized operand as scales and biases, or as a table."""

import numpy as np

from accel.compiler.ops.quantized_layers import Quantized
from accel.graph.byte_functions import byte_function
from accel.graph.elementwise_operators import ChannelTable
from accel.graph.graph import Graph
from accel.graph.graph_tensor import QUANTIZED, Array, Tensor
from accel.graph.quantize_values import all_values
from accel.network.clamped_linear import ClampedLinear, fit_channels
from accel.network.fused_nodes import FusedNodes, bounds
from accel.network.lowering.diagonal_layer import copied, diagonal_layer, is_matrix, with_residual
from accel.network.lowering.lowered_layer import LoweredLayer, NotOnMachine
from accel.network.lowering.quantized_epilogue import (
    fused_residual,
    lookup_table,
)
from accel.network.lowering.unsupported_reasons import unsupported_reason

_OTHER_CONSTANTS = "its constants are more than a number for each channel"


def lower_elementwise(graph: Graph, fused: FusedNodes, approximate: bool) -> LoweredLayer:
    """Lower a function to a clamped linear one for each channel, for example a Clip, or to a table."""
    out = graph.tensors[fused.bounded]
    data, table = table_of_results(graph, fused)
    if data.shape != out.shape:
        raise NotOnMachine(unsupported_reason(graph, fused))
    # tensors that are only bounded may have no quantization
    out_zero, data_zero = (
        0 if one.quantization is None else int(one.scale_and_zero[1]) for one in (out, data)
    )
    values = all_values(data.dtype).astype(np.int64) - data_zero
    fits = fit_channels(values, table, out_zero)
    functions = [one for one in fits if one is not None]
    if len(functions) < len(fits):
        return _table_layer(graph, fused, data, _inexact_reason(fits))
    scales = [one.scale for one in functions]
    quantized = Quantized(
        scale=scales[0] if len(scales) == 1 else scales,
        input_zero=data_zero,
        input_dtype=data.dtype,
        output_zero=out_zero,
        output_dtype=out.dtype,
        clip=(functions[0].low, functions[0].high),
        table=None if fused.lookup is None else lookup_table(graph, fused.lookup),
    )
    weights, biases = [one.weight for one in functions], [one.bias for one in functions]
    if fused.combination is None:
        return diagonal_layer(graph, data, weights, biases, quantized)
    residual, other = fused_residual(graph, fused)
    return with_residual(graph, data, (weights, biases), quantized, residual, other, approximate=approximate)


def _inexact_reason(fits: tuple[ClampedLinear | None, ...]) -> str:
    if len(fits) == 1:
        return "no scale and bias reproduce all of its values"
    return f"no scale and bias reproduce all values of {fits.count(None)} of its {len(fits)} channels"


def _table_layer(graph: Graph, fused: FusedNodes, data: Tensor, inexact_reason: str) -> LoweredLayer:
    if byte_function(graph, fused.main) is None or len(fused.nodes) > 1:
        raise NotOnMachine(inexact_reason)
    return diagonal_layer(graph, data, [1], [0], copied(data, lookup_table(graph, fused.main)))


def table_of_results(graph: Graph, fused: FusedNodes) -> tuple[Tensor, Array]:
    """Evaluate the main node and its bounds for all 256 values of the operand.

    Returns:
        The operand, and int64[256, channels], or int64[256, 1] if channels agree.
    """
    operands, out = graph.operands(fused.main), graph.tensors[fused.bounded]
    variable = [one for one in operands if one.name not in graph.constants]
    if len(variable) != 1 or variable[0].dtype not in QUANTIZED or out.dtype not in QUANTIZED:
        raise NotOnMachine(unsupported_reason(graph, fused))
    data, operator = variable[0], fused.main.operator
    rank = len(out.shape)
    channel_axis = rank - 1 if rank < 2 or is_matrix(graph, data) else 1
    if isinstance(operator, ChannelTable):
        entries = graph.constants[operands[1].name]
        if len(entries) > 1 and operator.axis != channel_axis:
            raise NotOnMachine(_OTHER_CONSTANTS)
        return data, _bounded(entries.T, fused, out)
    arrays = [
        all_values(one.dtype).reshape(-1, *[1] * rank)
        if one is data
        else _along_channels(graph.constants[one.name], rank, channel_axis)
        for one in operands
    ]
    return data, _bounded(operator.evaluate(operands, arrays, out), fused, out)


def _bounded(table: Array, fused: FusedNodes, out: Tensor) -> Array:
    return np.clip(table.astype(np.int64), *bounds(fused.clips, out.dtype)).reshape(256, -1)


def _along_channels(array: Array, rank: int, channel_axis: int) -> Array:
    array = array.reshape(*[1] * (rank + 1 - array.ndim), *array.shape)
    if any(size > 1 and axis != channel_axis + 1 for axis, size in enumerate(array.shape)):
        raise NotOnMachine(_OTHER_CONSTANTS)
    return array
