"""Layouts of pictures between layers: what the rows of an element hold.

An element of an activation is a matrix of ``batch`` rows by a block of channels. A picture by itself fills
one of these rows. Cut into strips, which lie in rows of the same elements, it fills as many as there are
strips:

    element (block, line, column), row strip:  pixel (strip * lines + line - above, column)

Windows that are higher than a line see lines of the neighbouring strips. A layout can therefore have such
lines twice, above and below each strip, and what a picture is padded with around it.

A *turned* layout has these elements transposed, in the order (line, column, block). Loaded as weights, they
are a matrix of pixels by channels, whose columns a product can sum up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from accel.core.config import Config
from accel.image.tensor import ImageTensor

_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a picture lies in elements.

    Attributes:
        strips: of its lines, one behind the other; 1 for the picture as it is.
        lines: of a strip.
        above, below: lines of its neighbours that lie with a strip, too.
        fill: the value that stands for lines beyond the picture, where there are any.
        turned: whether elements are transposed.
        shift: what is added to each byte of transposed ones, as to a uint8 that is to be read as int8.
    """

    strips: int
    lines: int
    above: int = 0
    below: int = 0
    fill: int = 0
    turned: bool = False
    shift: int = 0

    @property
    def _strips(self) -> tuple[object, ...]:
        """What layouts have in common of which one can hold the other."""
        return self.strips, self.lines, self.turned, self.shift

    @property
    def height(self) -> int:
        """Lines of a strip with those of its neighbours."""
        return self.above + self.lines + self.below

    @property
    def is_plain(self) -> bool:
        """Whether it is the picture as it is."""
        return self.strips == 1 and not self.above and not self.below and not self.turned

    def holds(self, other: "Layout") -> bool:
        """Whether it has all lines of another one, in the same rows."""
        return (
            self._strips == other._strips
            and self.above >= other.above
            and self.below >= other.below
            and (self.fill == other.fill or not (other.above or other.below))
        )

    def __or__(self, other: "Layout") -> "Layout | None":
        """The layout that holds both; None where none does."""
        mine, theirs = (bool(one.above or one.below) for one in (self, other))
        if self._strips != other._strips or (mine and theirs and self.fill != other.fill):
            return None
        return replace(
            self,
            above=max(self.above, other.above),
            below=max(self.below, other.below),
            fill=self.fill if mine else other.fill,
        )

    def __str__(self) -> str:
        """As ``plain``, ``8 strips``, ``8 strips, 1 above, 1 below`` or ``8 strips, turned``."""
        if self.is_plain:
            return "plain"
        around = [f"{n} {where}" for n, where in ((self.above, "above"), (self.below, "below")) if n > 0]
        return ", ".join([f"{self.strips} strips", *around, *(["turned"] if self.turned else [])])


@dataclass(frozen=True, kw_only=True)
class Picture:
    """The size of a tensor in elements.

    Attributes:
        pictures: in the batch; they have rows of their own.
        blocks: of channels.
        height, width: of a picture, in pixels.
    """

    pictures: int
    blocks: int
    height: int
    width: int

    def elements(self, layout: Layout) -> int:
        """Elements that it takes in a layout."""
        return self.blocks * layout.height * self.width


def layouts(makes: Layout, wanted: Sequence[Layout], *, plain: Layout | None) -> tuple[Layout, list[Layout]]:
    """The layouts that a tensor gets.

    Args:
        makes: that its layer writes.
        wanted: that others take.
        plain: the picture as it is, where somebody needs that, too.

    Returns:
        The one that is written, with lines above and below its strips, and those that are made of it.
    """
    first, others = makes, list[Layout]()
    for one in wanted:
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
            others.append(replace(one, below=max(one.below, 0)))
    if plain is not None and plain not in (first, *others):
        others.append(plain)
    return first, others


@dataclass(frozen=True, kw_only=True)
class Laid:
    """How a layer's tensors lie that was compiled for strips.

    Attributes:
        mapping: its name.
        takes: by operand the layout that its tensor has to have; operands that are missing the host packs.
        makes: the layout of what it writes.
        plain: what it would write by itself, where pictures lie as they are.
    """

    mapping: str
    takes: Mapping[str, Layout]
    makes: Layout
    plain: ImageTensor


def picture_of(tensor: ImageTensor, config: Config) -> Picture | None:
    """The size of a layer's result; None if its elements are no pixels of one batch, as they are."""
    packed, shape = tensor.layout.packed, tensor.shape
    if len(packed) != 6 or len(shape) != 4:
        return None
    found = Picture(pictures=shape[0], blocks=packed[1], height=packed[2], width=packed[3])
    usual = Layout(strips=1, lines=shape[2])
    return found if is_of(tensor, found, usual, config.batch, config.block_out) else None


def places(picture: Picture, inner: Layout, outer: Layout) -> _Integers:
    """Where elements of one layout lie in another that has the same strips, int64[elements].

    Args:
        picture: whose elements they are.
        inner: the layout whose elements are numbered; its lines may end before the strip does, which is a
            negative ``below``.
        outer: one that holds it.
    """
    block, line, column = np.ogrid[: picture.blocks, : inner.height, : picture.width]
    found = (block * outer.height + line - inner.above + outer.above) * picture.width + column
    return np.asarray(found, dtype=np.int64).reshape(-1)


def is_of(tensor: ImageTensor, picture: Picture, layout: Layout, rows: int, columns: int) -> bool:
    """Whether a program has a tensor in a layout, with so many rows and columns in an element."""
    packed = (1, picture.blocks, layout.height, picture.width, rows, columns)
    return (
        tensor.layout.packed == packed
        and tensor.layout.element_dims == 2
        and tensor.widening is None
        and tensor.preparation is None
        and np.dtype(tensor.dtype).itemsize == 1
    )
