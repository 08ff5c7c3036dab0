"""What a package does, step by step: pack, run, unpack, and what the host computes around that.

A deployment is what manifest, C tables and files are written from; nothing in it is text yet.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from accel.core.config import PAGE_BYTES, Config
from accel.graph.tensor import Array, Quantization, Shape
from accel.graph.windows import Windows
from accel.image.image import Image
from accel.image.tensor import ImageTensor
from accel.image.view import View

WORKSPACE_STEP = 8
"""Arrays of the workspace start at multiples of this many bytes."""


@dataclass(frozen=True, kw_only=True)
class HostArray:
    """An array of the host's, in row-major order: an input, an output or something in between.

    Attributes:
        name: for people; of an input or output as in the model.
        dtype: ``int8``, ``uint8``, ``int32`` or ``float32``.
        shape: sizes.
        place: ``input``, ``output`` or ``workspace``.
        at: the input's or output's number, or the offset in the workspace.
        quantization: how integers stand for numbers, if that is known.
    """

    name: str
    dtype: str
    shape: Shape
    place: str
    at: int
    quantization: Quantization | None = None

    @property
    def size(self) -> int:
        """Values."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes."""
        return self.size * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A program of the machine, and where its window lies.

    Attributes:
        image: with its constants in it.
        offset: of its window from the package's base, a multiple of 4096.
        cycles: that it takes, by the simulator.
        layers: names of what it computes, of a network.
    """

    image: Image
    offset: int
    cycles: int
    layers: tuple[str, ...] = ()

    @property
    def window_bytes(self) -> int:
        """Of its window, whole pages."""
        return -(-self.image.size // PAGE_BYTES) * PAGE_BYTES


# --- steps -----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Pack:
    """A plain array to memory, as a tensor's layout says.

    Attributes:
        tensor: of the stream.
        stream: its number.
    """

    tensor: ImageTensor
    stream: int
    kind = "pack"


@dataclass(frozen=True, kw_only=True)
class Run:
    """A stream."""

    stream: int
    kind = "run"


@dataclass(frozen=True, kw_only=True)
class Unpack:
    """Memory to a plain array; attributes as of :class:`Pack`."""

    tensor: ImageTensor
    stream: int
    kind = "unpack"


@dataclass(frozen=True, kw_only=True)
class Scaled:
    """Float32 to integers (``quantize``) or back (``dequantize``).

    Attributes:
        kind: which of both.
        dtype: of the integers.
        shape: of both arrays.
        quantization: of the integers.
    """

    kind: str
    dtype: str
    shape: Shape
    quantization: Quantization

    @property
    def inner(self) -> int:
        """Values that follow one another with one scale."""
        axis = self.quantization.axis
        return prod(self.shape) if axis is None else prod(self.shape[axis + 1 :])


@dataclass(frozen=True, kw_only=True)
class Show:
    """An array as a view shows it.

    Attributes:
        dtype: of its values.
        view: what is shown.
    """

    dtype: str
    view: View
    kind = "view"


@dataclass(frozen=True, kw_only=True)
class Move:
    """A copy, value by value; starts and strides in values.

    Attributes:
        value_bytes: of a value.
        sizes: iterations.
        source_strides, target_strides: along each of them.
        source_start, target_start: the first value.
    """

    value_bytes: int
    sizes: Shape
    source_strides: Shape
    target_strides: Shape
    source_start: int = 0
    target_start: int = 0
    kind = "move"


@dataclass(frozen=True, kw_only=True)
class Fill:
    """Values of an array that are known: a few, over and over.

    Attributes:
        values: repeated until the array is full, little-endian.
        value_bytes: of one of them.
        nbytes: of the array.
    """

    values: bytes
    value_bytes: int
    nbytes: int
    kind = "fill"


@dataclass(frozen=True, kw_only=True)
class Lookup:
    """A function of a byte.

    Attributes:
        table: 256 results, by the operand's bits.
        size: values.
    """

    table: bytes
    size: int
    kind = "lookup"


@dataclass(frozen=True, kw_only=True)
class Softmax:
    """``exp(x) / sum of exp(x)`` of float32[outer, count, inner], sums along the middle."""

    outer: int
    count: int
    inner: int
    kind = "softmax"


@dataclass(frozen=True, kw_only=True)
class Binary:
    """A function of two arrays, see ``accel_binary`` in ``driver/accel_network.h``.

    Attributes:
        operation: as the driver has it, in lower case.
        dtype: of the three arrays.
        sizes: of the result.
        source_strides, other_strides: along each of these, in values.
        zeros: of both operands.
        factors: ``a``, ``b`` and ``c``.
    """

    operation: str
    dtype: str
    sizes: Shape
    source_strides: Shape
    other_strides: Shape
    zeros: tuple[int, int] = (0, 0)
    factors: tuple[float, float, float] = (0.0, 0.0, 0.0)
    kind = "binary"


@dataclass(frozen=True, kw_only=True)
class Means:
    """Means of windows.

    Attributes:
        dtype: of both arrays.
        planes: values of the axes before those that windows slide along.
        sizes, outputs: of a plane, and of its means.
        windows: how they lie.
        count_padding: whether padding counts.
        source, target: scale and zero point of integers.
    """

    dtype: str
    planes: int
    sizes: Shape
    outputs: Shape
    windows: Windows
    count_padding: bool
    source: tuple[float, int] = (1.0, 0)
    target: tuple[float, int] = (1.0, 0)
    kind = "means"


@dataclass(frozen=True, kw_only=True)
class Prepare:
    """``clip(value, *bounds) + offset`` of int32; values beyond ``accepted`` are refused."""

    size: int
    accepted: tuple[int, int]
    bounds: tuple[int, int]
    offset: int
    kind = "prepare"


Detail = Pack | Run | Unpack | Scaled | Show | Move | Fill | Lookup | Softmax | Binary | Means | Prepare


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing after another.

    Attributes:
        detail: what is done.
        source, other, target: numbers of arrays; None where there is none.
    """

    detail: Detail
    source: int | None = None
    other: int | None = None
    target: int | None = None


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """All that a package does.

    Attributes:
        name: for symbols in C, an identifier in lower case.
        config: the machine.
        streams: in memory one behind the other.
        arrays: inputs, outputs and those of the workspace.
        steps: in order.
        workspace_bytes: that arrays between the steps need.
        left_out: nodes of the network that are not part of it, by name, with the reason.
    """

    name: str
    config: Config
    streams: tuple[Stream, ...]
    arrays: tuple[HostArray, ...]
    steps: tuple[Step, ...]
    workspace_bytes: int
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def inputs(self) -> tuple[HostArray, ...]:
        """In the order of their numbers."""
        return self._at("input")

    @property
    def outputs(self) -> tuple[HostArray, ...]:
        """In the order of their numbers."""
        return self._at("output")

    def _at(self, place: str) -> tuple[HostArray, ...]:
        found = [one for one in self.arrays if one.place == place]
        return tuple(sorted(found, key=lambda one: one.at))

    @property
    def memory_bytes(self) -> int:
        """That all windows together take."""
        return sum(stream.window_bytes for stream in self.streams)


