"""Convolutions as ``conv2d``."""

from accel.graph.graph import Graph
from accel.graph.product_operators import Conv
from accel.network.fused_nodes import FusedNodes
from accel.network.lowering.layer_operand import Operand
from accel.network.lowering.lowered_layer import LoweredLayer
from accel.network.lowering.product_layer import count_int8_summands, product_layer
from accel.network.lowering.window_parameters import (
    padded_windows,
    require_two_axes,
    size_parameters,
    window_parameters,
    with_two_axes,
)


def lower_convolution(graph: Graph, fused: FusedNodes, approximate: bool) -> LoweredLayer:
    """Lower a Conv."""
    conv = fused.main.operator
    assert isinstance(conv, Conv)
    data, weights, *_ = graph.operands(fused.main)
    if fused.pad is not None:
        data = graph.tensors[fused.pad.inputs[0]]
    copies = count_int8_summands(graph, weights)
    windows = padded_windows(fused, conv.windows)
    require_two_axes(windows)
    data_shape = (data.shape[0], data.shape[1] * copies, *data.shape[2:])
    weight_shape = (weights.shape[0], weights.shape[1] * copies, *weights.shape[2:])
    operands = [
        Operand(
            name="data",
            tensor=data.name,
            shape=with_two_axes(data_shape, windows.rank),
            copies=copies,
            axis=1,
            groups=conv.groups,
            tensor_shape=data.shape,
        ),
        Operand(
            name="weight",
            tensor=weights.name,
            shape=with_two_axes(weight_shape, windows.rank),
            copies=copies,
            axis=1,
        ),
    ]
    parameters = {
        "N": data_shape[0],
        "IC": data_shape[1],
        **size_parameters(data.shape, windows),
        "OC": weights.shape[0],
        **window_parameters(windows),
        "groups": conv.groups,
    }
    result_shape = with_two_axes(graph.tensors[fused.output].shape, windows.rank)
    return product_layer(graph, fused, "conv2d", parameters, operands, result_shape, approximate=approximate)
