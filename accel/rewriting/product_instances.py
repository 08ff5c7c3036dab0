"""Generators of instances for product rules."""

from __future__ import annotations

import numpy as np

from accel.base.records import replace
from accel.graph.elementwise_operators import Add, Dequantize
from accel.graph.graph import Graph
from accel.graph.graph_tensor import QUANTIZED, Quantization, Shape
from accel.graph.movement_operators import Concat, Pad
from accel.graph.pooling_operators import AveragePool, GlobalAveragePool
from accel.graph.product_operators import Conv, MatMul
from accel.graph.window_geometry import Windows
from accel.rewriting.instance_builder import InstanceBuilder


def _windows(draw: InstanceBuilder, rank: int = 2) -> Windows:
    """Windows fit pictures of at least 6 pixels along each axis."""
    kernel = tuple(draw.integer(1, 3) for _ in range(rank))
    return Windows(
        kernel=kernel,
        strides=(draw.integer(1, 2),) * rank,
        dilations=(draw.integer(1, 2),) * rank,
        begin=tuple(draw.integer(0, size - 1) for size in kernel),
        end=tuple(draw.integer(0, size - 1) for size in kernel),
    )


def _picture(draw: InstanceBuilder, channels: int, rank: int = 2) -> str:
    return draw.byte_input((draw.integer(1, 2), channels, *(draw.integer(6, 8) for _ in range(rank))))


def _bias(draw: InstanceBuilder, channels: int) -> list[str]:
    return [draw.bias(channels)] if draw.chance(0.5) else []


