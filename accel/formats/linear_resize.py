"""Linear Resizes by powers of two as depthwise convolutions, whose weights are exact in float32.

For example, a Resize by 2 with half-pixel centres has two phases along each axis: even rows are
``(x[k-1] + 3 x[k]) / 4``, and odd ones ``(3 x[k] + x[k+1]) / 4``. The first and the last row repeat beyond
the border.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np
from msgspec import Struct

from accel.base.errors import GraphError
from accel.formats.onnx_file import onnx
from accel.formats.onnx_foreign import foreign_operator
from accel.graph.average_rounding import rounded_means
from accel.graph.elementwise_operators import Dequantize, Quantize
from accel.graph.foreign_operator import Foreign, run_foreign
from accel.graph.graph import Graph
from accel.graph.graph_operator import saturate
from accel.graph.graph_tensor import QUANTIZED, Array, Quantization, Shape, Tensor
from accel.graph.movement_operators import Concat, DepthToSpace, Take
from accel.graph.product_operators import Conv
from accel.graph.window_geometry import Windows
from accel.rewriting.instance_builder import InstanceBuilder
from accel.rewriting.pattern import Match, NewConstant, Term, make, op, tensor
from accel.rewriting.rule import Rule

RESIZE_TITLE = "Resize"
_PICTURE_RANK = 4
_MAX_PHASES = 16
"""Convolutions of a Resize by four along both axes."""
_MOST_ROUNDINGS = 8
"""Float32 roundings of a value. ONNX Runtime's formula has five: dequantization, the product with a weight,
and three sums."""


class _Phase(Struct, frozen=True, kw_only=True):
    """Every ``factor``-th value of the result along one axis.

    Windows slide over the values ``indices``, which repeat at the border. One or two ``weights`` are divided
    by their sum.
    """

    indices: tuple[int, ...]
    weights: tuple[int, ...]


def _phases(size: int, factor: int, *, is_centred: bool) -> tuple[_Phase, ...]:
    """Each phase's weights have the same sum.

    Result ``i`` lies at ``(i + 0.5) / factor - 0.5`` with ``is_centred``, otherwise at ``i / factor``.
    """
    everything = tuple(range(size))
    if factor == 1:
        return (_Phase(indices=everything, weights=(1,)),)
    found = []
    for number in range(factor):
        # numerator and denominator of the distance from value k
        distance, whole = (2 * number + 1 - factor, 2 * factor) if is_centred else (number, factor)
        if not distance:
            found.append(_Phase(indices=everything, weights=(whole,)))
        elif distance < 0:
            found.append(_Phase(indices=(0, *everything), weights=(-distance, whole + distance)))
        else:
            indices = (*everything, size - 1)
            found.append(_Phase(indices=indices, weights=(whole - distance, distance)))
    return tuple(found)


def _as_matrix(phases: Sequence[_Phase], size: int) -> Array:
    """Return the weights along an axis, float64[result, values]."""
    matrix = np.zeros((size * len(phases), size))
    for number, phase in enumerate(phases):
        for at in range(size):
            for tap, weight in enumerate(phase.weights):
                matrix[at * len(phases) + number, phase.indices[at + tap]] += weight / sum(phase.weights)
    return matrix


@lru_cache(maxsize=256)
def resize_phases(operator: Foreign, shape: Shape) -> tuple[tuple[_Phase, ...], tuple[_Phase, ...]] | None:
    """Return the phases along rows and columns, or None unless they resize a picture of small random integers
    as ONNX Runtime does.
    """
    sizes = operator.sizes
    is_picture = operator.title == RESIZE_TITLE and len(shape) == len(sizes) == _PICTURE_RANK
    if not is_picture or shape[:2] != sizes[:2] or any(b % a for a, b in zip(shape, sizes, strict=True)):
        return None
    factors = [wanted // size for size, wanted in zip(shape[2:], sizes[2:], strict=True)]
    is_power = all(factor & (factor - 1) == 0 for factor in factors)
    if not is_power or not 1 < prod(factors) <= _MAX_PHASES:
        return None
    picture = np.random.default_rng(0).integers(-8, 9, shape).astype(np.float32)
    try:
        resized = run_foreign(operator.model, [picture])
    except GraphError:
        return None
    for is_centred in (True, False):
        rows, columns = (
            _phases(size, factor, is_centred=is_centred)
            for size, factor in zip(shape[2:], factors, strict=True)
        )
        expected = _as_matrix(rows, shape[2]) @ picture @ _as_matrix(columns, shape[3]).T
        if np.array_equal(expected, resized):
            return rows, columns
    return None


def exact_resize_factor(data: Tensor, out: Tensor, whole: int) -> np.float32 | None:
    """Return the factor that requantizes weighted sums to float32's results.

    ``whole`` is the sum of the weights. None if results depend on the order of operations, or if integers
    round some differently.
    """
    means = rounded_means(data, out, whole, whole, roundings=_MOST_ROUNDINGS)
    if means is None:
        return None
    sums, expected = means
    (scale, _), (out_scale, zero) = data.scale_and_zero, out.scale_and_zero
    factor = np.float32(float(scale) / (whole * float(out_scale)))
    found = saturate(sums.astype(np.float32) * factor, zero, out.dtype)
    return factor if np.array_equal(found, expected) else None


def weight_sum(rows: Sequence[_Phase], columns: Sequence[_Phase]) -> int:
    return sum(rows[0].weights) * sum(columns[0].weights)


def _have_single_scales(data: Tensor, out: Tensor) -> bool:
    known = [one.quantization for one in (data, out)]
    return data.dtype == out.dtype in QUANTIZED and all(
        one is not None and one.is_per_tensor for one in known
    )


def is_exact_resize(operator: Foreign, data: Tensor, out: Tensor) -> bool | None:
    """Whether phases give float32's results, or None without phases."""
    phases = resize_phases(operator, data.shape) if _have_single_scales(data, out) else None
    return None if phases is None else exact_resize_factor(data, out, weight_sum(*phases)) is not None


