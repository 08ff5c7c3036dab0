"""Layers that multiply each channel by its own weight."""

from collections.abc import Sequence
from math import prod
from typing import Any

from accel.base.records import replace
from accel.compiler.ops.quantized_layers import Quantized, QuantizedResidual, QuantizedTable
from accel.graph.graph import Graph
from accel.graph.graph_tensor import Shape, Tensor
from accel.graph.movement_operators import Reshape
from accel.graph.pooling_operators import GlobalAveragePool, MaxPool
from accel.graph.product_operators import Conv, ConvTranspose, MatMul
from accel.network.lowering.layer_operand import Operand
from accel.network.lowering.lowered_layer import LoweredLayer, NotOnMachine
from accel.network.lowering.quantized_epilogue import require_exact_residual, residual_shape
from accel.network.lowering.window_parameters import with_two_axes

_CONVOLUTION_CYCLES_PER_ROW = 140
"""Estimate for a convolution of a matrix, whose rows are pictures of one pixel."""


def diagonal_layer(
    graph: Graph, data: Tensor, weights: Sequence[int], biases: Sequence[int], quantized: Quantized
) -> LoweredLayer:
    """Return a depthwise 1x1 convolution, or a diagonal matrix product where faster."""
    sizes, is_product = _channel_sizes(graph, data)
    channels = sizes[1]
    channel_weights, channel_biases = (
        tuple(values) * (channels if len(values) == 1 else 1) for values in (weights, biases)
    )
    operands = [Operand(name="A" if is_product else "data", tensor=data.name, shape=sizes)]
    if is_product:
        matrix = (channels, channels)
        operands.append(Operand(name="B", tensor=data.name, shape=matrix, generated=channel_weights))
        parameters: dict[str, Any] = {"M": sizes[0], "N": channels, "K": channels}
    else:
        kernel = (channels, 1, 1, 1)
        operands.append(Operand(name="weight", tensor=data.name, shape=kernel, generated=channel_weights))
        parameters = {"N": sizes[0], "IC": channels, "H": sizes[2], "W": sizes[3], "OC": channels}
        parameters |= {"kernel": (1, 1), "groups": channels}
    if any(biases):
        operands.append(Operand(name="bias", tensor=data.name, shape=(channels,), generated=channel_biases))
    return LoweredLayer(
        operator="gemm" if is_product else "conv2d",
        parameters=parameters | {"bias": any(biases), "quantized": quantized},
        operands=tuple(operands),
        output="C" if is_product else "out",
    )


def copied(data: Tensor, table: QuantizedTable | None = None) -> Quantized:
    """Return the epilogue of a copy, perhaps through a table."""
    zero = 0 if data.quantization is None else int(data.scale_and_zero[1])
    return Quantized(
        scale=1.0,
        input_zero=zero,
        input_dtype=data.dtype,
        output_zero=zero,
        output_dtype=data.dtype,
        table=table,
    )


def with_residual(
    graph: Graph,
    data: Tensor,
    factors: tuple[Sequence[int], Sequence[int]],
    quantized: Quantized,
    residual: QuantizedResidual,
    other: Tensor,
    *,
    approximate: bool,
) -> LoweredLayer:
    """Add or multiply by a residual."""
    exact, differences = require_exact_residual(
        replace(quantized, residual=residual), approximate=approximate
    )
    layer = diagonal_layer(graph, data, *factors, exact)
    shape = residual_shape(residual, layer.operands[0].shape)
    operand = Operand(name="residual", tensor=other.name, shape=shape)
    return replace(layer, operands=(*layer.operands, operand), differences=differences)


def _channel_sizes(graph: Graph, data: Tensor) -> tuple[Shape, bool]:
    """Return (N, C, H, W), or (M, C) and True if a product is faster."""
    shape = data.shape
    if not is_matrix(graph, data):
        if len(shape) > 4:
            raise NotOnMachine(f"the machine's tensors have four axes at most; this one has {len(shape)}")
        return with_two_axes(shape, len(shape) - 2), False
    rows, channels = prod(shape[:-1]), prod(shape[-1:])
    # multiplications of blocks of 16 x 16, and loading the matrix
    product_cycles = rows * (-(-channels // 16)) ** 2 + channels**2 // 8
    is_product = product_cycles < rows * _CONVOLUTION_CYCLES_PER_ROW
    return ((rows, channels), True) if is_product else ((rows, channels, 1, 1), False)


def is_matrix(graph: Graph, tensor: Tensor) -> bool:
    """Whether a tensor's channels are its last axis, as after a MatMul, not its second.

    The search follows operands of the same shape, or with rows that a Reshape divides.
    """
    found: Tensor | None = tensor
    while found is not None and len(found.shape) > 2:
        node = graph.producers.get(found.name)
        if node is None or isinstance(node.operator, Conv | ConvTranspose | MaxPool | GlobalAveragePool):
            return False
        if isinstance(node.operator, MatMul):
            return True
        sizes = found.shape[-1:] if isinstance(node.operator, Reshape) else found.shape
        operands = graph.operands(node)
        found = next((one for one in operands if one.shape[-len(sizes) :] == sizes), None)
    return found is not None
