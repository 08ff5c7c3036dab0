"""Instances for rules of constants and of elementwise operators."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from accel.base.records import replace
from accel.graph.elementwise_operators import Add, Binary, Clip, Mul, Reinterpret, Requantize
from accel.graph.graph import Graph
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import QUANTIZED, Array, Quantization, Shape
from accel.graph.movement_operators import (
    Concat,
    DepthToSpace,
    Identity,
    Reshape,
    SpaceToDepth,
    Take,
    Transpose,
)
from accel.graph.pooling_operators import MaxPool
from accel.graph.window_geometry import Windows
from accel.rewriting.instance_builder import InstanceBuilder

_Generator = Callable[["np.random.Generator"], Graph]


def _ends(draw: InstanceBuilder, inner: str, last: str) -> Graph:
    return draw.done(*((inner, last) if draw.chance(0.2) else (last,)))


# ---- Constants and common subexpressions


def operators_of_constants(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    shape = draw.shape(2)
    x = draw.any_input(shape)
    value = x if draw.chance(0.2) else draw.constant_like(x, shape)
    if draw.chance(0.5):
        value = draw.binary(value, draw.constant_like(x, shape))
    else:
        value = draw.move(value, Transpose)
        value = draw.move(value, Transpose) if draw.tensors[value].shape != shape else value
    if draw.tensors[value].shape != shape:
        return draw.done(value)
    return draw.done(draw.binary(x, value))


def equal_operators(rng: np.random.Generator) -> Graph:
    """Attributes or scales sometimes differ."""
    draw = InstanceBuilder(rng)
    x = draw.any_input(draw.shape(2))
    first = draw.function(x) if draw.chance(0.5) else draw.binary(x, x)
    node, out = draw.nodes[first], draw.tensors[first]
    if draw.chance(0.3):
        second = draw.function(x)
    else:
        quantization = out.quantization
        second = draw.node(node.operator, *node.inputs, dtype=out.dtype, quantization=quantization)
    outputs = [first, second] if draw.chance(0.3) else []
    if not outputs and draw.tensors[second] == replace(out, name=second):
        outputs = [draw.node(Concat(axis=0), first, second)]
        outputs += [first] if draw.chance(0.3) else [second] if draw.chance(0.3) else []
    return draw.done(*(outputs or [first, second]))


def equal_quantizes(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    x = draw.byte_input(draw.shape(2))
    dtype = draw.choice(QUANTIZED)
    first, second = draw.quantization(dtype), draw.quantization(dtype)
    second = first if draw.chance(0.7) else second
    names = [draw.node(Requantize(), x, dtype=dtype, quantization=one) for one in (first, second)]
    if first == second and draw.chance(0.7):
        return draw.done(draw.node(Concat(axis=0), *names))
    return draw.done(*names)


def identities(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    x = draw.any_input(draw.shape(2))
    inner = draw.function(x) if draw.chance(0.7) else x
    same = draw.node(Identity(), inner)
    last = draw.function(same) if draw.chance(0.5) else same
    return _ends(draw, same, last) if draw.chance(0.5) or inner == x else draw.done(inner, last)


# ---- Functions and moves


def _movable(draw: InstanceBuilder, kind: type[Operator]) -> str:
    shape = draw.shape(draw.integer(1, 4), most=4)
    if kind is DepthToSpace:
        shape = (1, 4 * draw.integer(1, 2), *draw.shape(2, most=3))
    if kind is SpaceToDepth:
        shape = (1, draw.integer(1, 3), *(2 * size for size in draw.shape(2, most=2)))
    return draw.any_input(shape)


def functions_of(moves: tuple[type[Operator], ...]) -> _Generator:
    def draw_instance(rng: np.random.Generator) -> Graph:
        draw = InstanceBuilder(rng)
        kind = draw.choice(moves)
        moved = draw.move(_movable(draw, kind), kind)
        return _ends(draw, moved, draw.function(moved))

    return draw_instance


def moves_of_functions(moves: tuple[type[Operator], ...]) -> _Generator:
    def draw_instance(rng: np.random.Generator) -> Graph:
        draw = InstanceBuilder(rng)
        kind = draw.choice(moves)
        found = draw.function(_movable(draw, kind))
        return _ends(draw, found, draw.move(found, kind))

    return draw_instance


def functions_of_repeats(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    x = draw.byte_input(draw.shape(2))
    if draw.chance(0.3):
        taken = draw.move(x, Take)
    else:
        count = draw.tensors[x].shape[1]
        taken = draw.node(Take(axis=1, indices=(*range(count), *range(count))), x)
    return _ends(draw, taken, draw.byte_function(taken) if draw.chance(0.5) else draw.function(taken))


def _scaled_moves(rng: np.random.Generator, *, first: bool) -> Graph:
    draw = InstanceBuilder(rng)
    moves: tuple[type[Operator], ...] = (Reshape, Transpose, Identity)
    moved = draw.move(draw.any_input(draw.shape(3)), draw.choice(moves))
    rank = len(draw.tensors[moved].shape)
    size = draw.tensors[moved].shape[-1] if draw.chance(0.2) else 1
    value = draw.constant_like(moved, ((1,) * rank + (size,))[draw.integer(0, rank + 1) :])
    return _ends(draw, moved, draw.binary(value, moved) if first else draw.binary(moved, value))


def moves_with_scalars(rng: np.random.Generator) -> Graph:
    return _scaled_moves(rng, first=False)


def moves_with_first_scalars(rng: np.random.Generator) -> Graph:
    return _scaled_moves(rng, first=True)


def functions_of_concats(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    shape, axis = draw.shape(3), draw.integer(0, 2)
    x = draw.any_input(shape)
    joined = draw.node(Concat(axis=axis), x, *(draw.like_input(x, shape) for _ in range(draw.integer(0, 2))))
    return _ends(draw, joined, draw.function(joined))


def concats_of_functions(rng: np.random.Generator) -> Graph:
    """Attributes or scales sometimes differ."""
    draw = InstanceBuilder(rng)
    shape, axis = draw.shape(3), draw.integer(0, 2)
    x = draw.any_input(shape)
    first = draw.function(x)
    node, out = draw.nodes[first], draw.tensors[first]
    operands = [first]
    for _ in range(draw.integer(0, 2)):
        y = draw.like_input(x, shape)
        operator = node.operator
        if isinstance(operator, Clip) and draw.chance(0.3):
            operator = draw.clip(out.dtype)
        elif isinstance(operator, Requantize | Reinterpret) and draw.chance(0.3):
            y = draw.node(Reinterpret(), y, quantization=draw.quantization(draw.tensors[y].dtype))
        operands.append(draw.node(operator, y, dtype=out.dtype, quantization=out.quantization))
    return _ends(draw, first, draw.node(Concat(axis=axis), *operands, dtype=out.dtype))


# ---- Clip, Requantize and Reinterpret


def _pool(draw: InstanceBuilder, x: str) -> str:
    windows = Windows(
        kernel=(2, 3),
        strides=(draw.integer(1, 2), 1),
        dilations=(1, 1),
        begin=(draw.integer(0, 1), 1),
        end=(1, draw.integer(0, 2)),
    )
    return draw.node(MaxPool(windows=windows), x)


def _monotone(draw: InstanceBuilder, x: str) -> str:
    dtype = draw.tensors[x].dtype
    if dtype == "float32" or draw.chance(0.5):
        return draw.node(draw.clip(dtype), x)
    return draw.byte_function(x, 4)


def functions_of_maxima(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    pooled = _pool(draw, draw.any_input((1, 2, draw.integer(2, 5), draw.integer(2, 5))))
    return _ends(draw, pooled, _monotone(draw, pooled))


def maxima_of_functions(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    found = _monotone(draw, draw.any_input((1, 2, draw.integer(2, 5), draw.integer(2, 5))))
    return _ends(draw, found, _pool(draw, found))


def clip_pairs(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    x = draw.any_input(draw.shape(2, most=8))
    dtype = draw.tensors[x].dtype
    first, second = draw.clip(dtype), draw.clip(dtype)
    if draw.chance(0.2):
        second = replace(second, low=0)
    inner = draw.node(first, x)
    return _ends(draw, inner, draw.node(second, inner))


def clips(rng: np.random.Generator) -> Graph:
    """Bounds often include all values, or all but one."""
    draw = InstanceBuilder(rng)
    x = draw.any_input((16, 16))
    dtype = draw.tensors[x].dtype
    if dtype == "float32":
        low, high = -float("inf"), draw.choice((float("inf"), 0.5))
    else:
        bounds = np.iinfo(dtype)
        low, high = float(bounds.min), float(bounds.max - draw.choice((0, 0, 1)))
    clip = Clip(low=None if draw.chance(0.5) else low, high=None if draw.chance(0.3) else high)
    return draw.done(draw.node(clip, x))


def _near(draw: InstanceBuilder, first: Quantization, dtype: str) -> Quantization:
    """Draw an equal quantization, a multiple of the scale, or any."""
    bounds = np.iinfo(dtype)
    factor = np.float32(draw.choice((1, 1, 1, 2, 0.5, 1.00001)))
    zero = first.zero[0] if bounds.min <= first.zero[0] <= bounds.max else 0
    if draw.chance(0.2):
        return draw.quantization(dtype)
    return Quantization.of(np.float32(first.scale[0]) * factor, zero)


def requantize_pairs(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    x = draw.byte_input((16, 16))
    first = draw.tensors[x].required_quantization
    between, last = draw.choice(QUANTIZED), draw.choice(QUANTIZED)
    second = _near(draw, first, between)
    inner = draw.node(Requantize(), x, dtype=between, quantization=second)
    return _ends(
        draw, inner, draw.node(Requantize(), inner, dtype=last, quantization=_near(draw, second, last))
    )


def requantizes(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    x = draw.byte_input((16, 16))
    dtype = draw.tensors[x].dtype if draw.chance(0.9) else draw.choice(QUANTIZED)
    quantization = _near(draw, draw.tensors[x].required_quantization, dtype)
    return draw.done(draw.node(Requantize(), x, dtype=dtype, quantization=quantization))


def _reinterpreted(draw: InstanceBuilder, x: str, other: str) -> str:
    dtype = draw.tensors[x].dtype
    same = draw.tensors[other].quantization
    quantization = same if draw.chance(0.5) else draw.quantization(dtype)
    return draw.node(Reinterpret(), x, dtype=dtype, quantization=quantization)


def reinterpret_pairs(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    x = draw.byte_input(draw.shape(2))
    inner = _reinterpreted(draw, x, x)
    return _ends(draw, inner, _reinterpreted(draw, inner, x))


def reinterprets(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    x = draw.byte_input(draw.shape(2))
    x = draw.function(x) if draw.chance(0.5) else x
    if draw.tensors[x].dtype == "float32":
        return draw.done(x)
    return draw.done(_reinterpreted(draw, x, x))


# ---- Functions of one byte


def function_pairs(rng: np.random.Generator) -> Graph:
    """Float32 values may lie between the two functions."""
    draw = InstanceBuilder(rng)
    inner = draw.function(draw.byte_input((16, 16)))
    return _ends(draw, inner, draw.function(inner))


def _scaled_bytes(rng: np.random.Generator, *, first: bool) -> Graph:
    draw = InstanceBuilder(rng)
    x = draw.byte_input((16, 16)) if draw.chance(0.9) else draw.float_input((2, 3))
    shape = draw.tensors[x].shape
    shapes: tuple[Shape, ...] = ((), (1,), (1, 1), shape[1:], (1, 1, 1))
    value = draw.constant_like(x, draw.choice(shapes))
    return draw.done(draw.binary(value, x) if first else draw.binary(x, value))


def bytes_with_scalars(rng: np.random.Generator) -> Graph:
    return _scaled_bytes(rng, first=False)


def bytes_with_first_scalars(rng: np.random.Generator) -> Graph:
    return _scaled_bytes(rng, first=True)


def _gated(rng: np.random.Generator, *, first: bool) -> Graph:
    draw = InstanceBuilder(rng)
    x = draw.byte_input((16, 16))
    dtype = draw.tensors[x].dtype
    function = (
        draw.byte_function(x, draw.choice((2, 5))) if draw.chance(0.7) else draw.node(draw.clip(dtype), x)
    )
    other = draw.like_input(x, (16, 16)) if draw.chance(0.2) else x
    return _ends(draw, function, draw.binary(*((function, other) if first else (other, function))))


def gated_bytes(rng: np.random.Generator) -> Graph:
    return _gated(rng, first=False)


def first_gated_bytes(rng: np.random.Generator) -> Graph:
    return _gated(rng, first=True)


# ---- Constants of float32 and int32


def _extreme_input(draw: InstanceBuilder, shape: Shape) -> str:
    """Scale a float32 input so that results are huge, tiny or zero."""
    x = draw.float_input(shape)
    factor = np.array(draw.choice((1, 1e38, 1e-38, 1e-42, -0.0)), np.float32)
    return draw.node(Mul(), x, draw.constant(draw.fresh("c"), factor))


def _sizes(draw: InstanceBuilder, shape: Shape) -> Shape:
    return draw.choice((shape, shape[1:], (1, *shape[1:]), ()))


def _powers(draw: InstanceBuilder, shape: Shape, least: int) -> Array:
    exponents = draw.rng.integers(least, 6, shape)
    return np.asarray(draw.rng.choice([-1, 1], shape) * np.exp2(exponents), np.float32)


def factor_pairs(rng: np.random.Generator) -> Graph:
    """Factors are powers of two, some less than 1, or any numbers."""
    draw = InstanceBuilder(rng)
    shape = draw.shape(2)
    found = _extreme_input(draw, shape)
    for _ in range(2):
        sizes = _sizes(draw, shape)
        values = _powers(draw, sizes, draw.choice((0, 0, 0, 0, -5)))
        if draw.chance(0.1):
            values = np.asarray(draw.rng.uniform(0.5, 3, sizes), np.float32)
        found = draw.node(Mul(), found, draw.constant(draw.fresh("c"), values))
    return draw.done(found)


def neutral_constants(rng: np.random.Generator) -> Graph:
    """Constants are 1, 0 or -0, perhaps of a higher rank."""
    draw = InstanceBuilder(rng)
    shape = draw.shape(2)
    value, operator = draw.choice(
        (
            (1, Mul()),
            (1, Binary(function="Div")),
            (-0.0, Add()),
            (0, Binary(function="Sub")),
            (0, Add()),
            (-0.0, Binary(function="Sub")),
            (1, Add()),
            (0, Binary(function="Max")),
        )
    )
    dtype = "int32" if isinstance(operator, Add) and draw.chance(0.5) else "float32"
    x = draw.int32_input(shape) if dtype == "int32" else _extreme_input(draw, shape)
    sizes = _sizes(draw, shape) if draw.chance(0.9) else (2, *shape)
    constant = draw.constant(draw.fresh("c"), np.full(sizes, value, dtype))
    quantization = draw.tensors[x].quantization if draw.chance(0.8) else None
    return draw.done(draw.node(operator, x, constant, dtype=dtype, quantization=quantization))


def quotients(rng: np.random.Generator) -> Graph:
    """Divisors are powers of two, some very large or small, or any numbers."""
    draw = InstanceBuilder(rng)
    shape = draw.shape(2)
    x = _extreme_input(draw, shape)
    values = _powers(draw, _sizes(draw, shape), -6)
    values = np.asarray(values * np.float32(draw.choice((1, 1, 1, 2.0**120, 2.0**-126, 2.0**-148, 3))))
    divisor = draw.constant(draw.fresh("c"), values)
    return draw.done(draw.node(Binary(function="Div"), x, divisor))


def summand_pairs(rng: np.random.Generator) -> Graph:
    """Sums of int32 may overflow, and sums of float32 round."""
    draw = InstanceBuilder(rng)
    shape = draw.shape(2)
    is_integer = draw.chance(0.8)
    found = draw.int32_input(shape) if is_integer else draw.float_input(shape)
    for _ in range(2):
        sizes = _sizes(draw, shape)
        values: Array = draw.rng.uniform(-1, 1, sizes).astype(np.float32)
        if is_integer:
            values = draw.rng.integers(-(1 << 31), (1 << 31) - 1, sizes, np.int32)
        summand = draw.constant(draw.fresh("c"), np.asarray(values))
        found = draw.node(Add(), found, summand, dtype=draw.tensors[found].dtype)
    return draw.done(found)
