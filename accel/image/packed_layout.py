"""Layouts in DRAM: affine maps from packed to logical indices.

DMA moves whole elements, so the host packs arrays into elements and unpacks results. Zeros fill incomplete
elements.
"""

import reprlib
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.errors import ProgramError, ShapeError
from accel.image.tensor_view import integers

_FARTHEST = (1 << 32) - 1


class Preparation(Struct, frozen=True, kw_only=True):
    """The host's change of values: ``clip(value, *bounds) + offset``. Values outside of ``accepted`` are
    refused."""

    accepted: tuple[int, int]
    bounds: tuple[int, int]
    offset: int

    def __post_init__(self) -> None:
        for number in (*self.accepted, *self.bounds, self.offset):
            if not -_FARTHEST <= number <= _FARTHEST:
                raise ProgramError(f"a preparation has the number {number}; it must be in ±{_FARTHEST}")

    def apply(self, name: str, values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        low, high = self.accepted
        if values.size and (values.min() < low or values.max() > high):
            worst = values.min() if values.min() < low else values.max()
            raise ShapeError(f"{name} holds {worst}; the program was compiled for {low}..{high}")
        clipped = values.astype(np.int64).clip(*self.bounds)
        return (clipped + self.offset).astype(np.int32)

    def undo(self, values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        return (values.astype(np.int64) - self.offset).astype(np.int32)

    def accepts(self, values: npt.NDArray[np.int32]) -> bool:
        low, high = self.accepted
        return not values.size or bool(low <= values.min() and values.max() <= high)

    def to_dict(self) -> dict[str, Any]:
        return {"accepted": list(self.accepted), "bounds": list(self.bounds), "offset": self.offset}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Preparation":
        (a, b), (c, d) = data["accepted"], data["bounds"]
        return cls(accepted=(int(a), int(b)), bounds=(int(c), int(d)), offset=int(data["offset"]))


class BlockDiagonal(Struct, frozen=True, kw_only=True):
    """The host's widening of weights of a grouped computation.

    Rows are outputs, columns inputs of a group. A row has zeros for the other ``merged`` groups:

        [a b]           [a b 0 0]
        [c d]     ->    [0 0 c d]     two merged groups of one row and two columns each
        [e f]           [e f 0 0]
        [g h]           [0 0 g h]
    """

    rows: int
    merged: int

    def __post_init__(self) -> None:
        if min(self.rows, self.merged) < 1:
            raise ProgramError(
                f"weights are widened by {self.merged} groups of {self.rows} rows; both must be positive"
            )

    def widen(self, plain: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """From ``(rows, columns, ...)`` to ``(rows, merged * columns, ...)``."""
        rows, columns, *rest = plain.shape
        wide = np.zeros((rows, self.merged * columns, *rest), dtype=plain.dtype)
        wide[self._own(rows, columns)] = plain
        return wide

    def narrow(self, wide: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.ascontiguousarray(wide[self._own(wide.shape[0], wide.shape[1] // self.merged)])

    def narrow_shape(self, wide: tuple[int, ...]) -> tuple[int, ...]:
        if len(wide) < 2 or wide[1] % self.merged:
            raise ProgramError(f"weights of shape {list(wide)} are not those of {self.merged} merged groups")
        return (wide[0], wide[1] // self.merged, *wide[2:])

    def _own(self, rows: int, columns: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        row = np.arange(rows)[:, None]
        return row, row // self.rows % self.merged * columns + np.arange(columns)

    def to_dict(self) -> dict[str, Any]:
        return {"rows": self.rows, "merged": self.merged}


class Interleaved(Struct, frozen=True, kw_only=True):
    """The host's PAR from a bias: bias and scale of each channel.

        [a b]     ->    [[a s] [b t]]

    Attributes:
        words: int32 scales, for each channel or for all.
    """

    channels: int
    words: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.channels < 1 or len(self.words) not in (1, self.channels):
            raise ProgramError(f"parameters of {self.channels} channels have {len(self.words)} scales")
        if not all(-(1 << 31) <= word < 1 << 31 for word in self.words):
            raise ProgramError("a scale among the parameters is not an int32")

    def widen(self, plain: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """From a bias, int32 ``(channels,)``, to int32 ``(channels, 2)``."""
        words = np.array(self.words, dtype=np.int32)
        return np.stack([plain, np.broadcast_to(words, plain.shape)], axis=1)

    def narrow(self, wide: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.ascontiguousarray(wide[:, 0])

    def narrow_shape(self, wide: tuple[int, ...]) -> tuple[int, ...]:
        if wide != (self.channels, 2):
            raise ProgramError(f"parameters of shape {list(wide)} are not those of {self.channels} channels")
        return wide[:1]

    def to_dict(self) -> dict[str, Any]:
        return {"channels": self.channels, "words": list(self.words)}


class PackedLayout(Struct, frozen=True, kw_only=True):
    """``logical[d] = sum over k of coefficients[d][k] * packed[k]``.

    Attributes:
        packed: packed shape, with the element's dimensions last.
        coefficients: a row per logical dimension, a column per packed one, not negative. A column of zeros
            repeats data.
    """

    shape: tuple[int, ...]
    packed: tuple[int, ...]
    element_dims: int
    coefficients: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if len(self.coefficients) != len(self.shape) or any(
            len(row) != len(self.packed) for row in self.coefficients
        ):
            raise ProgramError(
                f"a layout of {len(self.shape)} by {len(self.packed)} dimensions has other coefficients"
            )
        if min((*self.shape, *self.packed), default=1) < 1 or any(
            c < 0 for row in self.coefficients for c in row
        ):
            raise ProgramError("a layout has a size below one or a negative coefficient")
        if not 0 <= self.element_dims <= len(self.packed):
            raise ProgramError(
                f"element_dims is {self.element_dims}; the layout has {len(self.packed)} packed dimensions"
            )

    @property
    def elements(self) -> int:
        return prod(self.packed[: len(self.packed) - self.element_dims])

    @property
    def repeats(self) -> bool:
        """Whether a dimension repeats data, which outputs cannot."""
        columns = zip(*self.coefficients, strict=True)
        return any(size > 1 and not any(c) for size, c in zip(self.packed, columns, strict=True))

    def pack(self, plain: npt.NDArray[Any]) -> npt.NDArray[Any]:
        padded = np.zeros(self.extents, dtype=plain.dtype)
        padded[tuple(slice(0, n) for n in plain.shape)] = plain
        return np.ascontiguousarray(self._view(padded))

    def unpack(self, packed: npt.NDArray[Any]) -> npt.NDArray[Any]:
        padded = np.zeros(self.extents, dtype=packed.dtype)
        self._view(padded)[...] = packed
        return np.ascontiguousarray(padded[tuple(slice(0, n) for n in self.shape)])

    @property
    def extents(self) -> tuple[int, ...]:
        """Shape of the plain array, including filled elements."""
        reach = (
            1 + sum(c * (n - 1) for c, n in zip(row, self.packed, strict=True)) for row in self.coefficients
        )
        return tuple(max(n, r) for n, r in zip(self.shape, reach, strict=True))

    def _view(self, padded: npt.NDArray[Any]) -> npt.NDArray[Any]:
        strides = [
            sum(row[k] * step for row, step in zip(self.coefficients, padded.strides, strict=True))
            if size > 1
            else 0
            for k, size in enumerate(self.packed)
        ]
        return np.lib.stride_tricks.as_strided(padded, self.packed, strides)

    def to_dict(self) -> dict[str, Any]:
        return {
            "shape": list(self.shape),
            "packed": list(self.packed),
            "element_dims": self.element_dims,
            "coefficients": [list(row) for row in self.coefficients],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "PackedLayout":
        missing = [key for key in cls.__struct_fields__ if key not in data]
        if missing:
            raise ProgramError(f"a layout has no {missing[0]!r}")
        coefficients = data["coefficients"]
        if not isinstance(coefficients, list):
            raise ProgramError(
                f"a layout has the coefficients {reprlib.repr(coefficients)}; lists are needed"
            )
        return cls(
            shape=integers("a layout", data["shape"]),
            packed=integers("a layout", data["packed"]),
            element_dims=integers("a layout", [data["element_dims"]])[0],
            coefficients=tuple(integers("a layout", row) for row in coefficients),
        )


def blocked(shape: tuple[int, ...], element: tuple[tuple[int | None, int], ...]) -> PackedLayout:
    """Return a row-major layout of blocks.

    Args:
        element: by dimension, the tensor's dimension, or None where data repeats, and the block's size.
    """
    widths = {d: size for d, size in element if d is not None}
    outer = tuple(-(-n // widths.get(d, 1)) for d, n in enumerate(shape))
    rows = []
    for d in range(len(shape)):
        of_blocks = [widths.get(d, 1) if k == d else 0 for k in range(len(shape))]
        of_element = [1 if dim == d else 0 for dim, _ in element]
        rows.append(tuple(of_blocks + of_element))
    packed = outer + tuple(size for _, size in element)
    return PackedLayout(shape=shape, packed=packed, element_dims=len(element), coefficients=tuple(rows))
