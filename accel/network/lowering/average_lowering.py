"""Averages as ``global_avg_pool2d``, ``gemm`` or ``conv2d``."""

from math import prod

import numpy as np

from accel.base.records import replace
from accel.graph.graph import Graph
from accel.graph.graph_tensor import QUANTIZED
from accel.graph.pooling_operators import AveragePool, GlobalAveragePool
from accel.network.exact_averages import exact_average_scale
from accel.network.fused_nodes import FusedNodes
from accel.network.lowering.layer_operand import Operand
from accel.network.lowering.lowered_layer import LoweredLayer, NotOnMachine
from accel.network.lowering.quantized_epilogue import quantized_epilogue
from accel.network.lowering.unsupported_reasons import unsupported_reason
from accel.network.lowering.window_parameters import (
    require_two_axes,
    size_parameters,
    window_parameters,
    with_two_axes,
)

_INEXACT = "float32 may round some of its means differently"


def lower_global_average(graph: Graph, fused: FusedNodes, _: bool) -> LoweredLayer:
    """Lower an average with one window."""
    (data,), result = graph.operands(fused.main), graph.tensors[fused.main.output]
    if result.dtype not in QUANTIZED:
        raise NotOnMachine(f"its result is {result.dtype}; the machine's means are int8 or uint8")
    batch, channels, height, *rest = data.shape
    width = prod(rest)
    scale = np.asarray(GlobalAveragePool().scale([data], result))
    return LoweredLayer(
        operator="global_avg_pool2d",
        parameters={
            "N": batch,
            "C": channels,
            "H": height,
            "W": width,
            "quantized": quantized_epilogue(graph, data, result, scale, fused),
        },
        operands=(Operand(name="data", tensor=data.name, shape=(batch, channels, height, width)),),
        output="out",
    )


def lower_average(graph: Graph, fused: FusedNodes, approximate: bool) -> LoweredLayer:
    """Lower an AveragePool to a depthwise convolution by 1, if integers round as float32 does."""
    pool = fused.main.operator
    assert isinstance(pool, AveragePool)
    (data,), result = graph.operands(fused.main), graph.tensors[fused.main.output]
    windows, sizes = pool.windows, data.shape[2:]
    if data.dtype not in QUANTIZED or result.dtype not in QUANTIZED:
        raise NotOnMachine(unsupported_reason(graph, fused))
    if pool.has_single_window(sizes) and not pool.in_float32:
        return lower_global_average(graph, fused, approximate)
    require_two_axes(windows)
    counts = pool.counts(sizes)
    if counts.min() != counts.max():
        found = (exact_average_scale(data, result, int(one), int(one)) for one in np.unique(counts))
        if None in found:
            raise NotOnMachine(_INEXACT)
        raise NotOnMachine("its windows have different numbers of values")
    scale = exact_average_scale(data, result, prod(windows.kernel), int(counts.max()))
    if scale is None:
        raise NotOnMachine(_INEXACT)
    channels = data.shape[1]
    kernel_shape = (channels, 1, *with_two_axes((1, 1, *windows.kernel), windows.rank)[2:])
    return LoweredLayer(
        operator="conv2d",
        parameters={
            "N": data.shape[0],
            "IC": channels,
            **size_parameters(data.shape, windows),
            "OC": channels,
            **window_parameters(windows),
            "groups": channels,
            "bias": False,
            "quantized": quantized_epilogue(graph, data, result, np.asarray(scale), fused),
        },
        operands=(
            Operand(name="data", tensor=data.name, shape=with_two_axes(data.shape, windows.rank)),
            Operand(name="weight", tensor=data.name, shape=kernel_shape, generated=(1,) * prod(kernel_shape)),
        ),
        output="out",
    )


def global_average_as_product(layer: LoweredLayer, strips: int, rows: int) -> LoweredLayer:
    """Write a global average as a product, which can add the rows of a picture in strips.

    Its weights are the transposed picture, pixels by channels. Its data has a row for each picture, with ones
    at the rows of its strips. uint8 values are read as int8, 128 less, which the bias corrects.
    """
    sizes, (data,) = layer.parameters, layer.operands
    pixels, pictures, channels = sizes["H"] * sizes["W"], sizes["N"], sizes["C"]
    elements = pixels // strips
    is_summed = np.zeros((pictures, elements, rows), dtype=np.int64)
    for number in range(pictures):
        is_summed[number, :, number * strips : (number + 1) * strips] = 1
    quantized = sizes["quantized"]
    shift = 128 if quantized.input_dtype == "uint8" else 0
    bias = pixels * (shift - quantized.input_zero)
    depth = elements * rows
    return LoweredLayer(
        operator="gemm",
        parameters={
            "M": pictures,
            "N": channels,
            "K": depth,
            "bias": True,
            "quantized": replace(quantized, input_zero=0, input_dtype="int8"),
        },
        operands=(
            Operand(
                name="A",
                tensor=data.tensor,
                shape=(pictures, depth),
                generated=tuple(is_summed.reshape(-1).tolist()),
            ),
            Operand(name="B", tensor=data.tensor, shape=(depth, channels)),
            Operand(name="bias", tensor=data.tensor, shape=(channels,), generated=(bias,) * channels),
        ),
        output="C",
    )
