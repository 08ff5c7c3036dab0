"""Tensors of a session: with the host as plain arrays, in DRAM as programs have packed them, or both."""

import time
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.errors import AccelError, ShapeError
from accel.image.dram import Dram
from accel.image.layout import PackedLayout
from accel.image.tensor import ImageTensor
from accel.image.view import View
from accel.run.space import Space

Array = npt.NDArray[Any]


@dataclass(kw_only=True)
class Packing:
    """What the host did with tensors around the runs, and what it did not have to do.

    Attributes:
        packed, packed_bytes: copies that it brought into elements, and the bytes that they take in DRAM.
        unpacked, unpacked_bytes: those that it brought back; what is only compared does not count.
        kept, kept_bytes: inputs that a program found in DRAM as it wants them.
        seconds: that packing and unpacking took.
    """

    packed: int = 0
    packed_bytes: int = 0
    unpacked: int = 0
    unpacked_bytes: int = 0
    kept: int = 0
    kept_bytes: int = 0
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.packed} packed ({self.packed_bytes:,} bytes), {self.unpacked} unpacked "
            f"({self.unpacked_bytes:,} bytes), {self.kept} taken as they lie ({self.kept_bytes:,} bytes)"
        )


class Values:
    """The values of a tensor: plain ones, flat, if the host has them, and copies in DRAM, which are room for
    others once nobody has the values."""

    def __init__(self) -> None:
        self.plain: Array | None = None
        self.copies: list[ImageTensor] = []
        self.clean: set[int] = set()
        """Offsets of copies that are zero where their layout goes beyond the tensor."""


class SessionTensor:
    """A tensor of a session: in its DRAM, with the host, or both."""

    def __init__(self, store: "TensorStore", values: Values, shape: tuple[int, ...], dtype: str) -> None:
        self.shape = shape
        self.dtype = dtype
        self._store = store
        self._values = values

    def numpy(self) -> Array:
        """The plain values; the host unpacks them once. The array cannot be written to: take a ``copy()``.

        Raises:
            AccelError: the session is closed.
        """
        self._store.check_open()
        return self._store.plain(self._values).reshape(self.shape)

    def reshape(self, *shape: int) -> "SessionTensor":
        """The same values in row-major order under another shape, of which one size may be -1; nothing moves.

        Raises:
            ShapeError: the shape has another number of values.
        """
        try:
            found = np.empty(self.shape, dtype=np.int8).reshape(shape).shape
        except (TypeError, ValueError):
            raise ShapeError(
                f"the new shape is {list(shape)}; the tensor's is {list(self.shape)}, of another size"
            ) from None
        return SessionTensor(self._store, self._values, found, self.dtype)

    def __repr__(self) -> str:
        return f"SessionTensor({self.dtype}{list(self.shape)})"


