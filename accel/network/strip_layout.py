"""Layouts of pictures between layers: which lines lie in which rows of elements.

An element of an activation is a matrix of ``batch`` rows by one block of channels. A plain picture fills one
row of each element. Otherwise each of its strips lies in a separate row:

    element (block, line, column), row strip:  pixel (strip * lines + line - halo_above, column)

For example, 16 lines in 8 strips are 2 lines per strip. Row 3 of line 1 has a pixel of line 3 * 2 + 1 = 7.

For higher windows, a layout can repeat halo lines of neighbouring strips and hold padding.

A *repeated* layout holds the same picture in the rows of all strips, for example a factor of each channel.

A *transposed* layout holds transposed elements in the order (line, column, block). Loaded as weights, they
are a matrix of pixels by channels, and a product can sum over pixels.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.records import replace
from accel.core.config import Config
from accel.image.image_tensor import ImageTensor

_Integers = npt.NDArray[np.int64]


class StripLayout(Struct, frozen=True, kw_only=True):
    """How the lines of a picture lie in elements.

    Attributes:
        strips: 1 for a plain picture.
        fill: value of halo lines outside the picture.
        shift: added to bytes of transposed elements: -128 turns uint8 into int8.
    """

    strips: int
    lines: int
    halo_above: int = 0
    halo_below: int = 0
    fill: int = 0
    transposed: bool = False
    shift: int = 0
    repeated: bool = False

    @property
    def _without_halo(self) -> tuple[object, ...]:
        return self.strips, self.lines, self.transposed, self.shift, self.repeated

    @property
    def height(self) -> int:
        return self.halo_above + self.lines + self.halo_below

    @property
    def is_plain(self) -> bool:
        return self.strips == 1 and not self.halo_above and not self.halo_below and not self.transposed

    @property
    def _has_halo(self) -> bool:
        return bool(self.halo_above or self.halo_below)

    def contains(self, other: "StripLayout") -> bool:
        """Whether this layout has all lines of another one in the same rows."""
        return (
            self._without_halo == other._without_halo
            and self.halo_above >= other.halo_above
            and self.halo_below >= other.halo_below
            and (self.fill == other.fill or not other._has_halo)
        )

    def __or__(self, other: "StripLayout") -> "StripLayout | None":
        fills_differ = self._has_halo and other._has_halo and self.fill != other.fill
        if self._without_halo != other._without_halo or fills_differ:
            return None
        return replace(
            self,
            halo_above=max(self.halo_above, other.halo_above),
            halo_below=max(self.halo_below, other.halo_below),
            fill=self.fill if self._has_halo else other.fill,
        )

    def __str__(self) -> str:
        """Network files hold these texts, for example ``plain`` or ``8 strips, 1 above, 1 below``."""
        if self.is_plain:
            return "plain"
        halos = ((self.halo_above, "above"), (self.halo_below, "below"))
        texts = [f"{lines} {where}" for lines, where in halos if lines > 0]
        kinds = [text for text, given in (("turned", self.transposed), ("repeated", self.repeated)) if given]
        return ", ".join([f"{self.strips} strips", *texts, *kinds])


class PictureSize(Struct, frozen=True, kw_only=True):
    """The size of a tensor in elements. Each picture of the batch has its own rows."""

    pictures: int
    blocks: int
    height: int
    width: int

    def elements(self, layout: StripLayout) -> int:
        return self.blocks * layout.height * self.width


def merge_layouts(
    written: StripLayout, read: Sequence[StripLayout], *, plain: StripLayout | None
) -> tuple[StripLayout, list[StripLayout]]:
    """Find few layouts that contain all read ones."""
    first, others = written, list[StripLayout]()
    for one in read:
        joined = first | one
        if joined is not None:
            first = joined
            continue
        for at, other in enumerate(others):
            joined = other | one
            if joined is not None:
                others[at] = joined
                break
        else:
            others.append(replace(one, halo_below=max(one.halo_below, 0)))
    if plain is not None and plain not in (first, *others):
        others.append(plain)
    return first, others


class LayerLayouts(Struct, frozen=True, kw_only=True):
    """The layouts of a layer in strips.

    Attributes:
        reads: layouts of operands that the host does not pack.
        plain_output: the result of the same layer without strips.
    """

    mapping: str
    reads: Mapping[str, StripLayout]
    writes: StripLayout
    plain_output: ImageTensor


def picture_size(tensor: ImageTensor, config: Config) -> PictureSize | None:
    """Return None unless the tensor's elements are plain pictures."""
    packed, shape = tensor.layout.packed, tensor.shape
    if len(packed) != 6 or len(shape) != 4:
        return None
    size = PictureSize(pictures=shape[0], blocks=packed[1], height=packed[2], width=packed[3])
    plain = StripLayout(strips=1, lines=shape[2])
    return size if has_layout(tensor, size, plain, config.batch, config.block_out) else None


def element_positions(size: PictureSize, inner: StripLayout, outer: StripLayout) -> _Integers:
    """Return positions of one layout's elements in a layout that contains it, int64[elements].

    Args:
        inner: may end before the strip does, with a negative ``halo_below``.
    """
    block, line, column = np.ogrid[: size.blocks, : inner.height, : size.width]
    outer_line = line - inner.halo_above + outer.halo_above
    positions = (block * outer.height + outer_line) * size.width + column
    return np.asarray(positions, dtype=np.int64).reshape(-1)


def has_layout(tensor: ImageTensor, size: PictureSize, layout: StripLayout, rows: int, columns: int) -> bool:
    packed = (1, size.blocks, layout.height, size.width, rows, columns)
    return (
        tensor.layout.packed == packed
        and tensor.layout.element_dims == 2
        and tensor.widening is None
        and tensor.preparation is None
        and np.dtype(tensor.dtype).itemsize == 1
    )
