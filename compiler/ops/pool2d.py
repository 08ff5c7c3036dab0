"""Pooling as tensor expressions."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, product
from typing import Any

import numpy as np
from msgspec import Struct

from accel.base.arguments import check_flag
from accel.base.errors import ShapeError
from accel.compiler.expr.linear_expressions import simplify
from accel.compiler.expr.quantization import bounds_of
from accel.compiler.expr.scalar_expressions import (
    INT32_MIN,
    Condition,
    Const,
    Expr,
    Guarded,
    IterVar,
    maximum,
    minimum,
)
from accel.compiler.expr.tensor_expressions import compute, placeholder, reduce_axis, sum
from accel.compiler.ops.epilogue import Epilogue
from accel.compiler.ops.integer_mean import Mean, mean_of
from accel.compiler.ops.quantized_layers import Quantized
from accel.compiler.ops.sliding_window import Sliding, sliding, window
from accel.compiler.ops.workload import (
    Workload,
    check_sizes,
    epilogue_of,
    sums_and_result,
    with_epilogue,
)

ROWS = "rows"
"""Tensor of the maxima of each row of the windows."""


def sliding_of(workload: Workload) -> Sliding:
    sizes = workload.parameters
    pairs = {key: (sizes[key][0], sizes[key][1]) for key in ("kernel", "stride", "dilation")}
    top, left, bottom, right = sizes["padding"]
    return Sliding(size=(sizes["H"], sizes["W"]), padding=(top, left, bottom, right), **pairs)


def avg_pool2d(
    N: int,
    C: int,
    H: int,
    W: int,
    kernel: int | tuple[int, ...],
    *,
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    count_padding: bool = False,
    quantized: Quantized | None = None,
) -> Workload:
    """Return the means over windows, each within 1 of the exact mean, or computed by ``quantized``.

    ``data`` is int8 (N, C, H, W), ``out`` int8 (N, C, OH, OW) as in :func:`accel.conv2d`.
    ``workload.epilogue`` holds the integers of the means. For example, ``avg_pool2d(1, 64, 8, 8, 2)`` has
    outputs (1, 64, 4, 4).

    Args:
        N, H, W, padding: as in :func:`accel.conv2d`.
        C: channels.
        kernel: height and width of a window, or one number for both.
        stride: vertical and horizontal distance of windows, by default the kernel's size.
        dilation: distance of a window's elements.
        count_padding: whether zeros count, so that every mean has the same number of values.
        quantized: scale and zero points for machines with ``post=1``. The only scale is
            ``x_scale / (y_scale * count)`` for ``count`` values.

    Raises:
        ShapeError: an argument is out of range, the kernel is larger than the padded input, a window covers
            only padding, its mean has no factor, or ``quantized`` windows have several sizes.
    """
    N, C, H, W = check_sizes(N=N, C=C, H=H, W=W)
    count_padding = check_flag("count_padding", count_padding)
    slide = sliding((H, W), kernel, kernel if stride is None else stride, padding, dilation)
    inside = _elements_inside(slide)
    (KH, KW), (OH, OW) = slide.kernel, slide.outputs
    rows, columns = ([KH] * OH, [KW] * OW) if count_padding else inside
    parameters = {
        "N": N,
        "C": C,
        "H": H,
        "W": W,
        **slide.to_dict(),
        "count_padding": count_padding,
    }
    counts = [a * b for a, b in product(set(rows), set(columns))]
    if quantized is not None:
        return _quantized_mean((N, C, H, W), slide, counts, quantized, parameters)
    mean = mean_of(counts)
    data = placeholder((N, C, H, W), name="data")
    dy, dx = reduce_axis((0, KH), name="dy"), reduce_axis((0, KW), name="dx")
    read = window(data, slide)

    def after(value: Expr, at: tuple[IterVar, ...]) -> Expr:
        _, _, y, x = at
        return mean.apply(value, _mean_factor(mean, (y, x), (rows, columns)))

    sums, output = sums_and_result(
        (N, C, OH, OW),
        lambda n, o, y, x: sum(read[n, o, *slide.places((y, x), (dy, dx))], axis=(dy, dx)),
        None if mean.is_empty else after,
    )
    return Workload(
        name="avg_pool2d", output=output, sums=sums, bias=None, epilogue=mean, parameters=parameters
    )


def _quantized_mean(
    sizes: tuple[int, int, int, int],
    slide: Sliding,
    counts: Sequence[int],
    quantized: object,
    parameters: dict[str, Any],
) -> Workload:
    N, C, _, _ = sizes
    epilogue = epilogue_of(quantized, bias=False, channels=C)
    assert isinstance(epilogue, Quantized)
    if len(epilogue.scales) > 1:
        raise ShapeError(f"there are {len(epilogue.scales)} scales; means of all channels have one")
    if len(set(counts)) > 1:
        raise ShapeError("quantized windows have several sizes but one scale: count_padding makes them equal")
    (KH, KW), (OH, OW) = slide.kernel, slide.outputs
    read = window(epilogue.input(sizes, "data")[1], slide)
    dy, dx = reduce_axis((0, KH), name="dy"), reduce_axis((0, KW), name="dx")
    return with_epilogue(
        "avg_pool2d",
        (N, C, OH, OW),
        lambda n, o, y, x: sum(read[n, o, *slide.places((y, x), (dy, dx))], axis=(dy, dx)),
        epilogue,
        parameters | epilogue.to_dict(),
        bias=False,
    )


def global_avg_pool2d(N: int, C: int, H: int, W: int, *, quantized: Quantized | None = None) -> Workload:
    """Return the means over whole inputs: :func:`accel.avg_pool2d` with one window.

    ``out`` is int8 (N, C, 1, 1). For example, ``global_avg_pool2d(1, 512, 7, 7)`` averages 49 values.

    Args:
        N, C, H, W: as in :func:`accel.avg_pool2d`.
        quantized: as in :func:`accel.avg_pool2d`. With the scale ``x_scale / (y_scale * H * W)`` it is ONNX's
            QLinearGlobalAveragePool.

    Raises:
        ShapeError: a size is out of range, or no integers give a mean of this many values within 1.
    """
    return avg_pool2d(N, C, H, W, (H, W), quantized=quantized)


def max_pool2d(
    N: int,
    C: int,
    H: int,
    W: int,
    kernel: int | tuple[int, ...],
    *,
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    dtype: str = "int8",
) -> Workload:
    """Return the maxima over windows, in which padding does not count.

    ``data`` is int8 (N, C, H, W), ``out`` int8 (N, C, OH, OW), or both uint8, with OH and OW as in
    :func:`accel.conv2d`. For example, ``max_pool2d(1, 64, 112, 112, 3, stride=2, padding=1)`` has outputs (1,
    64, 56, 56). It computes the maxima of each row of a window, then those of the rows.

    Args:
        N, C, H, W, kernel, stride, padding, dilation: as in :func:`accel.avg_pool2d`.
        dtype: type of ``data`` and ``out``: ``int8``, or ``uint8`` for machines with ``post=1``.

    Raises:
        ShapeError: an argument is out of range, the kernel is larger than the padded input, or a window
            covers only padding.
    """
    N, C, H, W = check_sizes(N=N, C=C, H=H, W=W)
    slide = sliding((H, W), kernel, kernel if stride is None else stride, padding, dilation)
    _elements_inside(slide)
    OH, OW = slide.outputs
    bounds_of(dtype)
    data = placeholder((N, C, H, W), dtype, name="data")
    across = data
    if slide.kernel[1] > 1 and slide.kernel[0] > 1:
        across = compute(
            (N, C, H, OW),
            lambda n, o, y, x: _window_maximum(lambda i: data[n, o, y, i], slide, 1, x),
            name=ROWS,
        )

    def largest(n: IterVar, o: IterVar, y: IterVar, x: IterVar) -> Expr:
        if across is not data:
            return _window_maximum(lambda i: across[n, o, i, x], slide, 0, y)
        if slide.kernel[0] == 1:
            return _window_maximum(lambda i: data[n, o, y * slide.stride[0], i], slide, 1, x)
        return _window_maximum(lambda i: data[n, o, i, x * slide.stride[1]], slide, 0, y)

    output = compute((N, C, OH, OW), largest, name="out", dtype=dtype)
    parameters = {"N": N, "C": C, "H": H, "W": W, **slide.to_dict()}
    parameters |= {} if dtype == "int8" else {"dtype": dtype}
    return Workload(
        name="max_pool2d",
        output=output,
        sums=output,
        bias=None,
        epilogue=Epilogue(),
        parameters=parameters,
    )


class Taps(Struct, frozen=True):
    """Window elements in one direction, as offsets from a window's first element without padding.

    Attributes:
        whole: whether ``first`` is never in the padding. Otherwise maxima start from the first element inside
            the input.
        own: whether no other window needs ``first``, so that the maximum can overwrite it.
    """

    first: int
    others: tuple[int, ...]
    last: int
    whole: bool
    own: bool

    @classmethod
    def of(cls, slide: Sliding, way: int) -> "Taps":
        """Return the elements of windows, down (``way`` 0) or across (1)."""
        step = slide.stride[way]
        taps = [n * slide.dilation[way] - slide.padding[way] for n in range(slide.kernel[way])]
        last = (slide.outputs[way] - 1) * step
        whole = [tap for tap in taps if tap >= 0 and last + tap < slide.size[way]]
        own = [tap for tap in whole if not last or all((tap - n) % step for n in taps if n != tap)]
        first = (own or whole or taps)[0]
        others = tuple(tap for tap in taps if tap != first)
        return cls(first, others, last, first in whole, first in own)


def _window_maximum(element: Callable[[Expr], Expr], slide: Sliding, way: int, axis: IterVar) -> Expr:
    """Return the largest element of a window, down (``way`` 0) or across (1), without padding."""
    window = Taps.of(slide, way)
    last, size = window.last, slide.size[way]
    places = {tap: simplify(axis * slide.stride[way] + tap) for tap in (window.first, *window.others)}
    start = places[window.first]
    if not window.whole:
        apart = slide.dilation[way]
        start = start + maximum(0, (apart - 1 - start) // apart) * apart
        start = maximum(0, minimum(size - 1, start))
    value = element(start)
    for tap in window.others:
        before = ((Const(-1), places[tap]),) if tap < 0 else ()
        after_end = ((places[tap], Const(size)),) if last + tap >= size else ()
        other = element(places[tap])
        conditions = (*before, *after_end)
        value = maximum(value, Guarded(other, conditions, INT32_MIN) if conditions else other)
    return value


def _elements_inside(slide: Sliding) -> tuple[list[int], list[int]]:
    found = []
    for d in range(2):
        taps = np.arange(slide.kernel[d]) * slide.dilation[d] - slide.padding[d]
        places = np.arange(slide.outputs[d])[:, None] * slide.stride[d] + taps
        found.append(((places >= 0) & (places < slide.size[d])).sum(axis=1).tolist())
        if 0 in found[d]:
            raise ShapeError(
                f"padding is {list(slide.padding)}; with a kernel of {list(slide.kernel)} some window "
                f"covers only padding"
            )
    return found[0], found[1]


def _mean_factor(
    mean: Mean, axes: tuple[IterVar, IterVar], counts: tuple[list[int], list[int]]
) -> Expr | int:
    """Return the multiplier at a position: a constant, or a sum of guarded constants of which one applies."""
    if len(mean.factors) == 1:
        return next(iter(mean.factors.values()))
    found: Expr | None = None
    for (rows, down), (columns, across) in product(*map(_runs, axes, counts)):
        piece = Guarded(Const(mean.factors[rows * columns]), (*down, *across))
        found = piece if found is None else found + piece
    assert found is not None
    return found


def _runs(axis: IterVar, counts: Sequence[int]) -> Iterator[tuple[int, tuple[Condition, ...]]]:
    begin = 0
    for count, places in groupby(counts):
        end = begin + len(list(places))
        before = ((Const(begin - 1), axis),) if begin else ()
        after_end = ((axis, Const(end)),) if end < len(counts) else ()
        yield count, before + after_end
        begin = end