def _resize_by_phases(match: Match) -> Term | None:
    x, out = match["x"], match.root
    if not _have_single_scales(x.tensor, out.tensor):
        return None
    phases = resize_phases(match.operator("resize", Foreign), x.shape)
    if phases is None:
        return None
    rows, columns = phases
    factor = exact_resize_factor(x.tensor, out.tensor, weight_sum(rows, columns))
    if factor is None:
        return None
    terms = [[_convolved(match, down, across, factor) for across in columns] for down in rows]
    if len(rows) == len(columns):  # one move, so that layers store each element once
        joined = make(Concat(axis=1), *(term for line in terms for term in line), like=out)
        return make(DepthToSpace(block=len(rows)), joined)
    return _interleaved([_interleaved(line, 3, match) for line in terms], 2, match)


def _convolved(match: Match, down: _Phase, across: _Phase, factor: np.float32) -> Term:
    data: Term = match["x"]
    for axis, phase in ((2, down), (3, across)):
        if phase.indices != tuple(range(data.tensor.shape[axis])):
            data = make(Take(axis=axis, indices=phase.indices), data)
    channels = data.tensor.shape[1]
    weights = np.outer(down.weights, across.weights).astype(np.int8)
    kernel: Shape = (len(down.weights), len(across.weights))
    windows = Windows(kernel=kernel, strides=(1, 1), dilations=(1, 1), begin=(0, 0), end=(0, 0))
    constant = NewConstant(
        np.ascontiguousarray(np.broadcast_to(weights, (channels, 1, *kernel))),
        Quantization(scale=(1.0,), zero=(0,)),
    )
    conv = Conv(windows=windows, groups=channels, sum_scales=(float(factor),) * channels)
    return make(conv, data, constant, like=match.root)


def _interleaved(terms: Sequence[Term], axis: int, match: Match) -> Term:
    if len(terms) == 1:
        return terms[0]
    size = terms[0].tensor.shape[axis]
    indices = np.arange(len(terms) * size).reshape(len(terms), size).T.reshape(-1)
    joined = make(Concat(axis=axis), *terms, like=match.root)
    return make(Take(axis=axis, indices=tuple(indices.tolist())), joined)


def _instance(rng: np.random.Generator) -> Graph:
    """Cubic Resizes, other factors and equal scales do not match."""
    draw = InstanceBuilder(rng)
    shape = (draw.integer(1, 2), draw.integer(1, 3), draw.integer(1, 5), draw.integer(1, 5))
    x = draw.byte_input(shape)
    data = draw.tensors[x]
    factors = (draw.choice((1, 2, 2, 4)), draw.choice((1, 2, 2, 4, 3)))
    mode = draw.choice(("half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners"))
    kind = "linear" if draw.chance(0.9) else "cubic"
    resize = onnx().helper.make_node(
        RESIZE_TITLE, ["x0", "", "scales"], ["y"], mode=kind, coordinate_transformation_mode=mode
    )
    scales = np.array([1, 1, *factors], np.float32)
    number = draw.node(Dequantize(), x, dtype="float32")
    operator = foreign_operator(RESIZE_TITLE, [resize], {"scales": scales}, [draw.tensors[number]])
    resized = draw.emit(operator, [number], draw.fresh("t"), dtype="float32")
    scale = float(data.scale_and_zero[0]) * (1 if draw.chance(0.1) else 2 ** draw.rng.uniform(0, 1))
    quantization = Quantization.of(scale, draw.integer(0, 100))
    return draw.done(draw.node(Quantize(), resized, dtype=data.dtype, quantization=quantization))


RESIZE_BY_PHASES = Rule(
    name="resize-by-phases",
    text="A linear Resize of a quantized picture by powers of two becomes a depthwise convolution for each "
    "phase, if all sums round the same way.",
    pattern=op(Quantize, op(Foreign, op(Dequantize, tensor("x")), name="resize")),
    replacement=_resize_by_phases,
    instance=_instance,
)
