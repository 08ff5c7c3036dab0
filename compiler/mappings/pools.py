"""Pooling computed as pooling of more, smaller pictures, which fill the rows of an element.

Windows see one channel and one picture. So groups of channels can be pictures of their own, and so can strips
of a picture, which overlap by what windows share:

    channels=8           8 groups of a picture's channels lie side by side in the batch
    channels=4+strips=2x1    and the upper and the lower half of each
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from typing import Any

from accel.compiler.expr.quantized import bounds_of
from accel.compiler.mappings.axes import Parts
from accel.compiler.mappings.mapping import PLAIN, Mapping, plain, unknown_mapping
from accel.compiler.mappings.windows import axes_of
from accel.compiler.ops.pool import avg_pool2d, max_pool2d
from accel.compiler.ops.quantized import Quantized
from accel.compiler.ops.workload import Workload
from accel.core.config import Config
from accel.image.view import View

_MAXIMUM = "max_pool2d"
_FORM = "'+' joins channels=N and strips=YxX; or it is plain"


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """What a picture is cut into.

    Attributes:
        groups: of channels.
        down, across: its rows and columns, in strips.
    """

    groups: int
    down: Parts
    across: Parts

    @property
    def is_plain(self) -> bool:
        """Whether there is one piece."""
        return self.groups == 1 and self.down.is_plain and self.across.is_plain

    @property
    def name(self) -> str:
        """Of the mapping."""
        strips = self.down.strips, self.across.strips
        words = [f"channels={self.groups}"] * (self.groups > 1)
        words += [f"strips={strips[0]}x{strips[1]}"] * (strips != (1, 1))
        return "+".join(words) or PLAIN


def pool_mappings(workload: Workload, config: Config) -> Iterator[Mapping]:
    """The mappings of a pooling that may be worth it on a machine, the plain one first."""
    yield plain(workload)
    sizes = workload.parameters
    down, across = axes_of(workload)
    needed = config.batch // gcd(config.batch, sizes["N"])
    for groups in _divisors(needed):
        for rows in _divisors(needed // groups):
            columns = needed // groups // rows
            pieces = Pieces(
                groups=groups,
                down=Parts(axis=down, strips=rows),
                across=Parts(axis=across, strips=columns),
            )
            if not pieces.is_plain and not _hindered(workload, pieces):
                yield mapped(workload, pieces)


def named_pool_mapping(workload: Workload, name: str) -> Mapping:
    """A pooling's mapping by its name.

    Raises:
        ScheduleError: there is none of that name, or it is impossible.
    """
    if name == PLAIN:
        return plain(workload)
    groups, (rows, columns) = 1, (1, 1)
    for word in name.split("+"):
        if found := re.fullmatch(r"channels=([1-9][0-9]{0,5})", word):
            groups = int(found[1])
        elif found := re.fullmatch(r"strips=([1-9][0-9]{0,5})x([1-9][0-9]{0,5})", word):
            rows, columns = int(found[1]), int(found[2])
        else:
            raise unknown_mapping(name, workload, _FORM)
    down, across = axes_of(workload)
    pieces = Pieces(
        groups=groups, down=Parts(axis=down, strips=rows), across=Parts(axis=across, strips=columns)
    )
    if why := _hindered(workload, pieces):
        raise unknown_mapping(name, workload, why)
    return mapped(workload, pieces)


def _divisors(number: int) -> list[int]:
    """The largest first."""
    return [one for one in range(number, 0, -1) if number % one == 0]


def _hindered(workload: Workload, pieces: Pieces) -> str:
    """Why a picture cannot be cut like this; empty if it can."""
    channels = workload.parameters["C"]
    if (pieces.groups - 1) * -(-channels // pieces.groups) >= channels:
        return "groups of channels would be empty"
    if not (pieces.down.is_possible and pieces.across.is_possible):
        return "strips would be empty"
    cut = [one for one in (pieces.down, pieces.across) if not one.is_plain]
    if not workload.parameters.get("count_padding", True) and any(
        one.axis.before or one.axis.after for one in cut
    ):
        return "strips cut through padding that does not count"
    return ""


def mapped(workload: Workload, pieces: Pieces) -> Mapping:
    """A pooling whose pictures are cut into pieces."""
    if pieces.is_plain:
        return plain(workload)
    sizes, down, across = workload.parameters, pieces.down, pieces.across
    channels = -(-sizes["C"] // pieces.groups)
    shape = (sizes["N"] * pieces.groups * down.strips * across.strips, channels, down.size, across.size)
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
    return Mapping(name=pieces.name, source=workload, workload=made, views=_views(workload, pieces, fill))


def _views(workload: Workload, pieces: Pieces, fill: int) -> dict[str, View]:
    """How the host arranges both tensors."""
    sizes, down, across = workload.parameters, pieces.down, pieces.across
    channels = -(-sizes["C"] // pieces.groups)
    found = {}
    for name, places, steps in (
        ("data", (down.size, across.size), (down.pitch, across.pitch)),
        ("out", (down.length, across.length), (1, 1)),
    ):
        before = (down.before, across.before) if name == "data" else (0, 0)
        tensor = (down.axis.size, across.axis.size) if name == "data" else workload.output.shape[2:]
        # group of channels, strip and place, of each axis
        found[name] = View(
            shape=(sizes["N"], sizes["C"], *tensor),
            before=(0, 0, *before),
            sizes=(sizes["N"], pieces.groups, down.strips, across.strips, channels, *places),
            coefficients=(
                (1, 0, 0, 0, 0, 0, 0),
                (0, channels, 0, 0, 1, 0, 0),
                (0, 0, down.length * steps[0], 0, 0, 1, 0),
                (0, 0, 0, across.length * steps[1], 0, 0, 1),
            ),
            fill=fill,
        )
    return found
