"""Pooling: means and maxima over windows, and over everything."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.graph.operator import Operator, need, need_quantized, refuse, same_quantization, saturate
from accel.graph.tensor import Array, Shape, Tensor
from accel.graph.windows import Windows


def _pooled(operator: Operator, windows: Windows, data: Tensor) -> Shape:
    if len(data.shape) != windows.rank + 2:
        raise refuse(
            operator,
            f"data is {data.shape}; for a kernel of {windows.kernel} it needs {windows.rank + 2} axes",
        )
    if any(
        pad >= extent for pad, extent in zip((*windows.begin, *windows.end), windows.extents * 2, strict=True)
    ):
        raise refuse(
            operator,
            f"windows cover {windows.extents} and pads are {windows.begin} and {windows.end}; "
            "a window would see nothing but padding",
        )
    return (*data.shape[:2], *windows.outputs(data.shape[2:]))


@dataclass(frozen=True, kw_only=True)
class MaxPool(Operator):
    """The maximum of each window of (N, C, sizes...); padding is never one.

    Attributes:
        windows: kernel, strides, dilations and padding.
    """

    windows: Windows

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        return _pooled(self, self.windows, operands[0])

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        same_quantization(self, operands, out)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        least: Any = -np.inf if out.dtype == "float32" else np.iinfo(out.dtype).min
        padded = self.windows.padded(arrays[0], least)
        result: Any = None
        for _, values in self.windows.taps(padded):
            result = values.copy() if result is None else np.maximum(result, values, out=result)
        return np.asarray(result)


@dataclass(frozen=True, kw_only=True)
class AveragePool(Operator):
    """The mean of each window of (N, C, sizes...).

    float32: the window's sum, tap by tap in order, over its count. int8 and uint8: the same of the numbers
    that they stand for, then ``sat(rne(mean / scale + zero))`` with a rounding after each operation. The
    order matters: a sum in integers differs now and then. A single window of the operand's size without
    padding is a :class:`GlobalAveragePool` instead, in ONNX Runtime, too.

    Attributes:
        windows: kernel, strides, dilations and padding.
        count_padding: whether padding counts.
    """

    windows: Windows
    count_padding: bool = False

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        return _pooled(self, self.windows, operands[0])

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        if operands[0].dtype == "float32":
            need(self, out, "float32")
        else:
            need_quantized(self, operands[0], out)
            need(self, out, operands[0].dtype)

    def counts(self, sizes: Shape) -> npt.NDArray[np.float32]:
        """How many values each window's mean is over."""
        windows = self.windows
        if self.count_padding:
            return np.array(prod(windows.kernel), dtype=np.float32)
        inside: Any = windows.padded(np.ones(sizes, dtype=np.float32), 0)
        return np.asarray(sum(values for _, values in windows.taps(inside)), dtype=np.float32)

    def is_global(self, sizes: Shape) -> bool:
        """Whether there is one window, over all that the operand has."""
        return self.windows.extents == sizes == self.windows.kernel and not any(
            self.windows.begin + self.windows.end
        )

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        numbers: Any = arrays[0]
        if out.dtype != "float32" and self.is_global(operands[0].shape[2:]):
            return GlobalAveragePool().evaluate(operands, arrays, out)
        if out.dtype != "float32":
            scale, zero = operands[0].per_tensor
            numbers = (numbers.astype(np.int32) - zero).astype(np.float32) * scale
        total: Any = None
        for _, values in self.windows.taps(self.windows.padded(numbers, 0)):
            total = values.copy() if total is None else np.add(total, values, out=total)
        means = total / self.counts(operands[0].shape[2:])
        if out.dtype == "float32":
            return np.asarray(means, dtype=np.float32)
        scale, zero = out.per_tensor
        return saturate(means / scale + np.float32(zero), 0, out.dtype)


@dataclass(frozen=True, kw_only=True)
class GlobalAveragePool(Operator):
    """The mean of each channel of (N, C, sizes...), with sizes of 1.

    int8 and uint8: ``sat(rne(float32(acc) * scale) + zero)`` where acc is the exact sum of
    ``value - zero point`` and the scale is ``sx / (sy * count)``.
    """

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        data = operands[0].shape
        if len(data) < 3:
            raise refuse(self, f"data is {data}; it needs three axes or more")
        return (*data[:2], *[1] * (len(data) - 2))

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        if operands[0].dtype == "float32":
            need(self, out, "float32")
        else:
            need_quantized(self, operands[0], out)
            need(self, out, operands[0].dtype)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        values: Any = arrays[0]
        axes = tuple(range(2, values.ndim))
        if out.dtype == "float32":
            return np.asarray(values.mean(axis=axes, keepdims=True), dtype=np.float32)
        sums = (values.astype(np.int64) - operands[0].per_tensor[1]).sum(axis=axes, keepdims=True)
        scale = self.scale(operands, out)
        return saturate(sums.astype(np.int32).astype(np.float32) * scale, out.per_tensor[1], out.dtype)

    def scale(self, operands: Sequence[Tensor], out: Tensor) -> np.float32:
        """What requantizes the sums."""
        count = np.float32(prod(operands[0].shape[2:]))
        return np.float32(operands[0].per_tensor[0] / (out.per_tensor[0] * count))
