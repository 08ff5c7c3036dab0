"""Convolutions as tensor expressions."""

from accel.base.errors import ShapeError
from accel.compiler.expr.linear_expressions import simplify
from accel.compiler.expr.scalar_expressions import Expr, IterVar
from accel.compiler.expr.tensor_expressions import placeholder, reduce_axis, sum
from accel.compiler.ops.epilogue_operations import Operations
from accel.compiler.ops.quantized_layers import Quantized
from accel.compiler.ops.sliding_window import sliding, window
from accel.compiler.ops.workload import (
    Workload,
    check_sizes,
    epilogue_of,
    input_of,
    parameters_of,
    with_epilogue,
)


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
    groups: int = 1,
    bias: bool = False,
    residual: bool = False,
    relu: bool = False,
    shift: int | None = None,
    clip: tuple[int, int] | None = None,
    operations: Operations = (),
    quantized: Quantized | None = None,
) -> Workload:
    """Return a two-dimensional convolution (cross-correlation, as in networks) with an epilogue.

    ``data`` is int8 (N, IC, H, W), ``weight`` int8 (OC, IC // groups, KH, KW), ``out`` int8 (N, OC, OH, OW)
    with ``OH = (H + top + bottom - (KH - 1) * dilation - 1) // stride + 1``, and OW alike. Output channel
    ``o`` sums the input channels of group ``o // (OC // groups)``. ``groups=IC`` is depthwise. For example,
    ``conv2d(1, 64, 112, 112, 128, 3, stride=2, padding=1)`` has outputs (1, 128, 56, 56).

    Args:
        N: batch size.
        IC, H, W: channels, height and width of an input.
        OC: output channels.
        kernel: height and width of the kernel, or one number for both.
        stride: vertical and horizontal distance of windows.
        padding: zeros around each input: one number, (vertical, horizontal), or (top, left, bottom, right).
        dilation: distance of the input elements under adjacent kernel elements.
        groups: number of groups of input and output channels.
        bias: add an int32 tensor ``bias`` of shape (OC,).
        residual, relu, shift, clip, operations, quantized: as in :func:`accel.gemm`, for ``data`` and
            ``out``.

    Raises:
        ConfigError: an operation is not declared.
        ShapeError: an argument is out of range, the groups do not divide the channels, the kernel is larger
            than the padded input, or sums are too long for int32.
    """
    N, IC, H, W, OC, groups = check_sizes(N=N, IC=IC, H=H, W=W, OC=OC, groups=groups)
    for name, channels in (("IC", IC), ("OC", OC)):
        if channels % groups:
            raise ShapeError(f"{name} is {channels}; {groups} groups do not divide it")
    slide = sliding((H, W), kernel, stride, padding, dilation)
    (KH, KW), (OH, OW) = slide.kernel, slide.outputs
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
    columns, outputs = IC // groups, OC // groups
    data = input_of(epilogue, (N, IC, H, W), "data")
    weight = placeholder((OC, columns, KH, KW), name="weight")
    c, dy, dx = (reduce_axis((0, n), name=name) for n, name in ((columns, "c"), (KH, "dy"), (KW, "dx")))
    skip = slide.stride[0] if KH == 1 and slide.is_inside else 1
    read = window(data, slide, skip)

    def channel(o: IterVar) -> Expr:
        return c if groups == 1 else simplify(o // outputs * columns + c)

    parameters = {
        "N": N,
        "IC": IC,
        "H": H,
        "W": W,
        "OC": OC,
        **slide.to_dict(),
        "groups": groups,
        **parameters_of(epilogue, bias),
    }
    return with_epilogue(
        "conv2d",
        (N, OC, OH, OW),
        lambda n, o, y, x: sum(
            read[n, channel(o), *slide.places((y, x), (dy, dx), skip)] * weight[o, c, dy, dx],
            axis=(c, dy, dx),
        ),
        epilogue,
        parameters,
        bias=bias,
    )
