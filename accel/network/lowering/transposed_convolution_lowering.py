"""Transposed convolutions as ``conv2d_transpose``."""

from math import prod

import numpy as np

from accel.graph.graph import Graph
from accel.graph.graph_tensor import Tensor
from accel.graph.product_operators import ConvTranspose
from accel.network.fused_nodes import FusedNodes
from accel.network.lowering.layer_operand import Operand, weights_without_zero
from accel.network.lowering.lowered_layer import LoweredLayer, NotOnMachine
from accel.network.lowering.product_layer import count_int8_summands, product_layer
from accel.network.lowering.window_parameters import (
    require_two_axes,
    size_parameters,
    window_parameters,
    with_two_axes,
)

_MAX_DENSE_WEIGHTS = 1 << 16
"""Of a layer whose groups are blocks on a diagonal."""


def lower_transposed_convolution(graph: Graph, fused: FusedNodes, approximate: bool) -> LoweredLayer:
    """Lower a ConvTranspose without dilation. Groups become blocks on the diagonal of larger weights."""
    conv = fused.main.operator
    assert isinstance(conv, ConvTranspose)
    data, weights, *_ = graph.operands(fused.main)
    windows, rank = conv.windows, conv.windows.rank
    if max(windows.dilations) > 1:
        raise NotOnMachine("it has dilation; the machine's transposed convolutions have none")
    copies = count_int8_summands(graph, weights)
    if copies > 1:
        raise NotOnMachine("its weights minus their zero points need 9 bits; the machine's have 8")
    require_two_axes(windows)
    parameters = {
        "N": data.shape[0],
        "IC": data.shape[1],
        **size_parameters(data.shape, windows),
        "OC": conv.channels(weights),
        **window_parameters(windows),
        "output_padding": (0, *conv.added) if rank == 1 else conv.added,
    }
    del parameters["dilation"]
    operands = [
        Operand(name="data", tensor=data.name, shape=with_two_axes(data.shape, rank)),
        _weights(graph, conv, weights),
    ]
    shape = with_two_axes(graph.tensors[fused.output].shape, rank)
    return product_layer(
        graph, fused, "conv2d_transpose", parameters, operands, shape, approximate=approximate
    )


def _weights(graph: Graph, conv: ConvTranspose, weights: Tensor) -> Operand:
    shape = with_two_axes((weights.shape[0], conv.channels(weights), *weights.shape[2:]), conv.windows.rank)
    if conv.groups == 1:
        return Operand(name="weight", tensor=weights.name, shape=shape)
    if prod(shape) > _MAX_DENSE_WEIGHTS:
        raise NotOnMachine(
            f"its {conv.groups} groups would need {prod(shape)} weights, most of them 0; at most "
            f"{_MAX_DENSE_WEIGHTS} are generated"
        )
    values = weights_without_zero(weights, graph.constants[weights.name])
    values = values.reshape(conv.groups, -1, *with_two_axes(values.shape, conv.windows.rank)[1:])
    dense = np.zeros((conv.groups, values.shape[1], conv.groups, *values.shape[2:]), np.int64)
    for group, part in enumerate(values):
        dense[group, :, group] = part
    return Operand(name="weight", tensor=weights.name, shape=shape, generated=tuple(dense.ravel().tolist()))
