"""A convolution with split axes (``window_axes``): the remaining operator, and the views of its tensors.

If no axis remains, the operator is a matrix product.
"""

from typing import Any

from accel.base.records import replace
from accel.compiler.mappings.window_axes import AxisSplit
from accel.compiler.ops.conv2d import conv2d
from accel.compiler.ops.quantized_layers import Quantized
from accel.compiler.ops.workload import Workload, dense
from accel.image.tensor_view import View

Splits = tuple[AxisSplit, AxisSplit]
"""Splits of rows and columns."""

_BATCH = (1, 0, 0, 0, 0, 0, 0, 0)
_CHANNEL = (0, 0, 0, 1, 0, 0, 0, 0)
"""Coefficients of views. Their dimensions are batch, two strips, channel, two positions that become channels,
and two remaining positions."""


def split_convolution(workload: Workload, splits: Splits) -> Workload:
    """Return the remaining operator."""
    down, across = splits
    sizes = workload.parameters
    copies = down.block * across.block
    batch = sizes["N"] * down.strips * across.strips
    inputs, outputs = sizes["IC"] * down.input_channels * across.input_channels, sizes["OC"] * copies
    epilogue: dict[str, Any] = _epilogue(workload, copies, is_matrix=is_product(workload, splits))
    epilogue |= {"bias": workload.bias is not None}
    if is_product(workload, splits):
        return dense(batch, inputs, outputs, **epilogue)
    return conv2d(
        batch,
        inputs,
        down.size,
        across.size,
        outputs,
        (down.taps, across.taps),
        stride=(down.stride, across.stride),
        padding=(down.padding[0], across.padding[0], down.padding[1], across.padding[1]),
        dilation=(down.dilation, across.dilation),
        groups=sizes["groups"],
        **epilogue,
    )


def is_product(workload: Workload, splits: Splits) -> bool:
    return workload.parameters["groups"] == 1 and all(one.is_single_product for one in splits)


def _epilogue(workload: Workload, copies: int, *, is_matrix: bool) -> dict[str, Any]:
    """The layer has ``copies`` channels for each of the convolution.

    The pixels of a matrix are its rows, which have a residual each.
    """
    epilogue = workload.epilogue
    if isinstance(epilogue, Quantized):
        if epilogue.residual is not None and epilogue.residual.per_channel and is_matrix:
            residual = replace(epilogue.residual, per_channel=False)
            epilogue = replace(epilogue, residual=residual)
        if len(epilogue.scales) > 1 and copies > 1:
            scales = [scale for scale in epilogue.scales for _ in range(copies)]
            epilogue = replace(epilogue, scale=scales)
        return {"quantized": epilogue}
    return {name: getattr(epilogue, name) for name in ("residual", "relu", "shift", "clip", "operations")}


def convolution_views(workload: Workload, splits: Splits) -> dict[str, View]:
    """Return how the host packs each tensor."""
    down, across = splits
    views = {"data": _data_view(workload, splits), "weight": _weight_view(workload, splits)}
    has_blocks = down.block * across.block > 1
    if has_blocks:
        channels = workload.parameters["OC"]
        repeated = View(
            shape=(channels,),
            before=(0,),
            sizes=(channels, down.block, across.block),
            coefficients=((1, 0, 0),),
        )
        views |= {tensor.name: repeated for tensor in workload.channel_tensors}
    if has_blocks or down.strips * across.strips > 1 or is_product(workload, splits):
        views["out"] = _output_view(workload, splits)
        if workload.residual is not None:
            is_held = workload.residual.shape != workload.output.shape
            views["residual"] = _channel_view(workload, splits) if is_held else views["out"]
    return views


def _data_view(workload: Workload, splits: Splits) -> View:
    down, across = splits
    sizes = workload.parameters
    return View(
        shape=(sizes["N"], sizes["IC"], down.axis.size, across.axis.size),
        before=(0, 0, down.host_padding, across.host_padding),
        sizes=(
            *(sizes["N"], down.strips, across.strips),
            *(sizes["IC"], down.input_channels, across.input_channels),
            *(down.size, across.size),
        ),
        coefficients=(
            _BATCH,
            _CHANNEL,
            (0, down.length * down.step_stride, 0, 0, down.channel_spacing, 0, down.position_spacing, 0),
            (
                *(0, 0, across.length * across.step_stride, 0),
                *(0, across.channel_spacing, 0, across.position_spacing),
            ),
        ),
        fill=workload.epilogue.input_zero if isinstance(workload.epilogue, Quantized) else 0,
    )


def _weight_view(workload: Workload, splits: Splits) -> View:
    """Positions within a block take the place of strips."""
    down, across = splits
    sizes = workload.parameters
    columns = sizes["IC"] // sizes["groups"]

    def shift(split: AxisSplit) -> int:
        return -split.axis.stride if split.block > 1 else 0

    def tap_spacing(split: AxisSplit) -> int:
        return split.position_spacing if split.block > 1 else 1

    return View(
        shape=(sizes["OC"], columns, down.axis.taps, across.axis.taps),
        before=(0, 0, 0, 0),
        sizes=(
            *(sizes["OC"], down.block, across.block),
            *(columns, down.input_channels, across.input_channels),
            *(down.taps, across.taps),
        ),
        coefficients=(
            _BATCH,
            _CHANNEL,
            (0, shift(down), 0, 0, 1, 0, tap_spacing(down), 0),
            (0, 0, shift(across), 0, 0, 1, 0, tap_spacing(across)),
        ),
    )


def _channel_view(workload: Workload, splits: Splits) -> View:
    """Each strip and position repeats the residual of a channel."""
    assert workload.residual is not None
    down, across = splits
    sizes = workload.parameters
    return View(
        shape=workload.residual.shape,
        before=(0, 0, 0, 0),
        sizes=(sizes["N"], down.strips, across.strips, sizes["OC"], down.block, across.block, 1, 1),
        coefficients=(_BATCH, _CHANNEL, (0,) * len(_BATCH), (0,) * len(_BATCH)),
    )


def _output_view(workload: Workload, splits: Splits) -> View:
    down, across = splits
    sizes = workload.parameters
    return View(
        shape=workload.output.shape,
        before=(0, 0, 0, 0),
        sizes=(
            *(sizes["N"], down.strips, across.strips),
            *(sizes["OC"], down.block, across.block),
            *(down.length, across.length),
        ),
        coefficients=(
            _BATCH,
            _CHANNEL,
            (0, down.length * down.block, 0, 0, 1, 0, down.block, 0),
            (0, 0, across.length * across.block, 0, 0, 1, 0, across.block),
        ),
    )
