"""Tensors of a session, on the host and in DRAM."""

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.errors import AccelError, ShapeError
from accel.base.records import as_dict, replace
from accel.image.dram import Dram
from accel.image.image_tensor import ImageTensor
from accel.image.packed_layout import PackedLayout
from accel.image.tensor_view import View
from accel.run.dram_allocator import DramAllocator

Array = npt.NDArray[Any]


@dataclass(kw_only=True)
class Packing:
    """The work of the host between runs.

    Attributes:
        kept, kept_bytes: inputs already in the required packing.
    """

    packed: int = 0
    packed_bytes: int = 0
    unpacked: int = 0
    unpacked_bytes: int = 0
    kept: int = 0
    kept_bytes: int = 0
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return as_dict(self)

    def __str__(self) -> str:
        return (
            f"{self.packed} packed ({self.packed_bytes:,} bytes), {self.unpacked} unpacked "
            f"({self.unpacked_bytes:,} bytes), {self.kept} taken as they lie ({self.kept_bytes:,} bytes)"
        )


class Values:
    """A flat array, and packed copies in DRAM, freed with this object."""

    def __init__(self) -> None:
        self.plain: Array | None = None
        self.copies: list[ImageTensor] = []
        self.zero_padded: set[int] = set()
        """Offsets of copies with zero padding."""


class SessionTensor:
    """A tensor of a session: in its DRAM, on the host, or both."""

    def __init__(self, store: "TensorStore", values: Values, shape: tuple[int, ...], dtype: str) -> None:
        self.shape = shape
        self.dtype = dtype
        self._store = store
        self._values = values

    def numpy(self) -> Array:
        """Return the values as a read-only array, unpacked once.

        Raises:
            AccelError: the session is closed.
        """
        self._store.check_open()
        return self._store.plain(self._values).reshape(self.shape)

    def reshape(self, *shape: int) -> "SessionTensor":
        """Return the same values in row-major order with another shape. One size may be -1.

        Raises:
            ShapeError: the shape has another number of values.
        """
        try:
            found = np.empty(self.shape, dtype=np.int8).reshape(shape).shape
        except (TypeError, ValueError):
            raise ShapeError(
                f"the new shape is {list(shape)}; the tensor's is {list(self.shape)}, "
                "and has another number of values"
            ) from None
        return SessionTensor(self._store, self._values, found, self.dtype)

    def __repr__(self) -> str:
        return f"SessionTensor({self.dtype}{list(self.shape)})"


class TensorStore:
    """Tensors of a session. A program can use a copy if its offset differs by a multiple of ``step``."""

    def __init__(self, dram: Dram, allocator: DramAllocator, step: int) -> None:
        self.packing = Packing()
        self.closed = False
        self._dram = dram
        self._allocator = allocator
        self._step = step

    def check_open(self) -> None:
        if self.closed:
            raise AccelError("the session is closed; open another one, and call numpy() before close()")

    def of_host(self, array: Array) -> SessionTensor:
        values = Values()
        values.plain = _read_only(array.flatten())
        return SessionTensor(self, values, array.shape, array.dtype.name)

    def of_run(self, tensor: ImageTensor) -> tuple[SessionTensor, int]:
        values = Values()
        offset = self._allocate_copy(tensor, values).offset
        return SessionTensor(self, values, tensor.shape, tensor.dtype), offset

    def offset_for(self, tensor: ImageTensor, given: SessionTensor) -> int:
        values = given._values
        for copy in values.copies:
            if self._can_reuse(copy, tensor, values):
                self.packing.kept += 1
                self.packing.kept_bytes += tensor.nbytes
                return copy.offset
        plain = self.plain(values).reshape(tensor.shape)
        start = time.perf_counter()
        copy = self._allocate_copy(tensor, values)
        self._dram.write(self._dram.base + copy.offset, tensor.pack(plain))
        values.zero_padded.add(copy.offset)
        self.packing.packed += 1
        self.packing.packed_bytes += tensor.nbytes
        self.packing.seconds += time.perf_counter() - start
        return copy.offset

    def _allocate_copy(self, tensor: ImageTensor, values: Values) -> ImageTensor:
        (offset,) = self._allocator.allocate(values, [(tensor.nbytes, tensor.offset)])
        copy = replace(tensor, offset=offset)
        values.copies.append(copy)
        return copy

    def _can_reuse(self, copy: ImageTensor, tensor: ImageTensor, values: Values) -> bool:
        packed, needed = ((t.dtype, t.preparation, t.widening) for t in (copy, tensor))
        if packed != needed or (copy.offset - tensor.offset) % self._step:
            return False
        if (copy.layout, copy.view) != (tensor.layout, tensor.view) and not same_packing(copy, tensor):
            return False
        if copy.offset not in values.zero_padded:
            beyond = _origins(copy.layout, copy.view) == 0
            if beyond.any() and self._raw(copy).view(copy.dtype)[beyond].any():
                return False
            values.zero_padded.add(copy.offset)
        return True

    def plain(self, values: Values) -> Array:
        if values.plain is None:
            start = time.perf_counter()
            values.plain = _read_only(self._unpacked(values))
            self.packing.unpacked += 1
            self.packing.unpacked_bytes += values.copies[0].nbytes
            self.packing.seconds += time.perf_counter() - start
        return values.plain

    def peek(self, tensor: SessionTensor) -> Array:
        values = tensor._values
        return (self._unpacked(values) if values.plain is None else values.plain).reshape(tensor.shape)

    def _unpacked(self, values: Values) -> Array:
        copy = values.copies[0]
        return copy.unpack(self._raw(copy)).reshape(-1)

    def _raw(self, copy: ImageTensor) -> npt.NDArray[np.uint8]:
        return self._dram.read(self._dram.base + copy.offset, copy.nbytes)


def _read_only(array: Array) -> Array:
    """Copies in DRAM would not follow a change."""
    array.setflags(write=False)
    return array


def same_packing(a: ImageTensor, b: ImageTensor) -> bool:
    """Whether the same values have the same offsets, with zeros elsewhere."""
    if a.widening is not None or b.widening is not None:
        return False
    fills = [one.view for one in (a, b) if one.view is not None and one.view.fills and one.view.fill]
    return not fills and _same_origins(a.layout, a.view, b.layout, b.view)


def value_numbers(tensor: ImageTensor) -> npt.NDArray[np.int32] | None:
    """Number each packed value by its plain one: from 1 in row-major order, 0 for padding."""
    fills = tensor.view is not None and tensor.view.fills and bool(tensor.view.fill)
    return None if tensor.widening is not None or fills else _origins(tensor.layout, tensor.view)


@lru_cache(maxsize=256)
def _same_origins(a: PackedLayout, seen: View | None, b: PackedLayout, other: View | None) -> bool:
    return np.array_equal(_origins(a, seen), _origins(b, other))


def _origins(layout: PackedLayout, view: View | None) -> npt.NDArray[np.int32]:
    shape = layout.shape if view is None else view.shape
    numbers = np.arange(1, int(np.prod(shape)) + 1, dtype=np.int32).reshape(shape)
    if view is not None:
        numbers = replace(view, fill=0).gather(numbers, layout.shape)
    return layout.pack(numbers).reshape(-1)