def _product(
    draw: InstanceBuilder,
    operator: Conv | MatMul,
    x: str,
    channels: int,
    dtype: str = "int8",
    quantization: Quantization | None = None,
) -> str:
    """Weights are random. Some products have a bias, or scales of sums."""
    sizes = draw.tensors[x].shape
    shape: Shape = (sizes[-1], channels)
    axis = 1
    if isinstance(operator, Conv):
        shape, axis = (channels, sizes[1] // operator.groups, *operator.windows.kernel), 0
    weights = draw.weights(shape, axis, zero=draw.choice((0, 0, 3)))
    if dtype in QUANTIZED:
        quantization = quantization or draw.quantization(dtype)
        if draw.chance(0.3):
            scales = (0.01 * 2 ** draw.rng.uniform(-2, 2, channels)).astype(np.float32)
            operator = replace(operator, sum_scales=tuple(scales.tolist()))
    bias = _bias(draw, channels)
    return draw.node(operator, x, weights, *bias, dtype=dtype, quantization=quantization)


def padded_convolutions(rng: np.random.Generator) -> Graph:
    """Some pad channels, or with another number than zero."""
    draw = InstanceBuilder(rng)
    channels = draw.integer(1, 4)
    x = _picture(draw, channels)
    zero = draw.tensors[x].required_quantization.zero[0]
    around = [(0, int(draw.chance(0.1)), draw.integer(0, 2), draw.integer(0, 2)) for _ in range(2)]
    value = zero if draw.chance(0.8) else (zero + 1 if zero < 1 else zero - 1)
    padded = draw.node(Pad(begin=around[0], end=around[1], value=value), x)
    conv = Conv(windows=_windows(draw))
    return draw.done(_product(draw, conv, padded, 3, draw.tensors[x].dtype))


def _second_quantization(draw: InstanceBuilder, first: Quantization, dtype: str) -> Quantization:
    kind = draw.integer(0, 4)
    if kind == 4:
        return draw.quantization(dtype)
    factor = np.float32((1, 1, 2, 1.37)[kind])
    return replace(first, scale=(float(np.float32(first.scale[0]) * factor),))


def convolutions_of_one_tensor(rng: np.random.Generator) -> Graph:
    """Kernels have sizes of 1 to 3. Quantizations often differ."""
    draw = InstanceBuilder(rng)
    channels = draw.integer(1, 4)
    x = _picture(draw, channels)
    size = draw.choice((3, 3, 2))
    windows = Windows(
        kernel=(size, size),
        strides=(draw.integer(1, 2),) * 2,
        dilations=(draw.choice((1, 1, 2)),) * 2,
        begin=(1, 1),
        end=(1, 1),
    )
    other = windows
    if draw.chance(0.6):
        pads = draw.choice(((0, 0), (1, 0)))
        other = replace(windows, kernel=(1, 1), begin=pads, end=pads)
    dtype = draw.choice((*QUANTIZED, "int32"))
    first = None if dtype == "int32" else draw.quantization(dtype)
    second = None if first is None else _second_quantization(draw, first, dtype)
    results = [
        _product(draw, Conv(windows=own), x, draw.integer(1, 4), dtype, quantization)
        for own, quantization in ((windows, first), (other, second))
    ]
    return draw.done(*results)


def products_of_one_matrix(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    x = draw.byte_input(draw.shape(draw.integer(2, 3)))
    dtype = draw.choice((*QUANTIZED, "int32"))
    first = None if dtype == "int32" else draw.quantization(dtype)
    second = None if first is None else _second_quantization(draw, first, dtype)
    results = [
        _product(draw, MatMul(), x, draw.integer(1, 4), dtype, quantization)
        for quantization in (first, second)
    ]
    return draw.done(*results)


def products_with_the_same_weights(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    lead, depth = draw.shape(draw.integer(0, 1)), draw.integer(1, 5)
    columns = depth if draw.chance(0.3) else draw.integer(1, 4)
    weights, bias = draw.weights((depth, columns), 1), _bias(draw, columns)
    one = draw.byte_input((*lead, draw.integer(1, 4), depth), "int8")
    quantization = draw.tensors[one].quantization
    other = draw.byte_input((*lead, draw.integer(1, 4), depth), "int8")
    if draw.chance(0.8):
        draw.tensors[other] = replace(draw.tensors[other], quantization=quantization)
    first = draw.node(MatMul(), one, weights, *bias, dtype="int8", quantization=quantization)
    source = first if columns == depth and draw.chance(0.5) else other
    second = draw.node(MatMul(), source, weights, *bias, dtype="int8", quantization=quantization)
    return draw.done(first, second)


def grouped_convolutions(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    groups, inputs, outputs = draw.choice((1, 2, 3, 4, 6)), draw.integer(1, 3), draw.integer(1, 3)
    x = _picture(draw, groups * inputs)
    conv = Conv(windows=_windows(draw), groups=groups)
    return draw.done(_product(draw, conv, x, groups * outputs))


def block_diagonal_convolutions(rng: np.random.Generator) -> Graph:
    """Weights between two groups are zero, but sometimes one is not."""
    draw = InstanceBuilder(rng)
    outputs, inputs, groups = 2 * draw.integer(1, 3), 2 * draw.integer(1, 3), draw.integer(1, 2)
    x = _picture(draw, groups * inputs)
    y = _product(draw, Conv(windows=_windows(draw), groups=groups), x, groups * outputs, "uint8")
    weights = draw.nodes[y].inputs[1]
    values = draw.constants[weights]
    zero = draw.tensors[weights].required_quantization.zero[0]
    for row in range(len(values)):
        is_second = row % outputs >= outputs // 2
        values[row, slice(0, inputs // 2) if is_second else slice(inputs // 2, None)] = zero
    if draw.chance(0.3):
        values[0, -1] = zero + 1
    return draw.done(y)


def point_convolutions(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    rank, inputs, outputs = draw.integer(1, 2), draw.integer(1, 4), draw.integer(1, 4)
    x = _picture(draw, inputs, rank)
    windows = Windows(
        kernel=(1,) * rank,
        strides=(draw.choice((1, 1, 2)),) * rank,
        dilations=(1,) * rank,
        begin=(draw.choice((0, 0, 1)),) * rank,
        end=(0,) * rank,
    )
    return draw.done(_product(draw, Conv(windows=windows), x, outputs))


def products_with_constant_weights(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    x = draw.byte_input(draw.shape(draw.integer(2, 4)))
    dtype = draw.choice((*QUANTIZED, "int32"))
    return draw.done(_product(draw, MatMul(), x, draw.integer(1, 4), dtype))


def average_pools(rng: np.random.Generator) -> Graph:
    """Windows have 1 to 9 values. Many means lie on a rounding threshold."""
    draw = InstanceBuilder(rng)
    x = _picture(draw, draw.integer(1, 3))
    tensor = draw.tensors[x]
    windows = replace(_windows(draw), dilations=(1, 1))
    if draw.chance(0.6):
        windows = replace(windows, begin=(0, 0), end=(0, 0))
    quantization = tensor.required_quantization if draw.chance(0.3) else draw.quantization(tensor.dtype)
    average = AveragePool(windows=windows, count_padding=draw.chance(0.3), in_float32=draw.chance(0.5))
    return draw.done(draw.node(average, x, dtype=tensor.dtype, quantization=quantization))


def padded_average_pools(rng: np.random.Generator) -> Graph:
    """The padding mostly does not count. A third of the pools have ties."""
    draw = InstanceBuilder(rng)
    rank = draw.integer(1, 2)
    x = _picture(draw, draw.integer(1, 3), rank)
    tensor = draw.tensors[x]
    windows = _windows(draw, rank)
    kernel = tuple(draw.integer(2, 3) for _ in range(rank))
    begin, end = (tuple(draw.integer(0, size - 1) for size in kernel) for _ in range(2))
    windows = replace(windows, kernel=kernel, begin=begin, end=end)
    odd = Quantization.of(0.0217 * 2 ** draw.rng.uniform(0, 2), draw.integer(0, 100))
    quantization = tensor.required_quantization if draw.chance(0.2) else odd
    average = AveragePool(windows=windows, count_padding=draw.chance(0.1), in_float32=draw.chance(0.5))
    return draw.done(draw.node(average, x, dtype=tensor.dtype, quantization=quantization))


def global_averages(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    x = draw.byte_input((draw.integer(1, 2), *draw.shape(draw.integer(2, 3), 7)))
    dtype = draw.tensors[x].dtype
    return draw.done(draw.node(GlobalAveragePool(), x, dtype=dtype, quantization=draw.quantization(dtype)))


def convolutions_of_ones(rng: np.random.Generator) -> Graph:
    """The scale is that of a mean, or twice as large."""
    draw = InstanceBuilder(rng)
    channels, size = draw.integer(1, 4), draw.integer(1, 3)
    x = draw.byte_input((1, channels, size, size))
    scale = np.float32(1 / np.float32(size * size)) * np.float32(draw.choice((1, 1, 2)))
    weights = draw.constant(
        draw.fresh("w"), np.ones((channels, 1, size, size), np.int8), Quantization.of(scale)
    )
    windows = Windows(kernel=(size, size), strides=(1, 1), dilations=(1, 1), begin=(0, 0), end=(0, 0))
    y = draw.node(
        Conv(windows=windows, groups=channels), x, weights, dtype="int8", quantization=draw.quantization()
    )
    return draw.done(y)


def products_with_added_constants(rng: np.random.Generator) -> Graph:
    """The constant has one value for each channel, or more."""
    draw = InstanceBuilder(rng)
    columns = draw.integer(1, 4)
    values = rng.normal(size=columns).astype(np.float32)
    if draw.chance(0.5):
        x = draw.float_input(draw.shape(2))
        depth = draw.tensors[x].shape[-1]
        weights = draw.constant("w", rng.normal(size=(depth, columns)).astype(np.float32))
        y = draw.node(MatMul(), x, weights)
        added = draw.choice((values, values.reshape(1, -1), values[:1], np.ones((2, 1, 1), np.float32)))
    else:
        x = draw.float_input((1, 2, 6, 6))
        windows = _windows(draw)
        weights = draw.constant("w", rng.normal(size=(columns, 2, *windows.kernel)).astype(np.float32))
        y = draw.node(Conv(windows=windows), x, weights)
        added = draw.choice((values.reshape(-1, 1, 1), values.reshape(1, -1, 1, 1), values[:1]))
    return draw.done(draw.node(Add(), y, draw.constant("added", np.ascontiguousarray(added))))


def products_in_sequence(rng: np.random.Generator) -> Graph:
    """In some, a sum exceeds the integers of float32."""
    draw = InstanceBuilder(rng)
    x = draw.byte_input(draw.shape(2))
    scale = 2.0 ** draw.integer(-6, 2) * draw.choice((1, 1, 1, 1.5))
    quantization = replace(draw.tensors[x].required_quantization, scale=(scale,))
    draw.tensors[x] = replace(draw.tensors[x], quantization=quantization)
    numbers = draw.node(Dequantize(), x, dtype="float32")
    sizes = (draw.tensors[x].shape[1], draw.integer(1, 5), draw.integer(1, 5))
    most = draw.choice((3, 40, 400))
    product = numbers
    for rows, columns in (sizes[:2], sizes[1:]):
        values = rng.integers(-most, most, (rows, columns)).astype(np.float32) / 8
        product = draw.node(MatMul(), product, draw.constant(draw.fresh("w"), values))
    return draw.done(product)


def _operands(draw: InstanceBuilder, *, is_matrix: bool) -> tuple[str, str]:
    shape = draw.shape(2) if is_matrix else (1, draw.integer(1, 3), 6, 7)
    other = (shape[0], draw.integer(1, 4), *shape[2:])
    one, two = draw.byte_input(shape, "int8"), draw.byte_input(other, "int8")
    if draw.chance(0.8):
        draw.tensors[two] = replace(draw.tensors[two], quantization=draw.tensors[one].quantization)
    return one, two


def _int32_product(draw: InstanceBuilder, x: str, outputs: int, windows: Windows | None) -> str:
    inputs = draw.tensors[x].shape[1]
    shape = (inputs, outputs) if windows is None else (outputs, inputs, *windows.kernel)
    weights = draw.weights(shape, None)
    quantization = Quantization(scale=(0.5,), zero=(draw.choice((0, 0, 0, 1)),))
    draw.tensors[weights] = replace(draw.tensors[weights], quantization=quantization)
    operator = MatMul() if windows is None else Conv(windows=windows)
    return draw.emit(operator, (x, weights, *_bias(draw, outputs)), draw.fresh("t"), dtype="int32")


def sums_of_products(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    windows, outputs = (None if draw.chance(0.5) else _windows(draw)), draw.integer(1, 4)
    pair = _operands(draw, is_matrix=windows is None)
    results = [_int32_product(draw, x, outputs, windows) for x in pair]
    return draw.done(draw.node(Add(), *results))


def products_of_concats(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    windows = None if draw.chance(0.5) else _windows(draw)
    one, other = _operands(draw, is_matrix=windows is None)
    axis = 1
    if draw.tensors[one].quantization != draw.tensors[other].quantization:
        other, axis = one, draw.integer(0, 1)
    joined = draw.node(Concat(axis=axis), one, other)
    return draw.done(_int32_product(draw, joined, draw.integer(1, 4), windows))
