"""The DRAM window. Untouched memory reads as zero."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from accel.base.errors import ProgramError
from accel.core.config import PAGE_BYTES, Config
from accel.core.instruction_access import DramRows

Bytes = npt.NDArray[np.uint8]

_GRAIN = 1 << 16
_SPARSE_SPAN = 1 << 22
"""Rows that span more may lie in several extents."""


class Dram:
    """Bytes ``[base, base + size)``.

    Touched memory lives in *extents*, arrays that never overlap or adjoin, and accesses within are views.
    """

    def __init__(self, base: int, size: int) -> None:
        self.base = base
        self.size = size
        self._starts: list[int] = []
        self._extents: list[Bytes] = []
        self.moves = 0
        """Views stay valid while this count of new, grown or replaced extents does not change."""

    @classmethod
    def of(cls, config: Config) -> "Dram":
        return cls(config.mem_base, config.mem_size)

    def reserve(self, spans: Iterable[tuple[int, int]]) -> None:
        merged: list[list[int]] = []
        for start, stop in sorted(spans):
            if merged and start <= merged[-1][1] + _GRAIN:
                merged[-1][1] = max(merged[-1][1], stop)
            else:
                merged.append([start, stop])
        for start, stop in merged:
            self._locate(start, stop)

    def read(self, address: int, length: int) -> Bytes:
        return self._view(address, length).copy()

    def write(self, address: int, data: bytes | Bytes) -> None:
        raw = (
            np.frombuffer(data, dtype=np.uint8)
            if isinstance(data, bytes)
            else data.reshape(-1).view(np.uint8)
        )
        self._view(address, raw.size)[:] = raw

    def read_rows(self, rows: DramRows) -> Bytes:
        return np.array(self.view_rows(rows), order="C")

    def lasting_rows(self, rows: DramRows) -> Bytes | None:
        """Return a view, uint8[rows, row_bytes], valid until :attr:`moves` changes, or None."""
        return self._strided(rows) if self._in_one_extent(rows) else None

    def view_rows(self, rows: DramRows) -> Bytes:
        """Return uint8[rows, row_bytes], perhaps a view, not to be kept or changed."""
        if self._in_one_extent(rows):
            return self._strided(rows)
        return np.stack([self.read(rows.start + y * rows.stride, rows.row_bytes) for y in range(rows.rows)])

    def write_rows(self, rows: DramRows, data: Bytes) -> None:
        if self._in_one_extent(rows) and rows.stride >= rows.row_bytes:
            self._strided(rows)[:] = data
            return
        for y in range(rows.rows):
            self._view(rows.start + y * rows.stride, rows.row_bytes)[:] = data[y]

    def pages(self) -> Iterator[tuple[int, Bytes]]:
        for start, extent in zip(self._starts, self._extents, strict=True):
            pages = extent.reshape(-1, PAGE_BYTES)
            for index in np.flatnonzero(pages.any(axis=1)).tolist():
                yield start + index * PAGE_BYTES, pages[index]

    def copy(self) -> "Dram":
        twin = Dram(self.base, self.size)
        twin._starts = list(self._starts)
        twin._extents = [extent.copy() for extent in self._extents]
        return twin

    def assign(self, other: "Dram") -> None:
        self.moves += 1
        self._starts = list(other._starts)
        self._extents = [extent.copy() for extent in other._extents]

    def clear(self) -> None:
        self.moves += 1
        self._starts.clear()
        self._extents.clear()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dram):
            return NotImplemented
        mine, theirs = list(self.pages()), list(other.pages())
        return len(mine) == len(theirs) and all(
            a == b and np.array_equal(x, y) for (a, x), (b, y) in zip(mine, theirs, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def _view(self, address: int, length: int) -> Bytes:
        extent, offset = self._locate(address, address + length)
        return extent[offset : offset + length]

    def _in_one_extent(self, rows: DramRows) -> bool:
        span = (rows.rows - 1) * rows.stride + rows.row_bytes
        return span <= _SPARSE_SPAN or span <= 8 * rows.rows * rows.row_bytes

    def _strided(self, rows: DramRows) -> Bytes:
        span = (rows.rows - 1) * rows.stride + rows.row_bytes
        extent, offset = self._locate(rows.start, rows.start + span)
        shape, strides = (rows.rows, rows.row_bytes), (rows.stride, 1)
        return np.ndarray(shape, np.uint8, buffer=extent.data, offset=offset, strides=strides)

    def _locate(self, start: int, stop: int) -> tuple[Bytes, int]:
        """Return an extent with ``[start, stop)``, perhaps made or grown, and the offset in it."""
        if start < self.base or stop > self.base + self.size:
            raise ProgramError(
                f"DRAM bytes {start:#x}..{stop - 1:#x} are asked for; the window is "
                f"{self.base:#x}..{self.base + self.size - 1:#x}"
            )
        position = bisect_right(self._starts, start) - 1
        if position >= 0:
            origin = self._starts[position]
            extent = self._extents[position]
            if stop <= origin + len(extent):
                return extent, start - origin
        return self._grow(start, stop)

    def _grow(self, start: int, stop: int) -> tuple[Bytes, int]:
        low = start // _GRAIN * _GRAIN
        high = -(-stop // _GRAIN) * _GRAIN
        first = bisect_right(self._starts, low)
        while first and self._starts[first - 1] + len(self._extents[first - 1]) >= low:
            first -= 1
        last = first
        while last < len(self._starts) and self._starts[last] <= high:
            last += 1
        if first < last:
            low = min(low, self._starts[first])
            high = max(high, self._starts[last - 1] + len(self._extents[last - 1]))
        extent = np.zeros(high - low, dtype=np.uint8)
        for old_start, old in zip(self._starts[first:last], self._extents[first:last], strict=True):
            extent[old_start - low : old_start - low + len(old)] = old
        self.moves += 1
        self._starts[first:last] = [low]
        self._extents[first:last] = [extent]
        return extent, start - low
