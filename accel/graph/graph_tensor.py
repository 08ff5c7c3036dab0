"""Tensors of a graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.errors import GraphError

_KNOWN_DTYPES = ("float32", "int8", "uint8", "int32")
"""Dtypes of the graph's own operators."""
FOREIGN_DTYPES = ("int64", "bool", "float16", "float64", "int16", "uint16", "uint32", "uint64")
"""Dtypes of foreign operators only."""
DTYPES = (*_KNOWN_DTYPES, *FOREIGN_DTYPES)
QUANTIZED = ("int8", "uint8")
"""Dtypes with a scale and a zero point."""
MAX_TENSOR_BYTES = 1 << 30
"""Larger ones are refused before memory is allocated."""
MAX_RANK = 8

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


class Quantization(Struct, frozen=True, kw_only=True):
    """The real numbers that integers stand for: ``(value - zero) * scale``.

    For example, with scale 0.5 and zero point 3, the integer 7 stands for 2.0.

    Attributes:
        scale: float32, positive and finite: one, or one for each index along ``axis``.
        axis: None for a single scale and zero point.
    """

    scale: tuple[float, ...]
    zero: tuple[int, ...]
    axis: int | None = None

    def __post_init__(self) -> None:
        if len(self.scale) != len(self.zero) or (self.axis is None and len(self.scale) != 1):
            raise GraphError(
                f"a quantization has {len(self.scale)} scales and {len(self.zero)} zero points; "
                "there must be as many, and one of each where there is no axis"
            )
        for scale in self.scale:
            if not (math.isfinite(scale) and scale > 0):
                raise GraphError(f"a scale is {scale!r}; it must be a positive finite number")

    @classmethod
    def of(cls, scale: npt.ArrayLike, zero: npt.ArrayLike = 0, axis: int | None = None) -> Quantization:
        """Convert arrays, and repeat a single scale or zero point. Without several, ``axis`` is ignored."""
        scales, zeros = (np.atleast_1d(np.asarray(one)) for one in (scale, zero))
        if scales.ndim != 1 or zeros.ndim != 1:
            raise GraphError(
                f"scales have the shape {scales.shape} and zero points {zeros.shape}; both must be one, or "
                "one for each channel"
            )
        count = max(scales.size, zeros.size)
        if not {scales.size, zeros.size} <= {1, count} or 0 in (scales.size, zeros.size):
            raise GraphError(
                f"there are {scales.size} scales and {zeros.size} zero points; there must be as many, or one"
            )
        if count > 1 and axis is None:
            raise GraphError(f"there are {count} scales; one for each channel needs an axis")
        return cls(
            scale=tuple(np.broadcast_to(scales.astype(np.float32), count).tolist()),
            zero=tuple(np.broadcast_to(zeros, count).tolist()),
            axis=None if count == 1 else axis,
        )

    @property
    def is_per_tensor(self) -> bool:
        return self.axis is None

    def scales(self) -> npt.NDArray[np.float32]:
        """float32 (), or (C,) along the axis."""
        values = np.array(self.scale, dtype=np.float32)
        return values[0] if self.axis is None else values

    def scales_along(self, rank: int) -> npt.NDArray[np.float32]:
        return np.array(self.scale, dtype=np.float32).reshape(self._along(rank))

    def zeros_along(self, rank: int) -> npt.NDArray[np.int32]:
        return np.array(self.zero, dtype=np.int32).reshape(self._along(rank))

    def _along(self, rank: int) -> Shape:
        return tuple(-1 if axis == self.axis else 1 for axis in range(rank))


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """A tensor of a graph."""

    name: str
    shape: Shape
    dtype: str
    quantization: Quantization | None = None

    def __post_init__(self) -> None:
        check_shape(self.name, self.shape, self.dtype)
        quantization = self.quantization
        if quantization is None:
            return
        axis = quantization.axis
        if axis is not None and not (
            0 <= axis < len(self.shape) and self.shape[axis] == len(quantization.scale)
        ):
            raise GraphError(
                f"tensor {self.name!r} of shape {self.shape} has {len(quantization.scale)} scales along axis "
                f"{axis}; there must be one for each index"
            )
        if np.dtype(self.dtype).kind not in "iu":
            raise GraphError(f"tensor {self.name!r} is {self.dtype} and has a scale; only integers do")
        bounds = np.iinfo(self.dtype)
        for zero in quantization.zero:
            if not bounds.min <= zero <= bounds.max:
                raise GraphError(
                    f"a zero point of tensor {self.name!r} is {zero}; {self.dtype} has {bounds.min} to "
                    f"{bounds.max}"
                )

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * np.dtype(self.dtype).itemsize

    @property
    def required_quantization(self) -> Quantization:
        if self.quantization is None:
            raise GraphError(f"tensor {self.name!r} has no scale and zero point; its operators need them")
        return self.quantization

    @property
    def scale_and_zero(self) -> tuple[np.float32, np.int32]:
        """A single scale and zero point, or a GraphError."""
        quantization = self.required_quantization
        if quantization.axis is not None:
            raise GraphError(
                f"tensor {self.name!r} has {len(quantization.scale)} scales; here it must have one"
            )
        return np.float32(quantization.scale[0]), np.int32(quantization.zero[0])


def check_shape(name: str, shape: Sequence[int], dtype: str) -> None:
    """Raise a GraphError for an unsupported or too large tensor."""
    if dtype not in DTYPES:
        raise GraphError(f"tensor {name!r} is {dtype}; graphs have {', '.join(DTYPES)}")
    if len(shape) > MAX_RANK:
        raise GraphError(f"tensor {name!r} has {len(shape)} dimensions; there may be {MAX_RANK}")
    if any(size < 1 for size in shape):
        raise GraphError(f"tensor {name!r} has the shape {tuple(shape)}; sizes must be positive")
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size > MAX_TENSOR_BYTES:
        raise GraphError(
            f"tensor {name!r} of shape {tuple(shape)} takes {size} bytes; it may take {MAX_TENSOR_BYTES}"
        )


def random_values(rng: np.random.Generator, tensor: Tensor, low: float = -1, high: float = 1) -> Array:
    """Return floats from ``low`` to ``high``, or integers of their full range.

    Foreign operators' integers are 0 or 1, because they are indices and masks.
    """
    if np.dtype(tensor.dtype).kind == "f":
        return rng.uniform(low, high, tensor.shape).astype(tensor.dtype)
    if tensor.dtype in FOREIGN_DTYPES:
        return rng.integers(0, 2, tensor.shape).astype(tensor.dtype)
    bounds = np.iinfo(tensor.dtype)
    return rng.integers(bounds.min, bounds.max, tensor.shape, tensor.dtype, endpoint=True)
