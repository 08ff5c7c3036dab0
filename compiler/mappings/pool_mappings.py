"""Mappings of pooling: smaller pictures that fill the rows of an element.

A window sees one channel of one picture. So groups of channels can become pictures, and so can strips of a
picture, which overlap by the positions that windows share. For example, ``channels=4+strips=2x1`` makes 4
groups, and the upper and lower half of each.
"""

import re
from collections.abc import Iterator
from math import gcd
from typing import Any

from msgspec import Struct

from accel.compiler.expr.quantization import bounds_of
from accel.compiler.mappings.convolution_mappings import window_axes_of
from accel.compiler.mappings.mapping import PLAIN, OperatorMapping, mapping_error, plain_mapping
from accel.compiler.mappings.window_axes import AxisSplit
from accel.compiler.ops.pool2d import avg_pool2d, max_pool2d
from accel.compiler.ops.quantized_layers import Quantized
from accel.compiler.ops.workload import Workload
from accel.core.config import Config
from accel.image.tensor_view import View

_MAXIMUM = "max_pool2d"
_SYNTAX = "'+' joins channels=N and strips=YxX; or it is plain"


class PictureSplit(Struct, frozen=True, kw_only=True):
    """A picture as groups of channels, and strips of rows and columns."""

    groups: int
    down: AxisSplit
    across: AxisSplit

    @property
    def is_plain(self) -> bool:
        return self.groups == 1 and self.down.is_plain and self.across.is_plain

    @property
    def name(self) -> str:
        strips = self.down.strips, self.across.strips
        words = [f"channels={self.groups}"] * (self.groups > 1)
        words += [f"strips={strips[0]}x{strips[1]}"] * (strips != (1, 1))
        return "+".join(words) or PLAIN


def pool_mappings(workload: Workload, config: Config) -> Iterator[OperatorMapping]:
    yield plain_mapping(workload)
    needed = config.batch // gcd(config.batch, workload.parameters["N"])
    for groups in _divisors(needed):
        for rows in _divisors(needed // groups):
            split = _picture_split(workload, groups, (rows, needed // groups // rows))
            if not split.is_plain and not _obstacle(workload, split):
                yield _split_mapping(workload, split)


def find_pool_mapping(workload: Workload, name: str) -> OperatorMapping:
    """Return a mapping by name."""
    if name == PLAIN:
        return plain_mapping(workload)
    groups, strips = 1, (1, 1)
    for word in name.split("+"):
        if found := re.fullmatch(r"channels=([1-9][0-9]{0,5})", word):
            groups = int(found[1])
        elif found := re.fullmatch(r"strips=([1-9][0-9]{0,5})x([1-9][0-9]{0,5})", word):
            strips = int(found[1]), int(found[2])
        else:
            raise mapping_error(name, workload, _SYNTAX)
    split = _picture_split(workload, groups, strips)
    if obstacle := _obstacle(workload, split):
        raise mapping_error(name, workload, obstacle)
    return _split_mapping(workload, split)


def _picture_split(workload: Workload, groups: int, strips: tuple[int, int]) -> PictureSplit:
    down, across = window_axes_of(workload)
    return PictureSplit(
        groups=groups,
        down=AxisSplit(axis=down, strips=strips[0]),
        across=AxisSplit(axis=across, strips=strips[1]),
    )


def _divisors(number: int) -> list[int]:
    return [one for one in range(number, 0, -1) if number % one == 0]


def _obstacle(workload: Workload, split: PictureSplit) -> str:
    """Return why a picture cannot be split like this, or an empty text."""
    channels = workload.parameters["C"]
    if (split.groups - 1) * -(-channels // split.groups) >= channels:
        return "groups of channels would be empty"
    if not (split.down.is_possible and split.across.is_possible):
        return "strips would be empty"
    cut = [one for one in (split.down, split.across) if not one.is_plain]
    counts_padding = workload.parameters.get("count_padding", True)
    if not counts_padding and any(one.axis.before or one.axis.after for one in cut):
        return "strips cut through padding that does not count"
    return ""


def _split_mapping(workload: Workload, split: PictureSplit) -> OperatorMapping:
    if split.is_plain:
        return plain_mapping(workload)
    sizes, down, across = workload.parameters, split.down, split.across
    channels = -(-sizes["C"] // split.groups)
    pictures = sizes["N"] * split.groups * down.strips * across.strips
    shape = pictures, channels, down.size, across.size
    window: dict[str, Any] = {
        "kernel": tuple(sizes["kernel"]),
        "stride": tuple(sizes["stride"]),
        "dilation": tuple(sizes["dilation"]),
        "padding": (down.padding[0], across.padding[0], down.padding[1], across.padding[1]),
    }
    if workload.name == _MAXIMUM:
        dtype = workload.output.dtype
        made = max_pool2d(*shape, **window, dtype=dtype)
        fill = bounds_of(dtype)[0]
    else:
        quantized = workload.epilogue if isinstance(workload.epilogue, Quantized) else None
        made = avg_pool2d(*shape, **window, count_padding=sizes["count_padding"], quantized=quantized)
        fill = 0 if quantized is None else quantized.input_zero
    return OperatorMapping(
        name=split.name, source=workload, workload=made, views=_views(workload, split, fill)
    )


def _views(workload: Workload, split: PictureSplit, fill: int) -> dict[str, View]:
    sizes, down, across = workload.parameters, split.down, split.across
    channels = -(-sizes["C"] // split.groups)

    def view(
        before: tuple[int, int],
        picture: tuple[int, ...],
        positions: tuple[int, int],
        strides: tuple[int, int],
    ) -> View:
        """Dimensions are batch, group, two strips, channel and two positions."""
        return View(
            shape=(sizes["N"], sizes["C"], *picture),
            before=(0, 0, *before),
            sizes=(sizes["N"], split.groups, down.strips, across.strips, channels, *positions),
            coefficients=(
                (1, 0, 0, 0, 0, 0, 0),
                (0, channels, 0, 0, 1, 0, 0),
                (0, 0, down.length * strides[0], 0, 0, 1, 0),
                (0, 0, 0, across.length * strides[1], 0, 0, 1),
            ),
            fill=fill,
        )

    return {
        "data": view(
            (down.host_padding, across.host_padding),
            (down.axis.size, across.axis.size),
            (down.size, across.size),
            (down.step_stride, across.step_stride),
        ),
        "out": view((0, 0), workload.output.shape[2:], (down.length, across.length), (1, 1)),
    }
