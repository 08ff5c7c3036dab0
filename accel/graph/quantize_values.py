"""Conversion between integers and numbers, as in ONNX Runtime."""

import numpy as np
import numpy.typing as npt

from accel.graph.graph_tensor import Array, Tensor


def dequantize(values: Array, tensor: Tensor) -> npt.NDArray[np.float32]:
    quantization, rank = tensor.required_quantization, values.ndim
    shifted = values.astype(np.int64) - quantization.zeros_along(rank)
    return np.asarray(shifted.astype(np.float32) * quantization.scales_along(rank))


def quantize(numbers: npt.NDArray[np.float32], tensor: Tensor) -> Array:
    """Return ``sat(rne(number / scale) + zero)``; NaN becomes the least integer."""
    quantization, rank = tensor.required_quantization, numbers.ndim
    bounds = np.iinfo(tensor.dtype)
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.rint(numbers / quantization.scales_along(rank))
    zeros = quantization.zeros_along(rank).astype(np.float32)
    scaled = np.where(np.isnan(scaled), -np.inf, scaled)
    return np.asarray((np.clip(scaled, bounds.min - zeros, bounds.max - zeros) + zeros).astype(tensor.dtype))


def quantize_number(number: float, tensor: Tensor) -> int:
    return int(quantize(np.array([number], dtype=np.float32), tensor)[0])


def all_values(dtype: str) -> Array:
    bounds = np.iinfo(dtype)
    return np.arange(bounds.min, bounds.max + 1).astype(dtype)


def look_up(table: Array, values: Array) -> Array:
    """Look values up. The first entry belongs to the least value of the dtype."""
    return np.asarray(table[values.astype(np.int64) - np.iinfo(values.dtype).min])
