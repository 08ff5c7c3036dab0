"""Functions of one quantized operand as a scale and a bias, or as a table."""

import numpy as np

from accel.compiler.ops.quantized_layers import Quantized
from accel.graph.byte_functions import byte_function
from accel.graph.graph import Graph
from accel.graph.graph_tensor import QUANTIZED, Array, Tensor
from accel.graph.quantize_values import all_values
from accel.network.clamped_linear import fit_clamped_linear
from accel.network.fused_nodes import FusedNodes, bounds
from accel.network.lowering.diagonal_layer import diagonal_layer, is_matrix
from accel.network.lowering.lowered_layer import LoweredLayer, NotOnMachine
from accel.network.lowering.quantized_epilogue import lookup_table
from accel.network.lowering.unsupported_reasons import unsupported_reason


def lower_elementwise(graph: Graph, fused: FusedNodes, _: bool) -> LoweredLayer:
    """Lower a function to a clamped linear one with the same 256 results, otherwise to a table.

    For example, Clip and Requantize are clamped linear, and Sigmoid is a table.
    """
    out = graph.tensors[fused.output]
    data, table = _table_of_results(graph, fused)
    if data.shape != out.shape:
        raise NotOnMachine(unsupported_reason(graph, fused))
    # tensors that are only bounded may have no quantization
    out_zero, data_zero = (
        0 if one.quantization is None else int(one.scale_and_zero[1]) for one in (out, data)
    )
    values = all_values(data.dtype).astype(np.int64) - data_zero
    fits = [fit_clamped_linear(values, results, out_zero) for results in table.T]
    functions = [one for one in fits if one is not None]
    if len(functions) < len(fits):
        return _table_layer(graph, fused, data)
    # the machine has one pair of bounds for all channels. A channel may not reach them
    clip = min(one.low for one in functions), max(one.high for one in functions)
    for function, results in zip(functions, table.T, strict=True):
        if (function.low, function.high) != clip and not np.array_equal(
            function.values(values, out_zero, clip), results
        ):
            raise NotOnMachine("its channels have different bounds")
    scales = [one.scale for one in functions]
    quantized = Quantized(
        scale=scales[0] if len(scales) == 1 else scales,
        input_zero=data_zero,
        input_dtype=data.dtype,
        output_zero=out_zero,
        output_dtype=out.dtype,
        clip=clip,
    )
    weights, biases = [one.weight for one in functions], [one.bias for one in functions]
    return diagonal_layer(graph, data, weights, biases, quantized)


def _table_layer(graph: Graph, fused: FusedNodes, data: Tensor) -> LoweredLayer:
    """Return a layer that copies the operand and looks each value up."""
    if byte_function(graph, fused.main) is None or fused.clips:
        raise NotOnMachine("no scale and bias reproduce all of its values")
    zero = 0 if data.quantization is None else int(data.scale_and_zero[1])
    quantized = Quantized(
        scale=1.0,
        input_zero=zero,
        input_dtype=data.dtype,
        output_zero=zero,
        output_dtype=data.dtype,
        table=lookup_table(graph, fused.main),
    )
    return diagonal_layer(graph, data, [1], [0], quantized)


def _table_of_results(graph: Graph, fused: FusedNodes) -> tuple[Tensor, Array]:
    """Evaluate the main node and its bounds for all 256 values of the operand.

    Returns:
        The operand, and int64[256, channels], or int64[256, 1] if channels agree.
    """
    operands, out = graph.operands(fused.main), graph.tensors[fused.output]
    variable = [one for one in operands if one.name not in graph.constants]
    if len(variable) != 1 or variable[0].dtype not in QUANTIZED or out.dtype not in QUANTIZED:
        raise NotOnMachine(unsupported_reason(graph, fused))
    values = all_values(variable[0].dtype)
    rank = len(out.shape)
    channel_axis = rank if rank < 2 or is_matrix(graph, variable[0]) else 2  # after the axis of the values
    arrays = []
    for one in operands:
        array = values.reshape(-1, *[1] * rank)
        if one is not variable[0]:
            array = graph.constants[one.name]
            array = array.reshape(*[1] * (rank + 1 - array.ndim), *array.shape)
            if any(size > 1 and axis != channel_axis for axis, size in enumerate(array.shape)):
                raise NotOnMachine("its constants are more than a number for each channel")
        arrays.append(array)
    table = fused.main.operator.evaluate(operands, arrays, out).astype(np.int64)
    return variable[0], np.clip(table, *bounds(fused.clips, out.dtype)).reshape(len(values), -1)