class TensorStore:
    """The tensors of one session, for as long as somebody has them.

    Args:
        dram: where programs find them.
        space: of that, which bytes are taken.
        step: multiples of this many bytes do not matter to where a copy lies.
    """

    def __init__(self, dram: Dram, space: Space, step: int) -> None:
        self.packing = Packing()
        self.closed = False
        self._dram = dram
        self._space = space
        self._step = step

    def check_open(self) -> None:
        """Refuse to go on when the session is closed.

        Raises:
            AccelError: it is.
        """
        if self.closed:
            raise AccelError("the session is closed; open another, and take values by numpy() before close()")

    # --- tensors -------------------------------------------------------------------------------------

    def of_host(self, array: Array) -> SessionTensor:
        """A tensor of an array's values."""
        values = Values()
        values.plain = _read_only(array.flatten())
        return SessionTensor(self, values, array.shape, array.dtype.name)

    def of_run(self, tensor: ImageTensor) -> tuple[SessionTensor, int]:
        """A tensor that a program will write, and the place in DRAM that it has for it."""
        values = Values()
        offset = self._place(tensor, values).offset
        return SessionTensor(self, values, tensor.shape, tensor.dtype), offset

    def offset_for(self, tensor: ImageTensor, given: SessionTensor) -> int:
        """Where a program finds an input: in a copy that there is already, or in a new one."""
        values = given._values
        for copy in values.copies:
            if self._serves(copy, tensor, values):
                self.packing.kept += 1
                self.packing.kept_bytes += tensor.nbytes
                return copy.offset
        plain = self.plain(values).reshape(tensor.shape)
        start = time.perf_counter()
        copy = self._place(tensor, values)
        self._dram.write(self._dram.base + copy.offset, tensor.pack(plain))
        values.clean.add(copy.offset)
        self.packing.packed += 1
        self.packing.packed_bytes += tensor.nbytes
        self.packing.seconds += time.perf_counter() - start
        return copy.offset

    def _place(self, tensor: ImageTensor, values: Values) -> ImageTensor:
        """Room for a copy, for as long as anybody has the values."""
        (offset,) = self._space.hold(values, [(tensor.nbytes, tensor.offset)])
        copy = replace(tensor, offset=offset)
        values.copies.append(copy)
        return copy

    def _serves(self, copy: ImageTensor, tensor: ImageTensor, values: Values) -> bool:
        """Whether a program that wants ``tensor`` can take a copy as it lies."""
        theirs, mine = ((t.dtype, t.preparation, t.widening) for t in (copy, tensor))
        if theirs != mine or (copy.offset - tensor.offset) % self._step:
            return False
        if (copy.layout, copy.view) != (tensor.layout, tensor.view) and not same_packing(copy, tensor):
            return False
        if copy.offset not in values.clean:
            beyond = _origins(copy.layout, copy.view) == 0
            if beyond.any() and self._raw(copy).view(copy.dtype)[beyond].any():
                return False
            values.clean.add(copy.offset)
        return True

    # --- values --------------------------------------------------------------------------------------

    def plain(self, values: Values) -> Array:
        """The plain values, flat and read-only; the host keeps what it has unpacked."""
        if values.plain is None:
            start = time.perf_counter()
            values.plain = _read_only(self._unpacked(values))
            self.packing.unpacked += 1
            self.packing.unpacked_bytes += values.copies[0].nbytes
            self.packing.seconds += time.perf_counter() - start
        return values.plain

    def peek(self, tensor: SessionTensor) -> Array:
        """The plain values for a comparison; nothing is counted or kept."""
        values = tensor._values
        return (self._unpacked(values) if values.plain is None else values.plain).reshape(tensor.shape)

    def _unpacked(self, values: Values) -> Array:
        copy = values.copies[0]
        return copy.unpack(self._raw(copy)).reshape(-1)

    def _raw(self, copy: ImageTensor) -> npt.NDArray[np.uint8]:
        return self._dram.read(self._dram.base + copy.offset, copy.nbytes)


def _read_only(array: Array) -> Array:
    """The array, which nobody can write to from now on: copies in DRAM would not follow."""
    array.setflags(write=False)
    return array


def same_packing(a: ImageTensor, b: ImageTensor) -> bool:
    """Whether two tensors of equal shapes bring the same values, in row-major order, to the same places, with
    zeros in all others."""
    if a.widening is not None or b.widening is not None:
        return False
    fills = [one.view for one in (a, b) if one.view is not None and one.view.fills and one.view.fill]
    return not fills and _same_origins(a.layout, a.view, b.layout, b.view)


def numbers_of(tensor: ImageTensor) -> npt.NDArray[np.int32] | None:
    """For every byte of a tensor of bytes the number of the value that it is, in row-major order, from 1 on,
    and 0 where it is none; None where it is packed by more than a layout."""
    fills = tensor.view is not None and tensor.view.fills and bool(tensor.view.fill)
    return None if tensor.widening is not None or fills else _origins(tensor.layout, tensor.view)


@lru_cache(maxsize=256)
def _same_origins(a: PackedLayout, seen: View | None, b: PackedLayout, other: View | None) -> bool:
    return np.array_equal(_origins(a, seen), _origins(b, other))


def _origins(layout: PackedLayout, view: View | None) -> npt.NDArray[np.int32]:
    """For every packed value the number of the plain one that it is, from 1 on; 0 where it is none."""
    shape = layout.shape if view is None else view.shape
    numbers = np.arange(1, int(np.prod(shape)) + 1, dtype=np.int32).reshape(shape)
    if view is not None:
        numbers = replace(view, fill=0).gather(numbers, layout.shape)
    return layout.pack(numbers).reshape(-1)