# --- what steps have in common ---------------------------------------------------------------------


def row_major(shape: Shape) -> Shape:
    """Strides of an array, in values."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def broadcast_strides(shape: Shape, sizes: Shape) -> Shape:
    """Strides of an array along the axes of what it is broadcast to, in values."""
    whole = (*(1,) * (len(sizes) - len(shape)), *shape)
    return tuple(0 if size == 1 else step for size, step in zip(whole, row_major(whole), strict=True))


def copied(array: Array, dtype: str) -> bytes:
    """A constant's values as C has them in a table of bytes, little-endian."""
    return np.ascontiguousarray(array, dtype=np.dtype(dtype).newbyteorder("<")).tobytes()


def value_bytes(dtype: str) -> int:
    """Of a value."""
    return int(np.dtype(dtype).itemsize)


def one_value(value: float, dtype: str) -> bytes:
    """A value as :func:`copied` has them."""
    return copied(np.array([value]), dtype)


def placed(streams: Iterable[Stream]) -> Iterator[Stream]:
    """Streams, their windows one behind the other."""
    reached = 0
    for stream in streams:
        yield replace(stream, offset=reached)
        reached += stream.window_bytes


def bits_of(content: bytes, nbytes: int) -> list[int]:
    """Values of so many bytes each as unsigned integers of the same bits."""
    return [int(one) for one in np.frombuffer(content, dtype=np.dtype(f"u{nbytes}").newbyteorder("<"))]
