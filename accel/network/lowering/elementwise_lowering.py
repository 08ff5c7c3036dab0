"""Functions of one quantized operand as a scale and a bias, one for all channels or one for each."""

from dataclasses import replace

import numpy as np

from accel.compiler.ops.quantized_layers import Quantized
from accel.graph.elementwise_operators import ChannelTable
from accel.graph.graph import Graph
from accel.graph.graph_tensor import QUANTIZED, Array, Tensor
from accel.graph.quantize_values import all_values
from accel.network.clamped_linear import fit_channels
from accel.network.fused_nodes import FusedNodes, bounds
from accel.network.lowering.diagonal_layer import diagonal_layer, is_matrix
from accel.network.lowering.lowered_layer import LoweredLayer, NotOnMachine, Operand
from accel.network.lowering.quantized_epilogue import require_exact_sum, residual_addition
from accel.network.lowering.unsupported_reasons import unsupported_reason

_OTHER_CONSTANTS = "its constants are more than a number for each channel"


def lower_elementwise(graph: Graph, fused: FusedNodes, approximate: bool) -> LoweredLayer:
    """Lower a function if a clamped linear one for each channel has the same 256 results.

    For example, Clip, Requantize and batch normalization, but not Sigmoid.
    """
    out = graph.tensors[fused.result]
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
        raise NotOnMachine(_inexact_reason(len(fits) - len(functions), len(fits)))
    scales = [one.scale for one in functions]
    quantized = Quantized(
        scale=scales[0] if len(scales) == 1 else scales,
        input_zero=data_zero,
        input_dtype=data.dtype,
        output_zero=out_zero,
        output_dtype=out.dtype,
        clip=(functions[0].low, functions[0].high),
    )
    differences = 0
    if fused.addition is not None:
        other = graph.tensors[fused.residual]
        if other.name in graph.constants:
            raise NotOnMachine("its residual is a constant")
        residual = residual_addition(graph, fused.addition, out, other, fused.sum_clips)
        quantized = replace(quantized, residual=residual)
        quantized, differences = require_exact_sum(quantized, approximate=approximate)
    weights, biases = [one.weight for one in functions], [one.bias for one in functions]
    layer = diagonal_layer(graph, data, weights, biases, quantized)
    if fused.addition is None:
        return layer
    added = Operand(name="residual", tensor=fused.residual, shape=layer.operands[0].shape)
    return replace(layer, operands=(*layer.operands, added), differences=differences)


def _inexact_reason(inexact: int, channels: int) -> str:
    if channels == 1:
        return "no scale and bias reproduce all of its values"
    return f"no scale and bias reproduce all values of {inexact} of its {channels} channels"


def table_of_results(graph: Graph, fused: FusedNodes) -> tuple[Tensor, Array]:
    """Evaluate the main node and its bounds for all 256 values of the operand.

    Returns:
        The operand, and int64[256, channels], or int64[256, 1] if channels agree.
    """
    operands, out = graph.operands(fused.main), graph.tensors[fused.result]
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
    """Return constants with an axis in front, that of the 256 values."""
    array = array.reshape(*[1] * (rank + 1 - array.ndim), *array.shape)
    if any(size > 1 and axis != channel_axis + 1 for axis, size in enumerate(array.shape)):
        raise NotOnMachine(_OTHER_CONSTANTS)
    return array
