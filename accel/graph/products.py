"""Convolutions and matrix products: in integers with a requantization, in integers alone, or in float32."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from accel.base.blas import exact
from accel.graph.operator import Operator, need, refuse, saturate
from accel.graph.tensor import QUANTIZED, Array, Shape, Tensor
from accel.graph.windows import Windows

_EXACT = 1 << 24
"""Integers up to here are float32 exactly."""
_MOST = 255 * 255
"""The largest product of two differences of bytes."""


@dataclass(frozen=True, kw_only=True)
class Product(Operator):
    """What convolutions and matrix products share.

    The first two operands are data and weights, the optional third a bias with one number for each output
    channel. Three kinds of arithmetic, told apart by the result's dtype:

    - int8 and uint8: ``sat(rne(float32(acc) * scale) + zero)``, where acc is the sum of
      ``(data - its zero) * (weights - their zero)`` and of the int32 bias, wrapping at 32 bits;
    - int32: acc itself;
    - float32: of float32 operands.
    """

    COUNT: ClassVar[tuple[int, int]] = (2, 3)

    def channel_axis(self, weights: Tensor) -> int:
        """The weights' axis of output channels."""
        raise NotImplementedError

    def factor(self) -> np.float32:
        """What the sums are multiplied by, besides scales."""
        return np.float32(1)

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        data, weights = operands[:2]
        integers = out.dtype != "float32"
        for one in (data, weights):
            need(self, one, *(QUANTIZED if integers else ("float32",)))
        for bias in operands[2:]:
            need(self, bias, "int32" if integers else "float32")
        if not integers:
            return
        data.per_tensor  # noqa: B018  (it raises)
        axis = weights.quantized.axis
        wanted = self.channel_axis(weights) % len(weights.shape)
        if axis not in {None, wanted}:
            raise refuse(
                self,
                f"the scales of weights {weights.name!r} go along axis {axis}; "
                f"they must go along {wanted}, that of output channels",
            )
        if out.dtype != "int32":
            scales = self.scales(operands, out)
            if not np.isfinite(scales).all():
                raise refuse(
                    self,
                    f"the scale of {out.name!r} is too small for its operands'; "
                    "their quotient must be a finite float32",
                )

    def scales(self, operands: Sequence[Tensor], out: Tensor) -> npt.NDArray[np.float32]:
        """What requantizes the sums: float32 (1,) or one for each output channel, ``(sx * sw) / sy``."""
        data = operands[0].per_tensor[0]
        weights = np.array(operands[1].quantized.scale, dtype=np.float32)
        with np.errstate(over="ignore", under="ignore"):
            return ((self.factor() * data) * weights) / out.per_tensor[0]

    def sums(self, data: npt.NDArray[Any], weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The products' sums, of floating point arrays."""
        raise NotImplementedError

    def depth(self, weights: Tensor) -> int:
        """How many products a sum has."""
        raise NotImplementedError

    def along_channels(self, values: npt.NDArray[Any], rank: int) -> npt.NDArray[Any]:
        """One number for each output channel, in a shape that broadcasts against the result."""
        raise NotImplementedError

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        data, weights = arrays[:2]
        rank = len(out.shape)
        bias = self.along_channels(arrays[2], rank) if len(arrays) > 2 else None
        if out.dtype == "float32":
            total = self.sums(data, weights) * self.factor()
            return np.asarray(total if bias is None else total + bias, dtype=np.float32)
        zeros = operands[1].quantized.zeros_along(weights.ndim)
        shifted = data.astype(np.int32) - operands[0].per_tensor[1], weights.astype(np.int32) - zeros
        # sums are exact in float64 in any case: tensors are too small for 2**53 / _MOST products
        held = np.float32 if self.depth(operands[1]) * _MOST <= _EXACT else np.float64
        total = exact(self.sums)(shifted[0].astype(held), shifted[1].astype(held)).astype(np.int64)
        if bias is not None:
            total = total + bias
        sums = total.astype(np.int32)  # wraps
        if out.dtype == "int32":
            return sums
        scales = self.scales(operands, out)
        scale = self.along_channels(scales, rank) if scales.size > 1 else scales[0]
        with np.errstate(over="ignore", under="ignore"):
            return saturate(sums.astype(np.float32) * scale, out.per_tensor[1], out.dtype)


@dataclass(frozen=True, kw_only=True)
class Conv(Product):
    """A convolution: data (N, C, sizes...), weights (O, C / groups, kernel...), bias (O,).

    Attributes:
        windows: kernel, strides, dilations and padding. Padding stands for the number zero.
        groups: groups of channels.
    """

    windows: Windows
    groups: int = 1

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        data, weights = operands[0].shape, operands[1].shape
        rank = self.windows.rank
        if len(data) != rank + 2 or len(weights) != rank + 2 or weights[2:] != self.windows.kernel:
            raise refuse(
                self,
                f"data is {data} and weights are {weights}; for a kernel of "
                f"{self.windows.kernel} both need {rank + 2} axes, the last of the weights the kernel's",
            )
        if self.groups < 1 or data[1] != weights[1] * self.groups or weights[0] % self.groups:
            raise refuse(
                self,
                f"data is {data} and weights are {weights} in {self.groups} groups; "
                "channels must be those of the weights times the groups",
            )
        for bias in operands[2:]:
            if bias.shape != weights[:1]:
                raise refuse(self, f"the bias is {bias.shape}; it must be {weights[:1]}")
        return (data[0], weights[0], *self.windows.outputs(data[2:]))

    def channel_axis(self, weights: Tensor) -> int:
        return 0

    def depth(self, weights: Tensor) -> int:
        return prod(weights.shape[1:])

    def along_channels(self, values: npt.NDArray[Any], rank: int) -> npt.NDArray[Any]:
        return values.reshape(1, -1, *[1] * (rank - 2))

    def sums(self, data: npt.NDArray[Any], weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        padded: Any = self.windows.padded(data, 0)
        batch, groups = data.shape[0], self.groups
        inner, outer = weights.shape[1], weights.shape[0] // groups
        total: Any = None
        for tap, values in self.windows.taps(padded):
            under: list[Any] = [..., *tap]
            spots = values.shape[2:]
            kernel = weights[tuple(under)].reshape(1, groups, outer, inner)
            columns = values.reshape(batch, groups, inner, -1)
            part = kernel * columns if inner == 1 else kernel @ columns
            total = part if total is None else np.add(total, part, out=total)
        return np.asarray(total).reshape(batch, groups * outer, *spots)

    def macs(self, operands: Sequence[Tensor], out: Tensor) -> int:
        return out.size * self.depth(operands[1])


@dataclass(frozen=True, kw_only=True)
class MatMul(Product):
    """A matrix product as numpy's ``matmul`` has it: data (..., M, K), weights (..., K, N), bias (N,).

    Attributes:
        alpha: what the product is multiplied by, before the bias is added.
    """

    alpha: float = 1.0

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        data, weights = operands[0].shape, operands[1].shape
        if min(len(data), len(weights)) < 2 or data[-1] != weights[-2]:
            raise refuse(
                self, f"operands are {data} and {weights}; the first's columns must be the second's rows"
            )
        for bias in operands[2:]:
            if bias.shape != weights[-1:]:
                raise refuse(self, f"the bias is {bias.shape}; it must be {weights[-1:]}")
        try:
            batch = np.broadcast_shapes(data[:-2], weights[:-2])
        except ValueError:
            raise refuse(self, f"operands are {data} and {weights}; they do not broadcast") from None
        return (*batch, data[-2], weights[-1])

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        super().check(operands, out)
        if not np.isfinite(np.float32(self.alpha)) or (out.dtype in QUANTIZED and not self.alpha > 0):
            raise refuse(
                self, f"alpha is {self.alpha}; it must be finite, and positive between quantized tensors"
            )

    def factor(self) -> np.float32:
        return np.float32(self.alpha)

    def channel_axis(self, weights: Tensor) -> int:
        return -1

    def depth(self, weights: Tensor) -> int:
        return weights.shape[-2]

    def along_channels(self, values: npt.NDArray[Any], rank: int) -> npt.NDArray[Any]:
        return values.reshape(*[1] * (rank - 1), -1)

    def sums(self, data: npt.NDArray[Any], weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.asarray(data @ weights)

    def macs(self, operands: Sequence[Tensor], out: Tensor) -> int:
        return out.size * self.depth(operands[1])
