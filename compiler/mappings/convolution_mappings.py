"""The mappings of convolutions: their names (docs/explain/mappings.md), and those that may be faster than the
plain one."""

import re
from collections.abc import Iterator
from math import gcd

from accel.base.errors import ShapeError
from accel.base.records import replace
from accel.compiler.mappings.mapped_convolution import Splits, convolution_views, split_convolution
from accel.compiler.mappings.mapping import PLAIN, OperatorMapping, mapping_error, plain_mapping
from accel.compiler.mappings.window_axes import AxisSplit, WindowAxis
from accel.compiler.ops.sliding_window import sliding
from accel.compiler.ops.workload import Workload
from accel.core.config import Config

_PACKED = {"columns": (False, True), "rows": (True, False), "windows": (True, True)}
"""Whether the taps down and across become input channels."""
_PIXELS = "pixels"
_SYNTAX = "'+' joins columns, rows or windows, blocks=YxX, strips=YxX; or it is plain, or pixels"


def window_axes_of(workload: Workload) -> tuple[WindowAxis, WindowAxis]:
    """Return the vertical and the horizontal axis of a convolution or a pooling."""
    sizes = workload.parameters
    slide = sliding(
        (sizes["H"], sizes["W"]), *(tuple(sizes[key]) for key in ("kernel", "stride", "padding", "dilation"))
    )
    top, left, bottom, right = slide.padding
    down, across = (
        WindowAxis(
            size=slide.size[axis],
            taps=slide.kernel[axis],
            stride=slide.stride[axis],
            dilation=slide.dilation[axis],
            before=before,
            after=after,
            outputs=slide.outputs[axis],
        )
        for axis, (before, after) in enumerate(((top, bottom), (left, right)))
    )
    return down, across


def window_mappings(workload: Workload, config: Config) -> Iterator[OperatorMapping]:
    yield plain_mapping(workload)
    for splits in _promising_splits(workload, config):
        try:
            yield split_mapping(workload, splits)
        except ShapeError:  # sums may overflow
            continue


def find_window_mapping(workload: Workload, name: str) -> OperatorMapping:
    if name == PLAIN:
        return plain_mapping(workload)
    splits = _parse(workload, name)
    if any(not one.is_possible for one in splits):
        raise mapping_error(name, workload, "strips would be empty, or blocks need a dilation of 1")
    try:
        return split_mapping(workload, splits)
    except ShapeError as error:
        raise mapping_error(name, workload, str(error)) from None


def split_mapping(workload: Workload, splits: Splits) -> OperatorMapping:
    if all(one.is_plain for one in splits):
        return plain_mapping(workload)
    return OperatorMapping(
        name=mapping_name(splits),
        source=workload,
        workload=split_convolution(workload, splits),
        views=convolution_views(workload, splits),
    )


def _parse(workload: Workload, name: str) -> Splits:
    down, across = (AxisSplit(axis=axis) for axis in window_axes_of(workload))
    if name == _PIXELS:
        return _pixel_splits((down.axis, across.axis))
    for word in name.split("+"):
        kind, _, sizes = word.partition("=")
        numbers = re.fullmatch(r"([0-9]{1,6})x([0-9]{1,6})", sizes)
        if word in _PACKED:
            of_rows, of_columns = _PACKED[word]
            down, across = replace(down, packed=of_rows), replace(across, packed=of_columns)
        elif kind in ("blocks", "strips") and numbers and min(int(n) for n in numbers.groups()) >= 1:
            rows, columns = map(int, numbers.groups())
            if kind == "blocks":
                down, across = replace(down, block=rows), replace(across, block=columns)
            else:
                down, across = replace(down, strips=rows), replace(across, strips=columns)
        else:
            raise mapping_error(name, workload, _SYNTAX)
    return down, across


def mapping_name(splits: Splits) -> str:
    down, across = splits
    if splits == _pixel_splits((down.axis, across.axis)):
        return _PIXELS
    words = [name for name, packed in _PACKED.items() if packed == (down.packed, across.packed)]
    for kind, sizes in (("blocks", (down.block, across.block)), ("strips", (down.strips, across.strips))):
        if sizes != (1, 1):
            words.append(f"{kind}={sizes[0]}x{sizes[1]}")
    return "+".join(words) or PLAIN


def strip_mapping_names(workload: Workload, config: Config, strips: int) -> list[str]:
    """Return the mappings with this number of strips of rows that may be the fastest."""
    down, across = window_axes_of(workload)
    return [
        mapping_name(
            (
                AxisSplit(axis=down, strips=strips, packed=packed[0]),
                AxisSplit(axis=across, packed=packed[1]),
            )
        )
        for packed, blocks in _packings(workload, config, (down, across))
        if blocks == (1, 1)
    ]


def _pixel_splits(axes: tuple[WindowAxis, WindowAxis]) -> Splits:
    down, across = (AxisSplit(axis=axis, strips=axis.outputs, packed=True) for axis in axes)
    return down, across


def _promising_splits(workload: Workload, config: Config) -> Iterator[Splits]:
    """Yield splits that fill blocks which the plain mapping leaves incomplete."""
    axes = window_axes_of(workload)
    found: dict[Splits, None] = {}
    for strips in _strip_counts(workload, config, axes):
        for packed, blocks in _packings(workload, config, axes):
            down, across = (
                AxisSplit(axis=axes[axis], strips=strips[axis], packed=packed[axis], block=blocks[axis])
                for axis in range(2)
            )
            found[down, across] = None
    if workload.parameters["groups"] == 1 and config.batch > 1 and workload.parameters["N"] % config.batch:
        found[_pixel_splits(axes)] = None
    for splits in found:
        if all(one.is_possible for one in splits) and any(not one.is_plain for one in splits):
            yield splits


def _strip_counts(
    workload: Workload, config: Config, axes: tuple[WindowAxis, WindowAxis]
) -> Iterator[tuple[int, int]]:
    """Yield numbers of strips, down and across, that fill the rows of an element."""
    yield 1, 1
    needed = config.batch // gcd(config.batch, workload.parameters["N"])
    if needed > 1:
        for down in range(needed, 0, -1):
            if needed % down == 0 and down <= axes[0].outputs and needed // down <= axes[1].outputs:
                yield down, needed // down


def _packings(
    workload: Workload, config: Config, axes: tuple[WindowAxis, WindowAxis]
) -> Iterator[tuple[tuple[bool, bool], tuple[int, int]]]:
    """Yield whether taps down and across become input channels, and sizes of blocks."""
    sizes = workload.parameters
    inputs, outputs = sizes["IC"] // sizes["groups"], sizes["OC"] // sizes["groups"]
    yield (False, False), (1, 1)
    has_incomplete_blocks = inputs % config.block_in != 0
    is_strided = any(axis.stride > 1 for axis in axes)
    for packed in _PACKED.values():
        packed_axes = [axis for axis, is_packed in zip(axes, packed, strict=True) if is_packed]
        has_taps = any(axis.taps > 1 for axis in packed_axes)
        if (has_incomplete_blocks and has_taps) or (is_strided and all(packed)):
            yield packed, (1, 1)
    spare = config.block_out // outputs
    if spare > 1:
        for down in (2**n for n in range(spare.bit_length())):
            for across in (spare // down, spare // down // 2):
                if across and down * across > 1 and max(axes[0].dilation, axes[1].dilation) == 1:
                    yield (False, False), (min(down, axes[0].outputs), min(across, axes[1].outputs))
