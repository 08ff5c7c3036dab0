"""Pooling as tensor expressions."""

from collections.abc import Iterator, Sequence
from itertools import groupby, product

from accel.compiler.expr import Condition, Const, Expr, Guarded, IterVar
from accel.compiler.mean import Mean, mean_of
from accel.compiler.sliding import Sliding, sliding, window
from accel.compiler.tensor import compute, placeholder, reduce_axis, sum
from accel.compiler.workload import Workload, check_sizes
from accel.errors import ShapeError


def avg_pool2d(
    N: int,
    C: int,
    H: int,
    W: int,
    kernel: int | tuple[int, ...],
    *,
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0,
    count_padding: bool = False,
) -> Workload:
    """Means over windows, each within 1 of the exact one.

    ``data`` is int8 (N, C, H, W), ``out`` int8 (N, C, OH, OW) with
    ``OH = (H + top + bottom - KH) // stride + 1``, and OW alike. How means are taken is
    ``workload.epilogue``, a :class:`~accel.compiler.mean.Mean`.

    Args:
        N: inputs in a batch.
        C, H, W: channels, height and width of an input.
        kernel: height and width of a window, one number if they are equal.
        stride: steps down and to the right; the kernel's size if not given.
        padding: zeros around each input: one number, (vertical, horizontal), or (top, left, bottom, right).
        count_padding: whether they count, so that every mean is over as many values.

    Raises:
        ShapeError: a size, stride or padding out of range, a padding as large as the kernel, a kernel larger
            than the padded input, or windows for whose mean there is no such factor.
    """
    check_sizes(N=N, C=C, H=H, W=W)
    slide = _pooling((H, W), kernel, stride, padding)
    (KH, KW), (OH, OW) = slide.kernel, slide.outputs
    rows, columns = ([KH] * OH, [KW] * OW) if count_padding else _inside(slide)
    mean = mean_of([a * b for a, b in product(set(rows), set(columns))])
    data = placeholder((N, C, H, W), name="data")
    dy, dx = reduce_axis((0, KH), name="dy"), reduce_axis((0, KW), name="dx")
    read = window(data, slide)
    sums = compute(
        (N, C, OH, OW),
        lambda n, o, y, x: sum(read[n, o, *slide.places((y, x), (dy, dx))], axis=(dy, dx)),
        name="out" if mean.is_empty else "S",
        dtype="int8" if mean.is_empty else None,
    )
    output = sums
    if not mean.is_empty:
        output = compute(
            (N, C, OH, OW),
            lambda n, o, y, x: mean.apply(sums[n, o, y, x], _factor(mean, (y, x), (rows, columns))),
            name="out",
            dtype="int8",
        )
    parameters = {
        "N": N,
        "C": C,
        "H": H,
        "W": W,
        **slide.to_dict(),
        "count_padding": count_padding,
    }
    return Workload(
        name="avg_pool2d", output=output, sums=sums, bias=None, epilogue=mean, parameters=parameters
    )


def global_avg_pool2d(N: int, C: int, H: int, W: int) -> Workload:
    """Means over whole inputs: :func:`avg_pool2d` with one window; ``out`` is int8 (N, C, 1, 1).

    Raises:
        ShapeError: a size out of range, or too many values for a mean within 1 of the exact one.
    """
    return avg_pool2d(N, C, H, W, (H, W))


def _pooling(
    size: tuple[int, int],
    kernel: int | tuple[int, ...],
    stride: int | tuple[int, ...] | None,
    padding: int | tuple[int, ...],
) -> Sliding:
    """Windows side by side if no stride is given.

    Raises:
        ShapeError: they are out of range, or one might not reach into the input.
    """
    slide = sliding(size, kernel, kernel if stride is None else stride, padding)
    for length, around in zip(slide.kernel, (slide.padding[::2], slide.padding[1::2]), strict=True):
        if max(around) >= length:
            raise ShapeError(
                f"padding is {max(around)} beside a kernel of {length}; windows must reach into the input"
            )
    return slide


def _inside(slide: Sliding) -> list[list[int]]:
    """How many elements of the input each window has, down and across."""
    found = []
    for d in range(2):
        starts = [n * slide.stride[d] - slide.padding[d] for n in range(slide.outputs[d])]
        found.append([min(start + slide.kernel[d], slide.size[d]) - max(start, 0) for start in starts])
    return found


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
