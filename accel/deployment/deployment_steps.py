"""The steps of a package: pack, run, unpack, and the host's computations."""

from collections.abc import Iterable, Iterator
from math import prod

import numpy as np
from msgspec import Struct

from accel.base.records import replace
from accel.core.config import PAGE_BYTES, Config
from accel.graph.graph_tensor import Array, Quantization, Shape
from accel.graph.window_geometry import Windows
from accel.image.image import Image
from accel.image.image_tensor import ImageTensor
from accel.image.tensor_view import View

WORKSPACE_STEP = 8
"""Alignment of arrays in the workspace, in bytes."""


class HostArray(Struct, frozen=True, kw_only=True):
    """An array on the host in row-major order.

    Attributes:
        name: the model's, for inputs and outputs.
        dtype: ``int8``, ``uint8``, ``int32`` or ``float32``.
        at: number of the input or output, or byte offset in the workspace.
    """

    name: str
    dtype: str
    shape: Shape
    place: str
    at: int
    quantization: Quantization | None = None

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * np.dtype(self.dtype).itemsize


class Stream(Struct, frozen=True, kw_only=True):
    """A program and its window of memory.

    Attributes:
        offset: bytes from the package's base to its window, a multiple of 4096.
    """

    image: Image
    offset: int
    cycles: int
    layers: tuple[str, ...] = ()

    @property
    def window_bytes(self) -> int:
        return -(-self.image.size // PAGE_BYTES) * PAGE_BYTES


class Pack(Struct, frozen=True, kw_only=True):
    """Copies a plain array to memory in a tensor's layout."""

    tensor: ImageTensor
    stream: int
    kind = "pack"


class Run(Struct, frozen=True, kw_only=True):
    stream: int
    kind = "run"


class Unpack(Struct, frozen=True, kw_only=True):
    tensor: ImageTensor
    stream: int
    kind = "unpack"


class Scaled(Struct, frozen=True, kw_only=True):
    """Converts float32 to integers (``quantize``) or back (``dequantize``)."""

    kind: str
    dtype: str
    shape: Shape
    quantization: Quantization

    @property
    def inner(self) -> int:
        """Consecutive values with the same scale."""
        axis = self.quantization.axis
        return prod(self.shape) if axis is None else prod(self.shape[axis + 1 :])


class Show(Struct, frozen=True, kw_only=True):
    """Rearranges an array by a view."""

    dtype: str
    view: View
    kind = "view"


class Move(Struct, frozen=True, kw_only=True):
    """Copies values. Starts and strides count values."""

    value_bytes: int
    sizes: Shape
    source_strides: Shape
    target_strides: Shape
    source_start: int = 0
    target_start: int = 0
    kind = "move"


class Fill(Struct, frozen=True, kw_only=True):
    values: bytes
    value_bytes: int
    nbytes: int
    kind = "fill"


class Lookup(Struct, frozen=True, kw_only=True):
    """Looks up each byte in a table of 256 results, indexed by the operand's bits."""

    table: bytes
    size: int
    kind = "lookup"


class ChannelLookup(Struct, frozen=True, kw_only=True):
    """Looks up each byte in its channel's table, over the middle axis of [outer, channels, inner]."""

    tables: bytes
    outer: int
    channels: int
    inner: int
    kind = "channel_lookup"


class Softmax(Struct, frozen=True, kw_only=True):
    """Computes ``exp(x) / sum of exp(x)`` over the middle axis of float32[outer, count, inner]."""

    outer: int
    count: int
    inner: int
    kind = "softmax"


class Binary(Struct, frozen=True, kw_only=True):
    """Computes a function of two arrays. See ``accel_binary`` in ``driver/accel_network.h``."""

    operation: str
    dtype: str
    sizes: Shape
    source_strides: Shape
    other_strides: Shape
    zeros: tuple[int, int] = (0, 0)
    factors: tuple[float, float, float] = (0.0, 0.0, 0.0)
    kind = "binary"


class Means(Struct, frozen=True, kw_only=True):
    dtype: str
    planes: int
    sizes: Shape
    outputs: Shape
    windows: Windows
    count_padding: bool
    source: tuple[float, int] = (1.0, 0)
    target: tuple[float, int] = (1.0, 0)
    kind = "means"


class Prepare(Struct, frozen=True, kw_only=True):
    """Computes ``clip(value, *bounds) + offset`` of int32. The driver refuses values outside ``accepted``."""

    size: int
    accepted: tuple[int, int]
    bounds: tuple[int, int]
    offset: int
    kind = "prepare"


Detail = (
    Pack
    | Run
    | Unpack
    | Scaled
    | Show
    | Move
    | Fill
    | Lookup
    | ChannelLookup
    | Softmax
    | Binary
    | Means
    | Prepare
)


class Step(Struct, frozen=True, kw_only=True):
    """``source``, ``other`` and ``target`` are indices of arrays."""

    detail: Detail
    source: int | None = None
    other: int | None = None
    target: int | None = None


class Deployment(Struct, frozen=True, kw_only=True):
    """Everything that a package does. ``left_out`` has reasons by node."""

    name: str
    config: Config
    streams: tuple[Stream, ...]
    arrays: tuple[HostArray, ...]
    steps: tuple[Step, ...]
    workspace_bytes: int
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def inputs(self) -> tuple[HostArray, ...]:
        return self._at("input")

    @property
    def outputs(self) -> tuple[HostArray, ...]:
        return self._at("output")

    def _at(self, place: str) -> tuple[HostArray, ...]:
        found = [one for one in self.arrays if one.place == place]
        return tuple(sorted(found, key=lambda one: one.at))

    @property
    def memory_bytes(self) -> int:
        return sum(stream.window_bytes for stream in self.streams)


def row_major(shape: Shape) -> Shape:
    """Return the strides in values."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def broadcast_strides(shape: Shape, sizes: Shape) -> Shape:
    """Return the strides in values, 0 along broadcast axes."""
    whole = (*(1,) * (len(sizes) - len(shape)), *shape)
    return tuple(0 if size == 1 else step for size, step in zip(whole, row_major(whole), strict=True))


def copied(array: Array, dtype: str) -> bytes:
    """Return little-endian bytes."""
    return np.ascontiguousarray(array, dtype=np.dtype(dtype).newbyteorder("<")).tobytes()


def value_bytes(dtype: str) -> int:
    return int(np.dtype(dtype).itemsize)


def one_value(value: float, dtype: str) -> bytes:
    return copied(np.array([value]), dtype)


def placed(streams: Iterable[Stream]) -> Iterator[Stream]:
    reached = 0
    for stream in streams:
        yield replace(stream, offset=reached)
        reached += stream.window_bytes


def bits_of(content: bytes, nbytes: int) -> list[int]:
    """Return values as unsigned integers with the same bits."""
    return [int(one) for one in np.frombuffer(content, dtype=np.dtype(f"u{nbytes}").newbyteorder("<"))]
