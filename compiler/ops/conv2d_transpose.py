"""Transposed convolutions as tensor expressions."""

from accel.base.errors import ShapeError
from accel.compiler.expr.scalar_expressions import Condition, Const, Expr, Guarded, IterVar
from accel.compiler.expr.tensor_expressions import Tensor, compute, placeholder, reduce_axis, sum
from accel.compiler.ops.epilogue_operations import Operations
from accel.compiler.ops.quantized_layers import Quantized
from accel.compiler.ops.sliding_window import pair, sides
from accel.compiler.ops.workload import (
    Workload,
    check_sizes,
    epilogue_of,
    input_of,
    parameters_of,
    with_epilogue,
)


def conv2d_transpose(
    N: int,
    IC: int,
    H: int,
    W: int,
    OC: int,
    kernel: int | tuple[int, ...],
    *,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    output_padding: int | tuple[int, ...] = 0,
    bias: bool = False,
    residual: bool = False,
    relu: bool = False,
    shift: int | None = None,
    clip: tuple[int, int] | None = None,
    operations: Operations = (),
    quantized: Quantized | None = None,
) -> Workload:
    """Return a transposed two-dimensional convolution: each input element adds its multiple of the kernel to
    the output. The kernels of adjacent inputs start ``stride`` apart.

    ``data`` is int8 (N, IC, H, W), ``weight`` int8 (IC, OC, KH, KW), ``out`` int8 (N, OC, OH, OW) with ``OH =
    (H - 1) * stride + KH + output_padding - top - bottom``, and OW alike. For example, ``conv2d_transpose(1,
    64, 7, 7, 32, 2, stride=2)`` has outputs (1, 32, 14, 14).

    Args:
        N, IC, H, W, OC, kernel: as in :func:`accel.conv2d`.
        stride: vertical and horizontal distance of adjacent inputs in the output.
        padding: rows and columns cut off the output, in the forms of :func:`accel.conv2d`.
        output_padding: rows added at the bottom and columns on the right of the output, fewer than the
            stride.
        bias, residual, relu, shift, clip, operations, quantized: as in :func:`accel.conv2d`.

    Raises:
        ConfigError: an operation is not declared.
        ShapeError: an argument is out of range, the output is empty, or sums are too long for int32.
    """
    N, IC, H, W, OC = check_sizes(N=N, IC=IC, H=H, W=W, OC=OC)
    KH, KW = pair("kernel", kernel)
    SY, SX = pair("stride", stride)
    top, left, bottom, right = sides(padding)
    below, right_side = pair("output_padding", output_padding, 0)
    if below >= SY or right_side >= SX:
        raise ShapeError(f"output_padding is {[below, right_side]}; it must be below the stride, {[SY, SX]}")
    OH = (H - 1) * SY + KH + below - top - bottom
    OW = (W - 1) * SX + KW + right_side - left - right
    if min(OH, OW) < 1:
        raise ShapeError(f"padding is {[top, left, bottom, right]}; it leaves an output of {OH} x {OW}")
    epilogue = epilogue_of(
        quantized,
        bias=bias,
        shift=shift,
        residual=residual,
        relu=relu,
        clip=clip,
        operations=operations,
        channels=OC,
    )
    data, weight = input_of(epilogue, (N, IC, H, W), "data"), placeholder((IC, OC, KH, KW), name="weight")
    c, dy, dx = (reduce_axis((0, n), name=name) for n, name in ((IC, "c"), (KH, "dy"), (KW, "dx")))
    spread = _spread_input(data, (OH + KH - 1, OW + KW - 1), (KH - 1 - top, KW - 1 - left), (SY, SX))
    parameters = {
        "N": N,
        "IC": IC,
        "H": H,
        "W": W,
        "OC": OC,
        "kernel": [KH, KW],
        "stride": [SY, SX],
        "padding": [top, left, bottom, right],
        "output_padding": [below, right_side],
        **parameters_of(epilogue, bias),
    }
    return with_epilogue(
        "conv2d_transpose",
        (N, OC, OH, OW),
        lambda n, o, y, x: sum(
            spread[n, c, y - dy + KH - 1, x - dx + KW - 1] * weight[c, o, dy, dx], axis=(c, dy, dx)
        ),
        epilogue,
        parameters,
        bias=bias,
    )


def _spread_input(
    data: Tensor, size: tuple[int, int], before: tuple[int, int], stride: tuple[int, int]
) -> Tensor:
    N, IC, *sizes = data.shape

    def element(n: IterVar, c: IterVar, y: IterVar, x: IterVar) -> Expr:
        conditions: list[Condition] = []
        places = []
        for axis, first, step, length in zip((y, x), before, stride, sizes, strict=True):
            place = axis - first
            places.append(place // step if step > 1 else place)
            if step > 1:
                conditions.append((place % step, Const(1)))
            conditions += [(Const(-1), places[-1]), (places[-1], Const(length))]
        return Guarded(data[n, c, places[0], places[1]], tuple(conditions))

    return compute((N, IC, *size), element, name="spread")
