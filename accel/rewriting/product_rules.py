"""Rules of convolutions, matrix products and averages.

Integer products do not depend on the order of sums. float32 products are only rewritten where each operation
stays the same, or all sums are provably exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.records import replace
from accel.graph.average_rounding import rounded_means
from accel.graph.elementwise_operators import Add, Dequantize, Reinterpret
from accel.graph.graph_operator import saturate
from accel.graph.graph_tensor import QUANTIZED, Array, Quantization, Shape
from accel.graph.movement_operators import Concat, Pad, Reshape, Slice, Transpose
from accel.graph.pooling_operators import AveragePool, GlobalAveragePool
from accel.graph.product_operators import Conv, MatMul, Product
from accel.graph.window_geometry import Windows
from accel.rewriting import product_instances as instances
from accel.rewriting.pattern import (
    Match,
    NewConstant,
    OpPattern,
    Term,
    Value,
    constant,
    constants,
    is_per_tensor,
    make,
    op,
    rest,
    tensor,
)
from accel.rewriting.rule import Rule

_Scales = npt.NDArray[np.float32]
_INTEGERS = (*QUANTIZED, "int32")
_MOST_PARTS = 8
"""Groups that become separate convolutions."""
_MOST_WINDOW_PARTS = 25
"""Of one average pool. For example, 5x5 with padding 2 needs 25."""
_FLOAT32_EXACT_UP_TO = 1 << 24


def _product(
    side: str, data: str, kinds: type[Product] | tuple[type[Product], ...] = (Conv, MatMul)
) -> OpPattern:
    return op(kinds, tensor(data), constant(f"{side}_weights"), constants(f"{side}_bias"), name=side)


# ---- Windows


def _pad_into_convolution(match: Match) -> Term | None:
    pad, conv, x = match.operator("pad", Pad), match.operator("conv", Conv), match["x"]
    zero = 0 if x.quantization is None else x.quantization.zero[0]
    is_zero = pad.mode == "constant" and pad.value == zero
    if not is_zero or any(pad.begin[:2] + pad.end[:2]) or (x.dtype != "float32" and x.quantization is None):
        return None
    windows = replace(
        conv.windows,
        begin=tuple(map(sum, zip(conv.windows.begin, pad.begin[2:], strict=True))),
        end=tuple(map(sum, zip(conv.windows.end, pad.end[2:], strict=True))),
    )
    return make(replace(conv, windows=windows), x, *match.rest("weights"), like=match.root)


PAD_INTO_CONVOLUTION = Rule(
    name="pad-into-convolution",
    text="A Pad of zeros before a convolution becomes the convolution's padding.",
    pattern=op(Conv, op(Pad, tensor("x"), name="pad"), rest("weights"), name="conv"),
    replacement=_pad_into_convolution,
    instance=instances.padded_convolutions,
)


# ---- Products of one tensor, and products with the same weights


def _channel_scales(operator: Product, weights: Value) -> tuple[_Scales, npt.NDArray[np.int32]] | None:
    quantization = weights.quantization
    if quantization is None:
        return None
    channels = operator.channels(weights.tensor)
    scales = np.broadcast_to(np.array(quantization.scale, np.float32), channels)
    return scales, np.broadcast_to(np.array(quantization.zero, np.int32), channels)


def _biases(pairs: Sequence[tuple[Value, ...]], channels: Sequence[int]) -> tuple[Term, ...]:
    if not any(pairs):
        return ()
    parts = [
        bias[0].array if bias else np.zeros(n, np.int32) for bias, n in zip(pairs, channels, strict=True)
    ]
    return (NewConstant(np.concatenate(parts)),)


def _merged(
    match: Match, operators: tuple[Product, Product], weights: tuple[Array, Array], axis: int
) -> tuple[Term, Term] | None:
    """Merge two products into one that computes the channels of both, and return its parts.

    Args:
        operators: the common operator, with each product's attributes.
        weights: of both, with equal shapes but for ``axis``.
    """
    first, second = match.roots
    values = match["first_weights"], match["second_weights"]
    pairs = [_channel_scales(one, value) for one, value in zip(operators, values, strict=True)]
    if pairs[0] is None or pairs[1] is None or values[0].dtype != values[1].dtype:
        return None
    (first_scales, first_zeros), (second_scales, second_zeros) = pairs[0], pairs[1]
    operator = operators[0]
    if first.quantization != second.quantization or operators[0].sum_scales or operators[1].sum_scales:
        old, new = second.quantization, first.quantization
        if old is None or new is None or old.zero != new.zero or first.dtype not in QUANTIZED:
            return None
        operator = replace(operator, sum_scales=_sum_scales(match, operators, values))
    joined = NewConstant(
        np.concatenate(weights, axis=axis),
        Quantization.of(
            np.concatenate([first_scales, second_scales]),
            np.concatenate([first_zeros, second_zeros]),
            axis % weights[0].ndim,
        ),
    )
    counts = [one.shape[axis] for one in weights]
    bias = _biases([match.rest("first_bias"), match.rest("second_bias")], counts)
    both = make(operator, match["x"], joined, *bias, like=first)
    channel_axis = operator.result_axis(len(first.shape))
    parts: list[Term] = []
    for root, start in zip(match.roots, (0, counts[0]), strict=True):
        part = make(_slice_along(both.tensor.shape, channel_axis, start, root.shape[channel_axis]), both)
        is_same = root.quantization == first.quantization
        parts.append(part if is_same else make(Reinterpret(), part, like=root))
    return parts[0], parts[1]


def _sum_scales(match: Match, operators: Sequence[Product], weights: Sequence[Value]) -> tuple[float, ...]:
    found: list[float] = []
    for operator, value, root in zip(operators, weights, match.roots, strict=True):
        scales = operator.scales([match["x"].tensor, value.tensor], root.tensor)
        found += np.broadcast_to(scales, operator.channels(value.tensor)).tolist()
    return tuple(found)


def _slice_along(shape: Shape, axis: int, start: int, count: int) -> Slice:
    starts, sizes = [0] * len(shape), list(shape)
    starts[axis], sizes[axis] = start, count
    return Slice(starts=tuple(starts), sizes=tuple(sizes), steps=(1,) * len(shape))


def _common_windows(one: Windows, other: Windows, sizes: Shape, outputs: Shape) -> Windows | None:
    """Return the smallest windows that contain both, or None if they have different places."""
    axes: list[tuple[int, int, int, int, int]] = []
    for axis, (size, count) in enumerate(zip(sizes, outputs, strict=True)):
        pairs = [(w.kernel[axis], w.dilations[axis], w.begin[axis], w.strides[axis]) for w in (one, other)]
        steps = {dilation for taps, dilation, *_ in pairs if taps > 1} or {1}
        begin = max(own for _, _, own, _ in pairs)
        step, stride = steps.pop(), pairs[0][3]
        if steps or (count > 1 and pairs[1][3] != stride):
            return None
        if any((begin - own) % step for _, _, own, _ in pairs):
            return None
        taps = max((begin - own) // step + own_taps for own_taps, _, own, _ in pairs)
        extent = (taps - 1) * step + 1
        axes.append((taps, stride, step, begin, max(0, (count - 1) * stride + extent - size - begin)))
    kernel, strides, dilations, begins, ends = (tuple(column) for column in zip(*axes, strict=True))
    found = Windows(kernel=kernel, strides=strides, dilations=dilations, begin=begins, end=ends)
    return found if found.outputs(sizes) == outputs else None


def _embedded(values: Array, old: Windows, new: Windows, zeros: npt.NDArray[np.int32]) -> Array:
    shape = (*values.shape[:2], *new.kernel)
    filled: Any = np.broadcast_to(zeros.reshape(-1, *[1] * (len(shape) - 1)), shape).astype(values.dtype)
    places: list[slice] = [slice(None)] * 2
    for axis in range(new.rank):
        start = (new.begin[axis] - old.begin[axis]) // new.dilations[axis]
        places.append(slice(start, start + old.kernel[axis]))
    filled[tuple(places)] = values
    return np.asarray(filled)


def _merge_convolutions(match: Match) -> tuple[Term, Term] | None:
    first, second = match.operator("first", Conv), match.operator("second", Conv)
    roots, x = match.roots, match["x"]
    if first.groups != 1 or second.groups != 1 or roots[0].shape[2:] != roots[1].shape[2:]:
        return None
    windows = _common_windows(first.windows, second.windows, x.shape[2:], roots[0].shape[2:])
    if windows is None:
        return None
    operators = replace(first, windows=windows), replace(second, windows=windows)
    weights: list[Array] = []
    for old, name in ((first, "first_weights"), (second, "second_weights")):
        pair = _channel_scales(old, match[name])
        if pair is None:
            return None
        weights.append(_embedded(match.values(name), old.windows, windows, pair[1]))
    return _merged(match, operators, (weights[0], weights[1]), 0)


def _are_integers(match: Match) -> bool:
    return (
        is_per_tensor(*match.roots)
        and len({root.dtype for root in match.roots}) == 1
        and match.root.dtype in _INTEGERS
    )


MERGE_CONVOLUTIONS = Rule(
    name="merge-convolutions",
    text="Two convolutions of one tensor become one with the channels of both. The smaller kernel is padded.",
    pattern=(
        _product("first", "x", Conv),
        _product("second", "x", Conv),
    ),
    condition=_are_integers,
    replacement=_merge_convolutions,
    instance=instances.convolutions_of_one_tensor,
)


def _merge_products(match: Match) -> tuple[Term, Term] | None:
    first, second = match.operator("first", MatMul), match.operator("second", MatMul)
    weights = match.values("first_weights"), match.values("second_weights")
    if weights[0].ndim != 2 or weights[1].ndim != 2:
        return None
    if first.alpha != second.alpha:
        return None
    return _merged(match, (first, second), weights, -1)


MERGE_PRODUCTS = Rule(
    name="merge-products",
    text="Two products of one matrix become one with the columns of both, for example Q and K of attention.",
    pattern=(
        _product("first", "x", MatMul),
        _product("second", "x", MatMul),
    ),
    condition=_are_integers,
    replacement=_merge_products,
    instance=instances.products_of_one_matrix,
)


def _merge_rows(match: Match) -> tuple[Term, Term] | None:
    one, other, first, second = match["one"], match["other"], *match.roots
    if one.key == other.key or match.operator("first", MatMul) != match.operator("second", MatMul):
        return None
    if len(match["weights"].shape) != 2 or len(one.shape) != len(other.shape):
        return None
    others_differ = one.shape[:-2] != other.shape[:-2]
    types_differ = (one.dtype, one.quantization) != (other.dtype, other.quantization)
    if others_differ or types_differ or first.quantization != second.quantization:
        return None
    rows = len(one.shape) - 2
    joined = make(Concat(axis=rows), one, other)
    bias = match.rest("bias")
    both = make(match.operator("first", MatMul), joined, match["weights"], *bias, like=first)
    shape, count = both.tensor.shape, first.shape[rows]
    return (
        make(_slice_along(shape, rows, 0, count), both),
        make(_slice_along(shape, rows, count, second.shape[rows]), both),
    )


MERGE_ROWS = Rule(
    name="merge-rows",
    text="Two products with the same weights become one of all rows, as in the unrolled steps of an LSTM.",
    pattern=(
        op(MatMul, tensor("one"), constant("weights"), constants("bias"), name="first"),
        op(MatMul, tensor("other"), constant("weights"), constants("bias"), name="second"),
    ),
    condition=_are_integers,
    replacement=_merge_rows,
    instance=instances.products_with_the_same_weights,
)


def _sum_of_products(match: Match) -> Term | None:
    first, second = match.named["first"], match.named["second"]
    one, other = match["one"], match["other"]
    weights = match["first_weights"], match["second_weights"]
    if first != second or not isinstance(first, Conv | MatMul) or match.root.dtype != "int32":
        return None
    axis, is_matrix = _depth_axis(first, one)
    others_differ = one.shape[:axis] + one.shape[axis + 1 :] != other.shape[:axis] + other.shape[axis + 1 :]
    if others_differ or (one.dtype, one.quantization) != (other.dtype, other.quantization):
        return None
    if weights[0].dtype != weights[1].dtype or weights[0].quantization != weights[1].quantization:
        return None
    if len(weights[0].shape) != len(weights[1].shape) or not _has_one_depth(first, weights[0]):
        return None
    values = np.concatenate(
        [match.values("first_weights"), match.values("second_weights")], axis=0 if is_matrix else 1
    )
    biases = [*match.rest("first_bias"), *match.rest("second_bias")]
    total = np.zeros(first.channels(weights[0].tensor), np.int32)
    for bias in biases:
        total = total + bias.array
    joined = make(Concat(axis=axis), one, other)
    added = [NewConstant(total)] if biases else []
    return make(first, joined, NewConstant(values, weights[0].quantization), *added, like=match.root)


def _depth_axis(operator: Product, x: Value) -> tuple[int, bool]:
    is_matrix = isinstance(operator, MatMul)
    return len(x.shape) - 1 if is_matrix else 1, is_matrix


def _has_one_depth(operator: Product, weights: Value) -> bool:
    return operator.groups == 1 if isinstance(operator, Conv) else len(weights.shape) == 2


SUM_OF_PRODUCTS = Rule(
    name="sum-of-products",
    text="The sum of two int32 products becomes one product of both operands, one after another.",
    pattern=op(Add, _product("first", "one"), _product("second", "other")),
    replacement=_sum_of_products,
    instance=instances.sums_of_products,
    simplifies=True,
)


def _product_of_concat(match: Match) -> Term | None:
    operator, parts, weights = match.named["product"], match.rest("parts"), match["weights"]
    if not isinstance(operator, Conv | MatMul) or len(parts) < 2 or match.root.dtype != "int32":
        return None
    axis, is_matrix = _depth_axis(operator, parts[0])
    if match.operator("concat", Concat).axis != axis or not _has_one_depth(operator, weights):
        return None
    ends = np.cumsum([one.shape[axis] for one in parts])[:-1]
    pieces = np.split(match.values("weights"), ends, axis=0 if is_matrix else 1)
    total: Term | None = None
    for part, piece in zip(parts, pieces, strict=True):
        bias = match.rest("bias") if total is None else ()
        one = make(operator, part, NewConstant(piece, weights.quantization), *bias, like=match.root)
        total = one if total is None else make(Add(), total, one)
    return total


PRODUCT_OF_CONCAT = Rule(
    name="product-of-concat",
    text="An int32 product of a Concat becomes the sum of the products of its operands.",
    pattern=op(
        (Conv, MatMul),
        op(Concat, rest("parts"), name="concat"),
        constant("weights"),
        constants("bias"),
        name="product",
    ),
    replacement=_product_of_concat,
    instance=instances.products_of_concats,
)


# ---- Groups


def _least_factor(number: int) -> int:
    return next(n for n in range(2, number + 1) if number % n == 0)


def _zero_weights(operator: Conv, weights: Value, inputs: int) -> Array | None:
    """Return weights for zero: (O, inputs, kernel...)."""
    pair = _channel_scales(operator, weights)
    if pair is None:
        return None
    outputs, _, *kernel = weights.shape
    zeros = pair[1].reshape(-1, 1, *[1] * len(kernel)).astype(weights.dtype)
    return np.array(np.broadcast_to(zeros, (outputs, inputs, *kernel)))


def _join_groups(match: Match) -> Term | None:
    conv, weights = match.operator("conv", Conv), match["weights"]
    outputs, inputs = weights.shape[:2]
    outputs //= conv.groups
    if conv.groups == 1 or (inputs == 1 and outputs == 1):
        return None
    joined = _least_factor(conv.groups)
    values = _zero_weights(conv, weights, joined * inputs)
    if values is None:
        return None
    for group in range(conv.groups):
        rows, start = slice(group * outputs, (group + 1) * outputs), group % joined * inputs
        values[rows, start : start + inputs] = match.values("weights")[rows]
    new = NewConstant(values, weights.quantization)
    operator = replace(conv, groups=conv.groups // joined)
    return make(operator, match["x"], new, *match.rest("bias"), like=match.root)


JOIN_GROUPS = Rule(
    name="join-groups",
    text="A convolution in groups becomes one in fewer groups, with zeros in its weights.",
    pattern=op(Conv, tensor("x"), constant("weights"), constants("bias"), name="conv"),
    condition=_are_integers,
    replacement=_join_groups,
    instance=instances.grouped_convolutions,
)


def _separate_groups(match: Match) -> Term | None:
    conv, weights, values = match.operator("conv", Conv), match["weights"], match.values("weights")
    outputs, inputs = values.shape[0] // conv.groups, values.shape[1]
    common = gcd(outputs, inputs)
    if common == 1:
        return None
    parts = _least_factor(common)
    zeros = _zero_weights(conv, weights, inputs // parts)
    if zeros is None:
        return None
    kept = np.empty_like(zeros)
    for row in range(values.shape[0]):
        part = row % outputs // (outputs // parts)
        for other in range(parts):
            piece = values[row, other * inputs // parts : (other + 1) * inputs // parts]
            if other == part:
                kept[row] = piece
            elif not np.array_equal(piece, zeros[row]):
                return None
    operator = replace(conv, groups=conv.groups * parts)
    new = NewConstant(kept, weights.quantization)
    return make(operator, match["x"], new, *match.rest("bias"), like=match.root)


SEPARATE_GROUPS = Rule(
    name="separate-groups",
    text="A convolution whose weights are zero between groups of channels becomes one in groups.",
    pattern=op(Conv, tensor("x"), constant("weights"), constants("bias"), name="conv"),
    condition=_are_integers,
    replacement=_separate_groups,
    instance=instances.block_diagonal_convolutions,
)


def _group_weights(weights: Value, values: Array, rows: slice) -> NewConstant:
    quantization = weights.quantization
    assert quantization is not None  # of integer products
    if quantization.axis is not None:
        scale, zero = np.array(quantization.scale, np.float32), np.array(quantization.zero)
        quantization = Quantization.of(scale[rows], zero[rows], quantization.axis)
    return NewConstant(values[rows], quantization)


def _split_groups(match: Match) -> Term | None:
    conv, x, weights = match.operator("conv", Conv), match["x"], match["weights"]
    if not 1 < conv.groups <= _MOST_PARTS or weights.quantization is None:
        return None
    outputs, inputs = weights.shape[0] // conv.groups, weights.shape[1]
    parts: list[Term] = []
    for group in range(conv.groups):
        rows = slice(group * outputs, (group + 1) * outputs)
        bias = [NewConstant(one.array[rows]) for one in match.rest("bias")]
        part = make(_slice_along(x.shape, 1, group * inputs, inputs), x)
        own = _group_weights(weights, match.values("weights"), rows)
        single = replace(conv, groups=1).with_channels(range(rows.start, rows.stop))
        parts.append(make(single, part, own, *bias, like=match.root))
    return make(Concat(axis=1), *parts)


SPLIT_GROUPS = Rule(
    name="split-groups",
    text="A convolution in 2 to 8 groups becomes a convolution for each group.",
    pattern=op(Conv, tensor("x"), constant("weights"), constants("bias"), name="conv"),
    condition=lambda match: _are_integers(match) and match.root.dtype in QUANTIZED,
    replacement=_split_groups,
    instance=instances.grouped_convolutions,
)


# ---- Points as matrices


def _convolution_as_product(match: Match) -> Term | None:
    conv, x, weights = match.operator("conv", Conv), match["x"], match["weights"]
    windows, channels = conv.windows, x.shape[1]
    is_point = windows.kernel == windows.strides == (1,) * windows.rank
    if conv.groups != 1 or not is_point or any(windows.begin + windows.end) or weights.quantization is None:
        return None
    rank, batch = len(x.shape), x.shape[0]
    last = (0, *range(2, rank), 1)
    rows = make(Transpose(permutation=last), x)
    quantization = weights.quantization
    if quantization.axis is not None:
        quantization = replace(quantization, axis=1)
    matrix = match.values("weights").reshape(-1, channels).T
    product = make(
        MatMul(sum_scales=conv.sum_scales),
        make(Reshape(sizes=(batch, prod(x.shape[2:]), channels)), rows),
        NewConstant(matrix, quantization),
        *match.rest("bias"),
        like=match.root,
    )
    shaped = make(Reshape(sizes=(batch, *x.shape[2:], matrix.shape[1])), product)
    return make(Transpose(permutation=(0, rank - 1, *range(1, rank - 1))), shaped)


CONVOLUTION_AS_PRODUCT = Rule(
    name="convolution-as-product",
    text="A 1x1 convolution becomes a matrix product of its pixels.",
    pattern=op(Conv, tensor("x"), constant("weights"), constants("bias"), name="conv"),
    condition=_are_integers,
    replacement=_convolution_as_product,
    instance=instances.point_convolutions,
)


def _product_as_convolution(match: Match) -> Term | None:
    operator, x, weights = match.operator("product", MatMul), match["x"], match["weights"]
    if len(weights.shape) != 2 or operator.alpha != 1 or weights.quantization is None:
        return None
    rows, columns = prod(x.shape[:-1]), x.shape[-1]
    picture = make(
        Reshape(sizes=(1, columns, rows, 1)),
        make(Transpose(permutation=(1, 0)), make(Reshape(sizes=(rows, columns)), x)),
    )
    quantization = weights.quantization
    if quantization.axis is not None:
        quantization = replace(quantization, axis=0)
    kernel = match.values("weights").T.reshape(-1, columns, 1, 1)
    ones = Windows(kernel=(1, 1), strides=(1, 1), dilations=(1, 1), begin=(0, 0), end=(0, 0))
    points = make(
        Conv(windows=ones, sum_scales=operator.sum_scales),
        picture,
        NewConstant(kernel, quantization),
        *match.rest("bias"),
        like=match.root,
    )
    back = make(Transpose(permutation=(1, 0)), make(Reshape(sizes=(kernel.shape[0], rows)), points))
    return make(Reshape(sizes=match.root.shape), back)


PRODUCT_AS_CONVOLUTION = Rule(
    name="product-as-convolution",
    text="A matrix product with constant weights becomes a 1x1 convolution whose pixels are its rows.",
    pattern=op(MatMul, tensor("x"), constant("weights"), constants("bias"), name="product"),
    condition=_are_integers,
    replacement=_product_as_convolution,
    instance=instances.products_with_constant_weights,
)


# ---- Averages


def _sum_of_windows(x: Value, windows: Windows, out: Value, scale: np.float32) -> Term:
    channels = x.shape[1]
    weights = NewConstant(
        np.ones((channels, 1, *windows.kernel), np.int8), Quantization(scale=(1.0,), zero=(0,))
    )
    conv = Conv(windows=windows, groups=channels, sum_scales=(float(scale),) * channels)
    return make(conv, x, weights, like=out)


def _average_as_convolution(match: Match) -> Term | None:
    average, x, out = match.operator("average", AveragePool), match["x"], match.root
    windows, taps = average.windows, prod(average.windows.kernel)
    counts = np.unique(average.counts(x.shape[2:]))
    if x.dtype not in QUANTIZED or counts.size > 1:
        return None
    means = rounded_means(x.tensor, out.tensor, taps, int(counts[0]))
    if means is None:
        return None
    (scale, _), (out_scale, zero) = x.tensor.scale_and_zero, out.tensor.scale_and_zero
    sums, expected = means
    factor = np.float32(float(scale) / (float(counts[0]) * float(out_scale)))
    if not np.array_equal(saturate(sums.astype(np.float32) * factor, zero, out.dtype), expected):
        return None
    return _sum_of_windows(x, windows, out, factor)


AVERAGE_AS_CONVOLUTION = Rule(
    name="average-as-convolution",
    text="An average pool becomes a depthwise convolution with ones, if all means round the same way.",
    pattern=op(AveragePool, tensor("x"), name="average"),
    replacement=_average_as_convolution,
    instance=instances.average_pools,
)


class _WindowRun(Struct, frozen=True, kw_only=True):
    """Consecutive windows along one axis with equal numbers of values.

    Attributes:
        start, size: of the values that they read.
        kernel: taps of each window inside the picture.
        begin, end: padding of their pool.
    """

    start: int
    size: int
    kernel: int
    begin: int = 0
    end: int = 0


def _runs_of_axis(windows: Windows, axis: int, size: int, inside: Array) -> list[_WindowRun]:
    """``inside`` is bool (windows, taps): which taps lie in the picture."""
    counts = inside.sum(axis=1)
    if counts.min() == counts.max():
        begin, end = windows.begin[axis], windows.end[axis]
        return [_WindowRun(start=0, size=size, kernel=windows.kernel[axis], begin=begin, end=end)]
    stride, dilation = windows.strides[axis], windows.dilations[axis]
    changes = np.flatnonzero((inside[1:] != inside[:-1]).any(axis=1)) + 1
    found = []
    for numbers in np.split(np.arange(len(inside)), changes):
        taps = np.flatnonzero(inside[numbers[0]])
        start = int(numbers[0]) * stride - windows.begin[axis] + int(taps[0]) * dilation
        read = (len(numbers) - 1) * stride + (len(taps) - 1) * dilation + 1
        found.append(_WindowRun(start=start, size=read, kernel=len(taps)))
    return found


def _average_by_parts(match: Match) -> Term | None:
    average, x, out = match.operator("average", AveragePool), match["x"], match.root
    windows, sizes = average.windows, x.shape[2:]
    counts = np.unique(average.counts(sizes)).astype(int).tolist()
    if x.dtype not in QUANTIZED or len(counts) == 1 or windows.rank > 2 or counts[0] == 0:
        return None
    if any(rounded_means(x.tensor, out.tensor, count, count) is None for count in counts):
        return None
    axes = [
        _runs_of_axis(windows, axis, sizes[axis], inside)
        for axis, inside in enumerate(windows.taps_inside(sizes))
    ]
    if prod(map(len, axes)) > _MOST_WINDOW_PARTS:
        return None

    def joined(chosen: tuple[_WindowRun, ...]) -> Term:
        axis = len(chosen)
        if axis < windows.rank:
            terms = [joined((*chosen, part)) for part in axes[axis]]
            return terms[0] if len(terms) == 1 else make(Concat(axis=2 + axis), *terms, like=out)
        starts = (0, 0, *(part.start for part in chosen))
        shape = (*x.shape[:2], *(part.size for part in chosen))
        data = x if shape == x.shape else make(Slice(starts=starts, sizes=shape, steps=(1,) * len(shape)), x)
        inner = replace(
            windows,
            kernel=tuple(part.kernel for part in chosen),
            begin=tuple(part.begin for part in chosen),
            end=tuple(part.end for part in chosen),
        )
        return make(replace(average, windows=inner), data, like=out)

    return joined(())


AVERAGE_BY_PARTS = Rule(
    name="average-by-parts",
    text="An average pool whose windows have different numbers of values becomes one pool for each kind of "
    "window, if all means round the same way.",
    pattern=op(AveragePool, tensor("x"), name="average"),
    replacement=_average_by_parts,
    instance=instances.padded_average_pools,
)


def _global_average_as_convolution(match: Match) -> Term | None:
    x, out = match["x"], match.root
    if x.dtype not in QUANTIZED:
        return None
    sizes = x.shape[2:]
    ones, zeros = (1,) * len(sizes), (0,) * len(sizes)
    windows = Windows(kernel=sizes, strides=ones, dilations=ones, begin=zeros, end=zeros)
    scale = match.operator("average", GlobalAveragePool).scale([x.tensor], out.tensor)
    return _sum_of_windows(x, windows, out, scale)


GLOBAL_AVERAGE_AS_CONVOLUTION = Rule(
    name="global-average-as-convolution",
    text="A global average becomes a depthwise convolution with ones.",
    pattern=op(GlobalAveragePool, tensor("x"), name="average"),
    replacement=_global_average_as_convolution,
    instance=instances.global_averages,
)


def _convolution_as_average(match: Match) -> Term | None:
    conv, x, out, weights = match.operator("conv", Conv), match["x"], match.root, match["weights"]
    quantization, windows = weights.quantization, conv.windows
    if quantization is None or x.dtype not in QUANTIZED or out.dtype != x.dtype:
        return None
    values = match.values("weights").astype(np.int32) - quantization.zeros_along(len(weights.shape))
    is_depthwise = conv.groups == x.shape[1] == weights.shape[0]
    covers = windows.extents == windows.kernel == x.shape[2:] and not any(windows.begin + windows.end)
    if not (is_depthwise and covers and windows.rank > 0 and (values == 1).all()):
        return None
    wanted = GlobalAveragePool().scale([x.tensor], out.tensor)
    if (conv.scales([x.tensor, weights.tensor], out.tensor) != wanted).any():
        return None
    return make(GlobalAveragePool(), x, like=out)


CONVOLUTION_AS_AVERAGE = Rule(
    name="convolution-as-average",
    text="A depthwise convolution of ones over the whole picture becomes a global average.",
    pattern=op(Conv, tensor("x"), constant("weights"), name="conv"),
    replacement=_convolution_as_average,
    instance=instances.convolutions_of_ones,
)


# ---- float32


def _bias_into_product(match: Match) -> Term | None:
    kind = Conv if isinstance(match.named["product"], Conv) else MatMul
    operator, added, out = match.operator("product", kind), match["added"], match.root
    rank, axis = len(out.shape), operator.result_axis(len(out.shape))
    channels = out.shape[axis]
    shape = (1,) * (rank - len(added.shape)) + added.shape
    along = tuple(channels if one == axis else 1 for one in range(rank))
    if out.dtype != "float32" or len(added.shape) > rank or shape not in {along, (1,) * rank}:
        return None
    bias = np.array(np.broadcast_to(match.values("added").reshape(-1), channels))
    return make(operator, match["x"], match["weights"], NewConstant(bias))


BIAS_INTO_PRODUCT = Rule(
    name="bias-into-product",
    text="The addition of a value per channel to a float32 product becomes its bias.",
    pattern=op(Add, op((Conv, MatMul), tensor("x"), constant("weights"), name="product"), constant("added")),
    replacement=_bias_into_product,
    instance=instances.products_with_added_constants,
    simplifies=True,
)


def _grid(values: Array) -> tuple[int, npt.NDArray[np.float64]] | None:
    """Return the exponent of the largest power of two that divides all values, and absolute quotients."""
    numbers = values.astype(np.float64)
    if not np.isfinite(numbers).all() or not numbers.any():
        return None
    fractions, exponents = np.frexp(numbers[numbers != 0])
    mantissas = np.abs(fractions * 2.0**24).astype(np.int64)
    exponent = int((exponents - 24 + np.log2(mantissas & -mantissas).astype(int)).min())
    return exponent, np.abs(numbers) * 2.0**-exponent


def _combined_weights(match: Match) -> Term | None:
    left, right, x = match.values("left"), match.values("right"), match["x"]
    dequantized = match.definition(x, Dequantize)
    grids = _grid(left), _grid(right)
    is_plain = left.ndim == right.ndim == 2 and match.root.dtype == "float32"
    has_factor = any(match.operator(name, MatMul).alpha != 1 for name in ("inner", "outer"))
    if dequantized is None or grids[0] is None or grids[1] is None or not is_plain or has_factor:
        return None
    source = dequantized[1][0]
    quantization = source.quantization
    if quantization is None or source.dtype not in QUANTIZED or not quantization.is_per_tensor:
        return None
    scale, bounds = quantization.scale[0], np.iinfo(source.dtype)
    most = max(bounds.max - quantization.zero[0], quantization.zero[0] - bounds.min)
    sums = most * (grids[0][1].sum(axis=0) @ grids[1][1])
    exponents = [round(np.log2(scale)), grids[0][0], grids[1][0]]
    is_safe = np.exp2(exponents[0]) == scale and abs(sum(exponents)) < 100 and max(map(abs, exponents)) < 60
    # the largest sum of magnitudes in x @ (left @ right), which bounds those of (x @ left) @ right
    if (
        not is_safe
        or (sums > _FLOAT32_EXACT_UP_TO).any()
        or (most * grids[0][1].sum(axis=0) > _FLOAT32_EXACT_UP_TO).any()
    ):
        return None
    product = (left.astype(np.float64) @ right.astype(np.float64)).astype(np.float32)
    return make(MatMul(), x, NewConstant(product))


COMBINED_WEIGHTS = Rule(
    name="combined-weights",
    text="Two float32 products with constants in sequence become one with the product of the constants, if "
    "all sums are exact.",
    pattern=op(
        MatMul, op(MatMul, tensor("x"), constant("left"), name="inner"), constant("right"), name="outer"
    ),
    replacement=_combined_weights,
    instance=instances.products_in_sequence,
)

PRODUCT_RULES: tuple[Rule, ...] = (
    BIAS_INTO_PRODUCT,
    SUM_OF_PRODUCTS,
    PRODUCT_OF_CONCAT,
    PAD_INTO_CONVOLUTION,
    COMBINED_WEIGHTS,
    MERGE_CONVOLUTIONS,
    MERGE_PRODUCTS,
    MERGE_ROWS,
    JOIN_GROUPS,
    SEPARATE_GROUPS,
    SPLIT_GROUPS,
    CONVOLUTION_AS_PRODUCT,
    PRODUCT_AS_CONVOLUTION,
    AVERAGE_AS_CONVOLUTION,
    GLOBAL_AVERAGE_AS_CONVOLUTION,
    CONVOLUTION_AS_AVERAGE,
)
