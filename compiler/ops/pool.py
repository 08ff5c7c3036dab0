"""Pooling as tensor expressions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from typing import Any

import numpy as np

from accel.base.arguments import check_flag
from accel.base.errors import ShapeError
from accel.compiler.expr.linear import simplify
from accel.compiler.expr.quantized import bounds_of
from accel.compiler.expr.scalar import INT32_MIN, Condition, Const, Expr, Guarded, IterVar, maximum, minimum
from accel.compiler.expr.tensor import compute, placeholder, reduce_axis, sum
from accel.compiler.ops.epilogue import Epilogue
from accel.compiler.ops.mean import Mean, mean_of
from accel.compiler.ops.quantized import Quantized
from accel.compiler.ops.sliding import Sliding, sliding, window
from accel.compiler.ops.workload import (
    Workload,
    check_sizes,
    epilogue_of,
    sums_and_result,
    with_epilogue,
)

ROWS = "rows"
"""What max pooling calls the maxima of each row of its windows."""


def sliding_of(workload: Workload) -> Sliding:
    """The windows of a pooling."""
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
    """Means over windows, each within 1 of the exact one, or as ``quantized`` says.

    ``data`` is int8 (N, C, H, W), ``out`` int8 (N, C, OH, OW) with
    ``OH = (H + top + bottom - (KH - 1) * dilation - 1) // stride + 1``, and OW alike. How means are taken is
    ``workload.epilogue``, a :class:`~accel.compiler.ops.mean.Mean`.

    Args:
        N: inputs in a batch.
        C, H, W: channels, height and width of an input.
        kernel: height and width of a window, one number if they are equal.
        stride: steps down and to the right; the kernel's size if not given.
        padding: zeros around each input: one number, (vertical, horizontal), or (top, left, bottom, right).
        dilation: distance of a window's elements.
        count_padding: whether they count, so that every mean is over as many values.
        quantized: scale and zero points, see :class:`~accel.compiler.ops.quantized.Quantized`; for machines
            with ``post=1``. The scale, one for all, is the input's over the output's and the number of
            values: ``x_scale / (y_scale * count)``.

    Raises:
        ShapeError: a size, stride, padding or dilation out of range, a kernel larger than the padded input,
            a window that sees nothing but padding, one for whose mean there is no such factor, or a flag that
            is no boolean; with ``quantized`` windows of several sizes.
    """
    N, C, H, W = check_sizes(N=N, C=C, H=H, W=W)
    count_padding = check_flag("count_padding", count_padding)
    slide = sliding((H, W), kernel, kernel if stride is None else stride, padding, dilation)
    inside = _inside(slide)
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
        return mean.apply(value, _factor(mean, (y, x), (rows, columns)))

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
    """Means by a scale, which is the same for all windows."""
    N, C, _, _ = sizes
    epilogue = epilogue_of(quantized, bias=False, channels=C)
    assert isinstance(epilogue, Quantized)
    if len(epilogue.scales) > 1:
        raise ShapeError(f"there are {len(epilogue.scales)} scales; means of all channels have one")
    if len(set(counts)) > 1:
        raise ShapeError(
            "windows of several sizes are quantized; one scale is for all: count_padding makes windows alike"
        )
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
    """Means over whole inputs: :func:`avg_pool2d` with one window; ``out`` is int8 (N, C, 1, 1).

    Args:
        N: inputs in a batch.
        C, H, W: channels, height and width of an input.
        quantized: as in :func:`avg_pool2d`; with the scale ``x_scale / (y_scale * H * W)`` it is ONNX's
            QLinearGlobalAveragePool.

    Raises:
        ShapeError: a size out of range, or too many values for a mean within 1 of the exact one.
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
    """Maxima over windows; padding does not count.

    ``data`` is int8 (N, C, H, W), ``out`` int8 (N, C, OH, OW), or both uint8, with
    ``OH = (H + top + bottom - (KH - 1) * dilation - 1) // stride + 1``, and OW alike. First the maxima of
    each row of a window are taken, then those of the rows.

    Args:
        N: inputs in a batch.
        C, H, W: channels, height and width of an input.
        kernel: height and width of a window, one number if they are equal.
        stride: steps down and to the right; the kernel's size if not given.
        padding: around each input: one number, (vertical, horizontal), or (top, left, bottom, right).
        dilation: distance of a window's elements.
        dtype: of both, ``int8`` or ``uint8``, which is for machines with ``post=1``. Zero points do not
            matter.

    Raises:
        ShapeError: a size, stride, padding or dilation out of range, a kernel larger than the padded input,
            a window that sees nothing but padding, or another type.
    """
    N, C, H, W = check_sizes(N=N, C=C, H=H, W=W)
    slide = sliding((H, W), kernel, kernel if stride is None else stride, padding, dilation)
    _inside(slide)
    OH, OW = slide.outputs
    bounds_of(dtype)
    data = placeholder((N, C, H, W), dtype, name="data")
    across = data
    if slide.kernel[1] > 1 and slide.kernel[0] > 1:
        across = compute(
            (N, C, H, OW), lambda n, o, y, x: _largest(lambda i: data[n, o, y, i], slide, 1, x), name=ROWS
        )

    def largest(n: IterVar, o: IterVar, y: IterVar, x: IterVar) -> Expr:
        if across is not data:
            return _largest(lambda i: across[n, o, i, x], slide, 0, y)
        if slide.kernel[0] == 1:
            return _largest(lambda i: data[n, o, y * slide.stride[0], i], slide, 1, x)
        return _largest(lambda i: data[n, o, i, x * slide.stride[1]], slide, 0, y)

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


