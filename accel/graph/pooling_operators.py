"""Maxima and averages."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.graph.graph_operator import (
    Operator,
    operator_error,
    require_dtype,
    require_per_tensor,
    require_same_quantization,
    saturate,
)
from accel.graph.graph_tensor import Array, Shape, Tensor
from accel.graph.quantize_values import dequantize, quantize
from accel.graph.window_geometry import Windows


def _pooled_shape(operator: Operator, windows: Windows, data: Tensor) -> Shape:
    if len(data.shape) != windows.rank + 2:
        raise operator_error(
            operator,
            f"data is {data.shape}; for a kernel of {windows.kernel} it needs {windows.rank + 2} axes",
        )
    pads = (*windows.begin, *windows.end)
    if any(pad >= extent for pad, extent in zip(pads, windows.extents * 2, strict=True)):
        raise operator_error(
            operator,
            f"pads are {windows.begin} and {windows.end}; they must be less than the windows, "
            f"{windows.extents}, so that each window contains a value",
        )
    return (*data.shape[:2], *windows.outputs(data.shape[2:]))


def _check_average(operator: Operator, data: Tensor, out: Tensor) -> None:
    if data.dtype == "float32":
        require_dtype(operator, out, "float32")
    else:
        require_per_tensor(operator, data, out)
        require_dtype(operator, out, data.dtype)


class MaxPool(Operator, frozen=True, kw_only=True):
    """The maximum of each window of (N, C, sizes...). Padding does not count."""

    windows: Windows

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        return _pooled_shape(self, self.windows, operands[0])

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        require_same_quantization(self, operands, out)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        least: Any = -np.inf if out.dtype == "float32" else np.iinfo(out.dtype).min
        padded = self.windows.padded(arrays[0], least)
        result: Any = None
        for _, values in self.windows.taps(padded):
            result = values.copy() if result is None else np.maximum(result, values, out=result)
        return np.asarray(result)


class AveragePool(Operator, frozen=True, kw_only=True):
    """The mean of each window of (N, C, sizes...).

    float32: the sum of the window, tap by tap in order, divided by its count. int8 and uint8: the same for
    dequantized values, then ``sat(rne(mean / scale + zero))``, rounded after each operation, as ONNX
    Runtime's QLinearAveragePool. Integer sums can round differently. As in ONNX Runtime, a single window of
    the operand's size is a :class:`GlobalAveragePool`.

    Attributes:
        in_float32: quantize as ``sat(rne(mean / scale) + zero)`` instead. For example, a mean of 0.5 with
            scale 1 and zero point 1 becomes 1, not rne(1.5) = 2.
    """

    windows: Windows
    count_padding: bool = False
    in_float32: bool = False

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        return _pooled_shape(self, self.windows, operands[0])

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        _check_average(self, operands[0], out)

    def counts(self, sizes: Shape) -> npt.NDArray[np.float32]:
        windows = self.windows
        if self.count_padding:
            return np.array(prod(windows.kernel), dtype=np.float32)
        inside: Any = windows.padded(np.ones(sizes, dtype=np.float32), 0)
        return np.asarray(sum(values for _, values in windows.taps(inside)), dtype=np.float32)

    def has_single_window(self, sizes: Shape) -> bool:
        """Whether one window without padding covers the operand."""
        return self.windows.extents == sizes == self.windows.kernel and not any(
            self.windows.begin + self.windows.end
        )

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        (data,), numbers, sizes = operands, arrays[0], operands[0].shape[2:]
        if out.dtype != "float32":
            if self.has_single_window(sizes) and not self.in_float32:
                return GlobalAveragePool().evaluate(operands, arrays, out)
            numbers = dequantize(numbers, data)
        total: Any = None
        for _, values in self.windows.taps(self.windows.padded(numbers, 0)):
            total = values.copy() if total is None else np.add(total, values, out=total)
        means = total / self.counts(sizes)
        if out.dtype == "float32":
            return np.asarray(means, dtype=np.float32)
        if self.in_float32:
            return quantize(means, out)
        scale, zero = out.scale_and_zero
        return saturate(means / scale + np.float32(zero), 0, out.dtype)


class GlobalAveragePool(Operator, frozen=True, kw_only=True):
    """The mean of each channel of (N, C, sizes...), with sizes of 1.

    int8 and uint8: ``sat(rne(float32(acc) * scale) + zero)``, where acc is the exact sum of ``value - zero
    point`` and the scale is ``sx / (sy * count)``.
    """

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        data = operands[0].shape
        if len(data) < 3:
            raise operator_error(self, f"data is {data}; it needs three axes or more")
        return (*data[:2], *[1] * (len(data) - 2))

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        _check_average(self, operands[0], out)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        values: Any = arrays[0]
        axes = tuple(range(2, values.ndim))
        if out.dtype == "float32":
            return np.asarray(values.mean(axis=axes, keepdims=True), dtype=np.float32)
        sums = (values.astype(np.int64) - operands[0].scale_and_zero[1]).sum(axis=axes, keepdims=True)
        scale = self.scale(operands, out)
        return saturate(sums.astype(np.int32).astype(np.float32) * scale, out.scale_and_zero[1], out.dtype)

    def scale(self, operands: Sequence[Tensor], out: Tensor) -> np.float32:
        count = np.float32(prod(operands[0].shape[2:]))
        return np.float32(operands[0].scale_and_zero[0] / (out.scale_and_zero[0] * count))
