"""Convolutions as tensor expressions."""

from collections.abc import Sequence

from accel.compiler.epilogue import Epilogue
from accel.compiler.expr import Condition, Const, Expr, Guarded, IterVar
from accel.compiler.tensor import Tensor, compute, placeholder, reduce_axis, sum
from accel.compiler.workload import Workload, check_sizes
from accel.errors import ShapeError


def conv2d(
    N: int,
    IC: int,
    H: int,
    W: int,
    OC: int,
    kernel: int | tuple[int, ...],
    *,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    bias: bool = False,
    residual: bool = False,
    relu: bool = False,
    shift: int | None = None,
    clip: tuple[int, int] | None = None,
) -> Workload:
    """A two-dimensional convolution (cross-correlation, as networks have it) and an epilogue.

    ``data`` is int8 (N, IC, H, W), ``weight`` int8 (OC, IC, KH, KW), ``out`` int8 (N, OC, OH, OW) with
    ``OH = (H + top + bottom - (KH - 1) * dilation - 1) // stride + 1``, and OW alike.

    Args:
        N: inputs in a batch.
        IC, H, W: channels, height and width of an input.
        OC: channels of an output.
        kernel: its height and width, one number if they are equal.
        stride: steps down and to the right.
        padding: zeros around each input: one number, (vertical, horizontal), or
            (top, left, bottom, right).
        dilation: distance of the input's elements that neighbours in the kernel meet.
        bias: add an int32 tensor ``bias`` of shape (OC,).
        residual: add an int8 tensor ``residual`` of the shape of ``out``.
        relu, shift, clip: see :class:`~accel.compiler.epilogue.Epilogue`.

    Raises:
        ShapeError: a size, stride, padding, dilation, shift or clip out of range, a kernel larger than the
            padded input, or sums too long for int32.
    """
    check_sizes(N=N, IC=IC, H=H, W=W, OC=OC)
    KH, KW = _pair("kernel", kernel)
    SY, SX = _pair("stride", stride)
    DY, DX = _pair("dilation", dilation)
    top, left, bottom, right = _sides(padding)
    reach = (KH - 1) * DY + 1, (KW - 1) * DX + 1
    for name, size, length in (("high", H + top + bottom, reach[0]), ("wide", W + left + right, reach[1])):
        if length > size:
            raise ShapeError(f"the kernel is {length} {name}; the input with its padding is {size}")
    OH, OW = (H + top + bottom - reach[0]) // SY + 1, (W + left + right - reach[1]) // SX + 1
    epilogue = Epilogue(bias=bias, shift=shift, residual=residual, relu=relu, clip=clip)
    data, weight = placeholder((N, IC, H, W), name="data"), placeholder((OC, IC, KH, KW), name="weight")
    c, dy, dx = (reduce_axis((0, n), name=name) for n, name in ((IC, "c"), (KH, "dy"), (KW, "dx")))
    inside = not (top or left) and (OH - 1) * SY < H and (OW - 1) * SX + reach[1] <= W
    skip = SY if KH == 1 and inside else 1
    read = _window(data, (OH - 1) * (SY // skip) + reach[0], (OW - 1) * SX + reach[1], top, left, skip)
    sums = compute(
        (N, OC, OH, OW),
        lambda n, o, y, x: sum(
            read[n, c, _step(y, SY // skip) + _step(dy, DY), _step(x, SX) + _step(dx, DX)]
            * weight[o, c, dy, dx],
            axis=(c, dy, dx),
        ),
        name="out" if epilogue.is_empty else "S",
        dtype="int8" if epilogue.is_empty else None,
    )
    offset = placeholder((OC,), "int32", name="bias") if bias else None
    other = placeholder((N, OC, OH, OW), name="residual") if residual else None
    output = sums
    if not epilogue.is_empty:
        output = compute(
            (N, OC, OH, OW),
            lambda n, o, y, x: epilogue.apply(
                sums[n, o, y, x],
                None if offset is None else offset[o],
                None if other is None else other[n, o, y, x],
            ),
            name="out",
            dtype="int8",
        )
    parameters = {
        "N": N,
        "IC": IC,
        "H": H,
        "W": W,
        "OC": OC,
        "kernel": [KH, KW],
        "stride": [SY, SX],
        "padding": [top, left, bottom, right],
        "dilation": [DY, DX],
    } | epilogue.to_dict()
    return Workload(
        name="conv2d",
        output=output,
        sums=sums,
        bias=offset,
        residual=other,
        epilogue=epilogue,
        parameters=parameters,
    )


def _step(axis: IterVar, step: int) -> Expr:
    return axis if step == 1 else axis * step


def _window(data: Tensor, rows: int, columns: int, top: int, left: int, skip: int) -> Tensor:
    """The part of the padded input that is read, every ``skip``-th row of it; the input itself if it needs
    neither padding nor skipping."""
    N, IC, H, W = data.shape
    below, beside = max(0, (rows - 1) * skip + 1 - top - H), max(0, columns - left - W)
    if skip == 1 and not (top or left or below or beside):
        return data

    def element(n: IterVar, c: IterVar, y: IterVar, x: IterVar) -> Expr:
        conditions: list[Condition] = []
        for axis, before, behind, size in ((y, top, below, H), (x, left, beside, W)):
            conditions += [(Const(before - 1), axis)] * bool(before)
            conditions += [(axis, Const(before + size))] * bool(behind)
        row = y * skip if skip > 1 else y - top if top else y
        value = data[n, c, row, x - left if left else x]
        return Guarded(value, tuple(conditions)) if conditions else value

    return compute((N, IC, rows, columns), element, name="window")


def _pair(name: str, value: int | tuple[int, ...]) -> tuple[int, int]:
    """A number for both directions, or one for each.

    Raises:
        ShapeError: neither, or one below 1.
    """
    numbers = (value,) if type(value) is int else value
    if (
        not isinstance(numbers, Sequence)
        or len(numbers) not in (1, 2)
        or any(type(n) is not int or n < 1 for n in numbers)
    ):
        raise ShapeError(f"{name} is {value!r}; it must be a positive integer or two of them")
    return numbers[0], numbers[-1]


def _sides(padding: int | tuple[int, ...]) -> tuple[int, int, int, int]:
    """Padding at the top, left, bottom and right.

    Raises:
        ShapeError: not 1, 2 or 4 integers, or one below zero.
    """
    numbers = (padding,) if type(padding) is int else padding
    if (
        not isinstance(numbers, Sequence)
        or len(numbers) not in (1, 2, 4)
        or any(type(n) is not int or n < 0 for n in numbers)
    ):
        raise ShapeError(f"padding is {padding!r}; it must be 1, 2 or 4 integers, none negative")
    top, left, bottom, right = (tuple(numbers) * 4)[:4]
    return top, left, bottom, right
