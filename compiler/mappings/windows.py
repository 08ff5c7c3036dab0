"""Convolutions computed as other convolutions, or as matrix products.

What the parts of an axis become (:mod:`accel.compiler.mappings.axes`): strips join the batch, lanes the input
channels, places within a block the output channels. Where no axis is left, what remains is a matrix product.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from math import gcd
from typing import Any

from accel.base.errors import ShapeError
from accel.compiler.mappings.axes import Axis, Parts
from accel.compiler.mappings.mapping import PLAIN, Mapping, plain, unknown_mapping
from accel.compiler.ops.conv import conv2d
from accel.compiler.ops.quantized import Quantized
from accel.compiler.ops.sliding import sliding
from accel.compiler.ops.workload import Workload, dense
from accel.core.config import Config
from accel.image.view import View

Both = tuple[Parts, Parts]
"""Rows and columns of a picture."""

_PACKED = {"columns": (False, True), "rows": (True, False), "windows": (True, True)}
"""Which axes' taps are in the reduce axis."""
_PIXELS = "pixels"
_FORM = "'+' joins columns, rows or windows, blocks=YxX, strips=YxX; or it is plain, or pixels"


def axes_of(workload: Workload) -> tuple[Axis, Axis]:
    """The axes of a convolution's pictures."""
    sizes = workload.parameters
    slide = sliding(
        (sizes["H"], sizes["W"]), *(tuple(sizes[key]) for key in ("kernel", "stride", "padding", "dilation"))
    )
    top, left, bottom, right = slide.padding
    down, across = (
        Axis(
            size=slide.size[way],
            taps=slide.kernel[way],
            stride=slide.stride[way],
            dilation=slide.dilation[way],
            before=before,
            after=after,
            outputs=slide.outputs[way],
        )
        for way, (before, after) in enumerate(((top, bottom), (left, right)))
    )
    return down, across


def window_mappings(workload: Workload, config: Config) -> Iterator[Mapping]:
    """The mappings of a convolution that may be worth it on a machine, the plain one first."""
    yield plain(workload)
    for parts in _worthwhile(workload, config):
        try:
            yield mapped(workload, parts)
        except ShapeError:  # sums that would be too long
            continue


def named_mapping(workload: Workload, name: str) -> Mapping:
    """A convolution's mapping by its name.

    Raises:
        ScheduleError: there is none of that name, or it is impossible.
    """
    if name == PLAIN:
        return plain(workload)
    parts = _parsed(workload, name)
    if any(not one.is_possible for one in parts):
        raise unknown_mapping(name, workload, "strips would be empty, or blocks meet a dilation")
    try:
        return mapped(workload, parts)
    except ShapeError as error:
        raise unknown_mapping(name, workload, str(error)) from None


def _parsed(workload: Workload, name: str) -> Both:
    down, across = (Parts(axis=axis) for axis in axes_of(workload))
    if name == _PIXELS:
        return _pixels((down.axis, across.axis))
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
            raise unknown_mapping(name, workload, _FORM)
    return down, across


def name_of(parts: Both) -> str:
    """What a way of taking axes apart is called."""
    down, across = parts
    if parts == _pixels((down.axis, across.axis)):
        return _PIXELS
    words = [name for name, packed in _PACKED.items() if packed == (down.packed, across.packed)]
    for kind, sizes in (("blocks", (down.block, across.block)), ("strips", (down.strips, across.strips))):
        if sizes != (1, 1):
            words.append(f"{kind}={sizes[0]}x{sizes[1]}")
    return "+".join(words) or PLAIN


def entry_names(workload: Workload, config: Config, strips: int) -> list[str]:
    """The mappings, by name, that may be worth it where the host packs strips of lines."""
    down, across = axes_of(workload)
    return [
        name_of(
            (
                Parts(axis=down, strips=strips, packed=packed[0]),
                Parts(axis=across, packed=packed[1]),
            )
        )
        for packed, blocks in _reductions(workload, config, (down, across))
        if blocks == (1, 1)
    ]


def _pixels(axes: tuple[Axis, Axis]) -> Both:
    """Every output a strip of its own."""
    down, across = (Parts(axis=axis, strips=axis.outputs, packed=True) for axis in axes)
    return down, across


# --- which -----------------------------------------------------------------------------------------


def _worthwhile(workload: Workload, config: Config) -> Iterator[Both]:
    """Ways of taking axes apart that fill what the plain mapping leaves empty."""
    axes = axes_of(workload)
    found: dict[Both, None] = {}
    for strips in _strips(workload, config, axes):
        for packed, blocks in _reductions(workload, config, axes):
            down, across = (
                Parts(axis=axes[way], strips=strips[way], packed=packed[way], block=blocks[way])
                for way in range(2)
            )
            found[down, across] = None
    if workload.parameters["groups"] == 1 and config.batch > 1 and workload.parameters["N"] % config.batch:
        found[_pixels(axes)] = None
    for parts in found:
        if all(one.is_possible for one in parts) and any(not one.is_plain for one in parts):
            yield parts


def _strips(workload: Workload, config: Config, axes: tuple[Axis, Axis]) -> Iterator[tuple[int, int]]:
    """Strips that fill up the rows of an element."""
    yield 1, 1
    needed = config.batch // gcd(config.batch, workload.parameters["N"])
    if needed > 1:
        for down in range(needed, 0, -1):
            if needed % down == 0 and down <= axes[0].outputs and needed // down <= axes[1].outputs:
                yield down, needed // down


