"""Tensors that the host rearranges for a mapping, see docs/explain/mappings.md."""

import reprlib
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.errors import ProgramError
from accel.base.records import replace

_MOST_DIMENSIONS = 16
_LARGEST = 1 << 40
"""Maximum of numbers in a view, so that sums and products stay small."""


class View(Struct, frozen=True, kw_only=True):
    """``inner.reshape(sizes)[k] = tensor[coefficients @ k - before]``, and ``fill`` beyond the edges.

    Attributes:
        sizes: of the view, in row-major order.
        coefficients: a row per dimension of the user's tensor, a column per ``sizes``.
    """

    shape: tuple[int, ...]
    before: tuple[int, ...]
    sizes: tuple[int, ...]
    coefficients: tuple[tuple[int, ...], ...]
    fill: int = 0

    def __post_init__(self) -> None:
        rank, rows = len(self.shape), self.coefficients
        if max(rank, len(self.sizes)) > _MOST_DIMENSIONS:
            raise ProgramError(
                f"a view has {rank} by {len(self.sizes)} dimensions; at most {_MOST_DIMENSIONS} are allowed"
            )
        if len(self.before) != rank or len(rows) != rank or any(len(row) != len(self.sizes) for row in rows):
            raise ProgramError(f"a view of {rank} by {len(self.sizes)} dimensions has other coefficients")
        numbers = [*self.shape, *self.before, *self.sizes, *(c for row in rows for c in row), self.fill]
        if any(abs(number) > _LARGEST for number in numbers):
            raise ProgramError(f"a view has a number beyond ±{_LARGEST}")
        if min((*self.shape, *self.sizes), default=1) < 1:
            raise ProgramError("a view has a size below one")

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(low + size + high for low, size, high in self._edges())

    @property
    def fills(self) -> bool:
        return any(low or high for low, _, high in self._edges())

    @property
    def size(self) -> int:
        return prod(self.sizes)

    def _edges(self) -> list[tuple[int, int, int]]:
        """Return indices before, in and after the tensor, by dimension."""
        found = []
        for size, before, row in zip(self.shape, self.before, self.coefficients, strict=True):
            low = sum(c * (n - 1) for c, n in zip(row, self.sizes, strict=True) if c < 0) - before
            high = sum(c * (n - 1) for c, n in zip(row, self.sizes, strict=True) if c > 0) - before
            found.append((max(0, -low), size, max(0, high - size + 1)))
        return found

    def gather(self, tensor: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        around = [(low, high) for low, _, high in self._edges()]
        padded = np.ascontiguousarray(tensor)
        if self.fills:
            padded = np.pad(padded, around, constant_values=self.fill)
        return np.ascontiguousarray(self._strided(padded)).reshape(shape)

    def scatter(self, inner: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Invert :meth:`gather`, with zeros outside of the view."""
        padded = np.zeros(self.extents, dtype=inner.dtype)
        self._strided(padded)[...] = inner.reshape(self.sizes)
        inside = tuple(slice(low, low + size) for low, size, _ in self._edges())
        return np.ascontiguousarray(padded[inside])

    @property
    def is_one_to_one(self) -> bool:
        """Whether each value appears once, as in an output."""
        ones = np.ones(self.shape, dtype=np.bool_)
        blank = replace(self, fill=0)
        inside = int(np.count_nonzero(blank.gather(ones, self.sizes)))
        return inside == ones.size and bool(blank.scatter(np.ones(self.sizes, dtype=np.bool_)).all())

    def _strided(self, padded: npt.NDArray[Any]) -> npt.NDArray[Any]:
        start, strides = self.walk()
        nbytes = padded.itemsize
        first = padded.reshape(-1)[start:]
        return np.lib.stride_tricks.as_strided(first, self.sizes, [step * nbytes for step in strides])

    def walk(self) -> tuple[int, tuple[int, ...]]:
        """Return the first value in an array of :attr:`extents`, and the strides of ``sizes``, in values."""
        edges = self._edges()
        steps = [prod(self.extents[d + 1 :]) for d in range(len(edges))]
        start = sum(
            (low - before) * step for (low, _, _), before, step in zip(edges, self.before, steps, strict=True)
        )
        strides = (
            sum(row[k] * step for row, step in zip(self.coefficients, steps, strict=True)) if size > 1 else 0
            for k, size in enumerate(self.sizes)
        )
        return start, tuple(strides)

    def to_dict(self) -> dict[str, Any]:
        return {
            "shape": list(self.shape),
            "before": list(self.before),
            "sizes": list(self.sizes),
            "coefficients": [list(row) for row in self.coefficients],
            "fill": self.fill,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "View":
        missing = [key for key in cls.__struct_fields__ if key not in data]
        if missing:
            raise ProgramError(f"a view has no {missing[0]!r}")
        rows = data["coefficients"]
        if not isinstance(rows, list):
            raise ProgramError(f"a view has the coefficients {reprlib.repr(rows)}; lists are needed")
        return cls(
            shape=integers("a view", data["shape"]),
            before=integers("a view", data["before"]),
            sizes=integers("a view", data["sizes"]),
            coefficients=tuple(integers("a view", row) for row in rows),
            fill=integers("a view", [data["fill"]])[0],
        )


def integers(what: str, data: Any) -> tuple[int, ...]:
    """Raise a ProgramError unless a file has a list of integers."""
    if not isinstance(data, list) or any(type(n) is not int for n in data):
        raise ProgramError(f"{what} has {reprlib.repr(data)}; a list of integers is needed")
    return tuple(data)