@dataclass(frozen=True)
class Taps:
    """The elements of windows in one direction, as places relative to the window's first element's without
    padding.

    Attributes:
        first: where maxima start from.
        others: the rest.
        last: the place of the last window.
        whole: whether the first element is never in the padding; else it is the first of a window's that is
            in the input.
        own: whether no other window needs it, so that the maximum can take its place.
    """

    first: int
    others: tuple[int, ...]
    last: int
    whole: bool
    own: bool

    @classmethod
    def of(cls, slide: Sliding, way: int) -> "Taps":
        """Down (``way`` 0) or across (1)."""
        step = slide.stride[way]
        taps = [n * slide.dilation[way] - slide.padding[way] for n in range(slide.kernel[way])]
        last = (slide.outputs[way] - 1) * step
        whole = [tap for tap in taps if tap >= 0 and last + tap < slide.size[way]]
        own = [tap for tap in whole if not last or all((tap - n) % step for n in taps if n != tap)]
        first = (own or whole or taps)[0]
        others = tuple(tap for tap in taps if tap != first)
        return cls(first, others, last, first in whole, first in own)


def _largest(element: Callable[[Expr], Expr], slide: Sliding, way: int, axis: IterVar) -> Expr:
    """The largest element of a window down (``way`` 0) or across (1), those in the padding left out.

    It starts from one that is never in the padding and, if there is such a one, that no other window needs,
    so that it can be changed in place.
    """
    window = Taps.of(slide, way)
    last, size = window.last, slide.size[way]
    places = {tap: simplify(axis * slide.stride[way] + tap) for tap in (window.first, *window.others)}
    start = places[window.first]
    if not window.whole:  # the first one that is in the input
        apart = slide.dilation[way]
        start = start + maximum(0, (apart - 1 - start) // apart) * apart
        start = maximum(0, minimum(size - 1, start))
    value = element(start)
    for tap in window.others:
        before = ((Const(-1), places[tap]),) if tap < 0 else ()
        behind = ((places[tap], Const(size)),) if last + tap >= size else ()
        other = element(places[tap])
        conditions = (*before, *behind)
        value = maximum(value, Guarded(other, conditions, INT32_MIN) if conditions else other)
    return value


def _inside(slide: Sliding) -> tuple[list[int], list[int]]:
    """How many elements of the input each window has, down and across.

    Raises:
        ShapeError: one has none.
    """
    found = []
    for d in range(2):
        taps = np.arange(slide.kernel[d]) * slide.dilation[d] - slide.padding[d]
        places = np.arange(slide.outputs[d])[:, None] * slide.stride[d] + taps
        found.append(((places >= 0) & (places < slide.size[d])).sum(axis=1).tolist())
        if 0 in found[d]:
            raise ShapeError(
                f"padding is {list(slide.padding)}; with a kernel of {list(slide.kernel)} some window sees "
                f"nothing but padding"
            )
    return found[0], found[1]


def _factor(mean: Mean, axes: tuple[IterVar, IterVar], counts: tuple[list[int], list[int]]) -> Expr | int:
    """What the sum at some place is multiplied by: a constant, or a sum of constants of which one applies."""
    if len(mean.factors) == 1:
        return next(iter(mean.factors.values()))
    found: Expr | None = None
    for (rows, down), (columns, across) in product(*map(_runs, axes, counts)):
        piece = Guarded(Const(mean.factors[rows * columns]), (*down, *across))
        found = piece if found is None else found + piece
    assert found is not None
    return found


def _runs(axis: IterVar, counts: Sequence[int]) -> Iterator[tuple[int, tuple[Condition, ...]]]:
    """Runs of places with equal counts, each with the conditions for being in it."""
    begin = 0
    for count, places in groupby(counts):
        end = begin + len(list(places))
        before = ((Const(begin - 1), axis),) if begin else ()
        behind = ((axis, Const(end)),) if end < len(counts) else ()
        yield count, before + behind
        begin = end