def _reductions(
    workload: Workload, config: Config, axes: tuple[Axis, Axis]
) -> Iterator[tuple[tuple[bool, bool], tuple[int, int]]]:
    """Which axes' taps are packed, and outputs to a block."""
    sizes = workload.parameters
    inputs, outputs = sizes["IC"] // sizes["groups"], sizes["OC"] // sizes["groups"]
    yield (False, False), (1, 1)
    empty = inputs % config.block_in != 0
    strided = any(axis.stride > 1 for axis in axes)
    for packed in _PACKED.values():
        some = [axis for axis, one in zip(axes, packed, strict=True) if one]
        if (empty and any(axis.taps > 1 for axis in some)) or (strided and all(packed)):
            yield packed, (1, 1)
    spare = config.block_out // outputs
    if spare > 1:
        for down in (2**n for n in range(spare.bit_length())):
            for across in (spare // down, spare // down // 2):
                if across and down * across > 1 and max(axes[0].dilation, axes[1].dilation) == 1:
                    yield (False, False), (min(down, axes[0].outputs), min(across, axes[1].outputs))


# --- how -------------------------------------------------------------------------------------------


def mapped(workload: Workload, parts: Both) -> Mapping:
    """A convolution with its axes taken apart.

    Raises:
        ShapeError: sums would be too long.
    """
    down, across = parts
    if down.is_plain and across.is_plain:
        return plain(workload)
    sizes = workload.parameters
    copies = down.block * across.block
    strips, lanes = down.strips * across.strips, down.lanes * across.lanes
    batch, inputs, outputs = sizes["N"] * strips, sizes["IC"] * lanes, sizes["OC"] * copies
    follows: dict[str, Any] = _epilogue(workload, copies) | {"bias": workload.bias is not None}
    if _is_product(workload, parts):
        made = dense(batch, inputs, outputs, **follows)
    else:
        made = conv2d(
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
            **follows,
        )
    return Mapping(name=name_of(parts), source=workload, workload=made, views=_views(workload, parts))


def _is_product(workload: Workload, parts: Both) -> bool:
    """Whether no axis is left."""
    return workload.parameters["groups"] == 1 and all((one.size, one.taps) == (1, 1) for one in parts)


def _epilogue(workload: Workload, copies: int) -> dict[str, Any]:
    """What follows the sums, with scales for each copy of a channel."""
    epilogue = workload.epilogue
    if isinstance(epilogue, Quantized):
        if len(epilogue.scales) > 1 and copies > 1:
            scales = [scale for scale in epilogue.scales for _ in range(copies)]
            epilogue = replace(epilogue, scale=scales)
        return {"quantized": epilogue}
    names = ("residual", "relu", "shift", "clip")
    return {name: getattr(epilogue, name) for name in names}


def _views(workload: Workload, parts: Both) -> dict[str, View]:
    """How the host arranges the tensors."""
    down, across = parts
    sizes = workload.parameters
    zero = workload.epilogue.input_zero if isinstance(workload.epilogue, Quantized) else 0
    columns = sizes["IC"] // sizes["groups"]
    # strip, lane and what is left, of each axis
    data = View(
        shape=(sizes["N"], sizes["IC"], down.axis.size, across.axis.size),
        before=(0, 0, down.before, across.before),
        sizes=(
            *(sizes["N"], down.strips, across.strips),
            *(sizes["IC"], down.lanes, across.lanes),
            *(down.size, across.size),
        ),
        coefficients=(
            (1, 0, 0, 0, 0, 0, 0, 0),
            (0, 0, 0, 1, 0, 0, 0, 0),
            (0, down.length * down.pitch, 0, 0, down.lane_step, 0, down.place_step, 0),
            (0, 0, across.length * across.pitch, 0, 0, across.lane_step, 0, across.place_step),
        ),
        fill=zero,
    )
    # place in a block, lane and tap that is left, of each axis
    weight = View(
        shape=(sizes["OC"], columns, down.axis.taps, across.axis.taps),
        before=(0, 0, 0, 0),
        sizes=(
            *(sizes["OC"], down.block, across.block),
            *(columns, down.lanes, across.lanes),
            *(down.taps, across.taps),
        ),
        coefficients=(
            (1, 0, 0, 0, 0, 0, 0, 0),
            (0, 0, 0, 1, 0, 0, 0, 0),
            (0, -_shift(down), 0, 0, 1, 0, down.place_step if down.block > 1 else 1, 0),
            (0, 0, -_shift(across), 0, 0, 1, 0, across.place_step if across.block > 1 else 1),
        ),
    )
    found = {"data": data, "weight": weight}
    if down.block * across.block > 1 and workload.bias is not None:
        found["bias"] = View(
            shape=(sizes["OC"],),
            before=(0,),
            sizes=(sizes["OC"], down.block, across.block),
            coefficients=((1, 0, 0),),
        )
    if down.strips * across.strips * down.block * across.block > 1 or _is_product(workload, parts):
        # strip, place in a block and step, of each axis
        out = View(
            shape=workload.output.shape,
            before=(0, 0, 0, 0),
            sizes=(
                *(sizes["N"], down.strips, across.strips),
                *(sizes["OC"], down.block, across.block),
                *(down.length, across.length),
            ),
            coefficients=(
                (1, 0, 0, 0, 0, 0, 0, 0),
                (0, 0, 0, 1, 0, 0, 0, 0),
                (0, down.length * down.block, 0, 0, 1, 0, down.block, 0),
                (0, 0, across.length * across.block, 0, 0, 1, 0, across.block),
            ),
        )
        found |= dict.fromkeys(("out", "residual") if workload.residual is not None else ("out",), out)
    return found


def _shift(parts: Parts) -> int:
    """By how many taps the window of an output in a block is behind that of the one in front of it."""
    return parts.axis.stride if parts.block > 1 else 0
