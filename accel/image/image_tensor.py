"""Contents of DRAM: packed tensors, and named regions."""

import math
import reprlib
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.errors import ProgramError
from accel.image.manifest_entries import read_entry, read_object, read_offset
from accel.image.packed_layout import BlockDiagonal, Interleaved, PackedLayout, Preparation
from accel.image.tensor_view import View

Role = Literal["input", "output", "constant"]


class ImageTensor(Struct, frozen=True, kw_only=True):
    """A packed tensor in DRAM. An input may have several, with different layouts.

    Attributes:
        offset: bytes in the window.
        dtype: of values in DRAM, ``int8``, ``uint8`` or ``int32``.
        layout: from the packed to the plain, perhaps wide, array.
        preparation: how the host changes an int32 input before packing.
        widening: how the host widens an input before packing.
        view: how the host rearranges a tensor of another shape before widening.
    """

    name: str
    role: Role
    dtype: str
    offset: int
    layout: PackedLayout
    preparation: Preparation | None = None
    widening: BlockDiagonal | Interleaved | None = None
    view: View | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.inner_shape if self.view is None else self.view.shape

    @property
    def inner_shape(self) -> tuple[int, ...]:
        """The program's shape, which differs only with a view."""
        return self.layout.shape if self.widening is None else self.widening.narrow_shape(self.layout.shape)

    @property
    def nbytes(self) -> int:
        return math.prod(self.layout.packed) * np.dtype(self.dtype).itemsize

    def to_dict(self) -> dict[str, Any]:
        view = {} if self.view is None else {"view": self.view.to_dict()}
        return {
            "name": self.name,
            "role": self.role,
            "dtype": self.dtype,
            "offset": self.offset,
            "layout": self.layout.to_dict(),
            "preparation": None if self.preparation is None else self.preparation.to_dict(),
            "widening": None if self.widening is None else self.widening.to_dict(),
            **view,
        }

    def pack(self, values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
        if self.preparation is not None:
            values = self.preparation.apply(self.name, values)
        if self.view is not None:
            values = self.view.gather(values, self.inner_shape)
        if self.widening is not None:
            values = self.widening.widen(values)
        return array_bytes(self.layout.pack(values))

    def unpack(self, raw: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        packed = raw.view(np.dtype(self.dtype).newbyteorder("<")).reshape(self.layout.packed)
        values = self.layout.unpack(packed)
        if self.widening is not None:
            values = self.widening.narrow(values)
        if self.view is not None:
            values = self.view.scatter(values)
        return values if self.preparation is None else self.preparation.undo(values)


class Region(Struct, frozen=True, kw_only=True):
    name: str
    offset: int
    nbytes: int

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "offset": self.offset, "bytes": self.nbytes}


def read_region(data: Any) -> Region:
    name, nbytes = read_entry(data, "name", str), read_entry(data, "bytes", int)
    if not name.isidentifier():
        raise ProgramError(f"the name of a region is {reprlib.repr(name)}; it must be an identifier")
    if nbytes < 0:
        raise ProgramError(
            f"region {name!r} has {nbytes} bytes in its manifest; it cannot have less than none"
        )
    return Region(name=name, offset=read_offset(data), nbytes=nbytes)


def read_tensor(data: Any) -> ImageTensor:
    """Invert :meth:`ImageTensor.to_dict`."""
    name, role, dtype = (read_entry(data, key, str) for key in ("name", "role", "dtype"))
    if not name.isidentifier():
        raise ProgramError(f"the name of a tensor is {reprlib.repr(name)}; it must be an identifier")
    if role not in ("input", "output", "constant"):
        raise ProgramError(f"the role of tensor {name!r} is {role!r}; it must be input, output or constant")
    if dtype not in ("int8", "uint8", "int32"):
        raise ProgramError(f"the dtype of tensor {name!r} is {dtype!r}; it must be int8, uint8 or int32")

    def prepared(data: dict[str, Any]) -> Preparation:
        return _preparation(name, dtype, data)

    tensor = ImageTensor(
        name=name,
        role=cast(Role, role),
        dtype=dtype,
        offset=read_offset(data),
        layout=PackedLayout.from_dict(read_entry(data, "layout", dict)),
        preparation=read_object(data, "preparation", prepared),
        widening=read_object(data, "widening", _widening),
        view=read_object(data, "view", View.from_dict),
    )
    if tensor.widening is not None and role == "output":
        raise ProgramError(f"output {name!r} is widened; only what is packed before a run can be")
    if tensor.view is not None:
        limits = np.iinfo(np.dtype(dtype))
        if tensor.view.size != math.prod(tensor.inner_shape):
            raise ProgramError(
                f"the view of tensor {name!r} has {tensor.view.size} values; the program's tensor has "
                f"{math.prod(tensor.inner_shape)}"
            )
        if not limits.min <= tensor.view.fill <= limits.max:
            raise ProgramError(
                f"the view of tensor {name!r} fills with {tensor.view.fill}; that does not fit {dtype}"
            )
    return tensor


def _widening(data: dict[str, Any]) -> BlockDiagonal | Interleaved:
    if "words" in data:
        words = read_entry(data, "words", list)
        if any(type(word) is not int for word in words):
            raise ProgramError("the scales among the parameters are not integers")
        return Interleaved(channels=read_entry(data, "channels", int), words=tuple(words))
    return BlockDiagonal(rows=read_entry(data, "rows", int), merged=read_entry(data, "merged", int))


def _preparation(name: str, dtype: str, data: dict[str, Any]) -> Preparation:
    ranges = {key: read_entry(data, key, list) for key in ("accepted", "bounds")}
    numbers = [*ranges["accepted"], *ranges["bounds"], read_entry(data, "offset", int)]
    if (
        dtype != "int32"
        or list(map(len, ranges.values())) != [2, 2]
        or any(type(n) is not int for n in numbers)
    ):
        raise ProgramError(f"the preparation of tensor {name!r} does not hold together")
    return Preparation.from_dict(data)


def array_bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return little-endian bytes."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little).reshape(-1).view(np.uint8)
