"""Convolutions and matrix products."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from accel.base.blas import exact
from accel.base.records import replace
from accel.graph.graph_operator import Operator, operator_error, require_dtype, saturate
from accel.graph.graph_tensor import QUANTIZED, Array, Shape, Tensor
from accel.graph.window_geometry import Windows

_FLOAT32_EXACT_UP_TO = 1 << 24
_MAX_PRODUCT = 255 * 255
"""Of two bytes, each minus its zero point."""


class Product(Operator, frozen=True, kw_only=True):
    """The base class of products of data, weights, and optionally a bias for each output channel.

    The result's dtype determines the arithmetic:

    - int8 and uint8: ``sat(rne(float32(acc) * scale) + zero)``, where acc is the int32 sum (modulo 2^32) of
      ``(data - its zero point) * (weights - their zero point)`` and the int32 bias;
    - int32: acc itself;
    - float32: the product of float32 operands.

    Attributes:
        sum_scales: float32 scales of acc for each output channel, or empty for ``(sx * sw) / sy``, from the
            scales of data, weights and result. A product that computes the channels of two others needs the
            scales of both.
    """

    COUNT: ClassVar[tuple[int, int]] = (2, 3)

    sum_scales: tuple[float, ...] = ()

    def channel_axis(self, weights: Tensor) -> int:
        """Return the weights' axis of scales."""
        raise NotImplementedError

    def channels(self, weights: Tensor) -> int:
        return weights.shape[self.channel_axis(weights)]

    def result_axis(self, rank: int) -> int:
        """Return the result's axis of channels."""
        raise NotImplementedError

    def weight_scales(self, weights: Tensor) -> npt.NDArray[np.float32]:
        """Return float32 (1,) or (output channels,)."""
        return np.array(weights.required_quantization.scale, dtype=np.float32)

    def factor(self) -> np.float32:
        return np.float32(1)

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        data, weights = operands[:2]
        integers = out.dtype != "float32"
        for one in (data, weights):
            require_dtype(self, one, *(QUANTIZED if integers else ("float32",)))
        for bias in operands[2:]:
            require_dtype(self, bias, "int32" if integers else "float32")
        channels = self.channels(weights)
        if self.sum_scales and (out.dtype not in QUANTIZED or len(self.sum_scales) != channels):
            raise operator_error(
                self,
                f"it has {len(self.sum_scales)} scales of sums for {channels} output channels; there must be "
                "one for each, and an int8 or uint8 result",
            )
        if not integers:
            return
        data.scale_and_zero  # noqa: B018  (raises)
        axis = weights.required_quantization.axis
        wanted = self.channel_axis(weights) % len(weights.shape)
        if axis not in {None, wanted}:
            raise operator_error(
                self,
                f"the scales of weights {weights.name!r} go along axis {axis}; "
                f"they must go along {wanted}, that of output channels",
            )
        if out.dtype != "int32":
            scales = self.scales(operands, out)
            if not np.isfinite(scales).all():
                raise operator_error(
                    self,
                    f"the scale of {out.name!r} is too small for its operands'; "
                    "their quotient must be a finite float32",
                )

    def scales(self, operands: Sequence[Tensor], out: Tensor) -> npt.NDArray[np.float32]:
        """Return the scales of sums: float32 (1,) or (output channels,)."""
        if self.sum_scales:
            return np.array(self.sum_scales, dtype=np.float32)
        data = operands[0].scale_and_zero[0]
        with np.errstate(over="ignore", under="ignore"):
            return ((self.factor() * data) * self.weight_scales(operands[1])) / out.scale_and_zero[0]

    def with_channels(self, channels: Sequence[int]) -> Self:
        if not self.sum_scales:
            return self
        return replace(self, sum_scales=tuple(self.sum_scales[channel] for channel in channels))

    def sums(self, data: npt.NDArray[Any], weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        raise NotImplementedError

    def depth(self, weights: Tensor) -> int:
        raise NotImplementedError

    def along_channels(self, values: npt.NDArray[Any], rank: int) -> npt.NDArray[Any]:
        sizes = [1] * rank
        sizes[self.result_axis(rank)] = -1
        return values.reshape(sizes)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        data, weights = arrays[:2]
        rank = len(out.shape)
        bias = self.along_channels(arrays[2], rank) if len(arrays) > 2 else None
        if out.dtype == "float32":
            total = self.sums(data, weights) * self.factor()
            return np.asarray(total if bias is None else total + bias, dtype=np.float32)
        zeros = operands[1].required_quantization.zeros_along(weights.ndim)
        shifted = data.astype(np.int32) - operands[0].scale_and_zero[1], weights.astype(np.int32) - zeros
        # float64 is always exact: no tensor has 2**53 / _MAX_PRODUCT values
        is_exact = self.depth(operands[1]) * _MAX_PRODUCT <= _FLOAT32_EXACT_UP_TO
        dtype = np.float32 if is_exact else np.float64
        total = exact(self.sums)(*(one.astype(dtype) for one in shifted)).astype(np.int64)
        if bias is not None:
            total = total + bias
        sums = total.astype(np.int32)  # modulo 2**32
        if out.dtype == "int32":
            return sums
        scales = self.scales(operands, out)
        scale = self.along_channels(scales, rank) if scales.size > 1 else scales[0]
        with np.errstate(over="ignore", under="ignore"):
            return saturate(sums.astype(np.float32) * scale, out.scale_and_zero[1], out.dtype)


class Conv(Product, frozen=True, kw_only=True):
    """A convolution: data (N, C, sizes...), weights (O, C / groups, kernel...), bias (O,).

    Attributes:
        windows: padding has the value of the number zero.
    """

    windows: Windows
    groups: int = 1

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        data, weights = operands[0].shape, operands[1].shape
        rank = self.windows.rank
        if len(data) != rank + 2 or len(weights) != rank + 2 or weights[2:] != self.windows.kernel:
            raise operator_error(
                self,
                f"data is {data} and weights are {weights}; for a kernel of "
                f"{self.windows.kernel} both need {rank + 2} axes, the last of the weights the kernel's",
            )
        if self.groups < 1 or data[1] != weights[1] * self.groups or weights[0] % self.groups:
            raise operator_error(
                self,
                f"data is {data} and weights are {weights} in {self.groups} groups; "
                "channels must be those of the weights times the groups",
            )
        for bias in operands[2:]:
            if bias.shape != weights[:1]:
                raise operator_error(self, f"the bias is {bias.shape}; it must be {weights[:1]}")
        return (data[0], weights[0], *self.windows.outputs(data[2:]))

    def channel_axis(self, weights: Tensor) -> int:
        return 0

    def depth(self, weights: Tensor) -> int:
        return prod(weights.shape[1:])

    def result_axis(self, rank: int) -> int:
        return 1

    def sums(self, data: npt.NDArray[Any], weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        padded: Any = self.windows.padded(data, 0)
        batch, groups = data.shape[0], self.groups
        inner, outer = weights.shape[1], weights.shape[0] // groups
        total: Any = None
        for tap, values in self.windows.taps(padded):
            index: list[Any] = [..., *tap]
            output_sizes = values.shape[2:]
            kernel = weights[tuple(index)].reshape(1, groups, outer, inner)
            columns = values.reshape(batch, groups, inner, -1)
            part = kernel * columns if inner == 1 else kernel @ columns
            total = part if total is None else np.add(total, part, out=total)
        return np.asarray(total).reshape(batch, groups * outer, *output_sizes)

    def macs(self, operands: Sequence[Tensor], out: Tensor) -> int:
        return out.size * self.depth(operands[1])


class ConvTranspose(Product, frozen=True, kw_only=True):
    """A transposed convolution: data (N, C, sizes...), weights (C, O / groups, kernel...), bias (O,).

    Each value adds its multiple of the kernel to the result at steps of ``strides``. For example, 4 values
    with kernel 2 and stride 2 give 8.

    Attributes:
        windows: ``begin`` and ``end`` are cut off the result.
        added: values added at the end of the result, by axis.
    """

    windows: Windows
    added: Shape
    groups: int = 1

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        data, weights = operands[0].shape, operands[1].shape
        rank = self.windows.rank
        if (
            len(data) != rank + 2
            or len(weights) != rank + 2
            or weights[2:] != self.windows.kernel
            or len(self.added) != rank
            or self.groups < 1
            or data[1] != weights[0]
            or data[1] % self.groups
        ):
            raise operator_error(
                self,
                f"data is {data} and weights are {weights} in {self.groups} groups; for a kernel of "
                f"{self.windows.kernel} the weights must be (channels of data, outputs of a group, kernel)",
            )
        outputs = weights[1] * self.groups
        for bias in operands[2:]:
            if bias.shape != (outputs,):
                raise operator_error(self, f"the bias is {bias.shape}; it must be {(outputs,)}")
        sizes = tuple(
            whole - begin - end
            for whole, begin, end in zip(
                self._whole(data[2:]), self.windows.begin, self.windows.end, strict=True
            )
        )
        if min(sizes) < 1:
            raise operator_error(self, f"its pads leave a result of {sizes}; every size must be 1 or more")
        return (data[0], outputs, *sizes)

    def _whole(self, sizes: Shape) -> Shape:
        covered = self.windows.transposed_sizes(sizes)
        return tuple(n + more for n, more in zip(covered, self.added, strict=True))

    def channel_axis(self, weights: Tensor) -> int:
        return 1

    def channels(self, weights: Tensor) -> int:
        return weights.shape[1] * self.groups

    def result_axis(self, rank: int) -> int:
        return 1

    def weight_scales(self, weights: Tensor) -> npt.NDArray[np.float32]:
        scales = super().weight_scales(weights)
        return np.tile(scales, self.groups) if scales.size > 1 else scales

    def depth(self, weights: Tensor) -> int:
        return weights.shape[0] // self.groups * prod(weights.shape[2:])

    def sums(self, data: npt.NDArray[Any], weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        batch, channels, sizes, windows = data.shape[0], data.shape[1], data.shape[2:], self.windows
        inner, outer = channels // self.groups, weights.shape[1]
        whole = self._whole(sizes)
        total = np.zeros((batch, self.groups * outer, *whole), dtype=data.dtype)
        columns = data.reshape(batch, self.groups, inner, -1)
        for tap in product(*map(range, windows.kernel)):
            index: list[Any] = [..., *tap]
            kernel = weights[tuple(index)].reshape(self.groups, inner, outer).swapaxes(1, 2)
            places = [slice(None)] * 2
            places += [
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, s, n in zip(tap, windows.dilations, windows.strides, sizes, strict=True)
            ]
            total[tuple(places)] += (kernel @ columns).reshape(batch, self.groups * outer, *sizes)
        kept = (
            slice(begin, n - end) for n, begin, end in zip(whole, windows.begin, windows.end, strict=True)
        )
        return np.ascontiguousarray(total[(slice(None), slice(None), *kept)])

    def macs(self, operands: Sequence[Tensor], out: Tensor) -> int:
        return operands[0].size * prod(operands[1].shape[1:])


class MatMul(Product, frozen=True, kw_only=True):
    """A matrix product like numpy's ``matmul``: data (..., M, K), weights (..., K, N), bias (N,)."""

    alpha: float = 1.0

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        data, weights = operands[0].shape, operands[1].shape
        if min(len(data), len(weights)) < 2 or data[-1] != weights[-2]:
            raise operator_error(
                self, f"operands are {data} and {weights}; the first's columns must be the second's rows"
            )
        for bias in operands[2:]:
            if bias.shape != weights[-1:]:
                raise operator_error(self, f"the bias is {bias.shape}; it must be {weights[-1:]}")
        try:
            batch = np.broadcast_shapes(data[:-2], weights[:-2])
        except ValueError:
            raise operator_error(self, f"operands are {data} and {weights}; they do not broadcast") from None
        return (*batch, data[-2], weights[-1])

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        super().check(operands, out)
        if not np.isfinite(np.float32(self.alpha)) or (out.dtype in QUANTIZED and not self.alpha > 0):
            raise operator_error(
                self, f"alpha is {self.alpha}; it must be finite, and positive between quantized tensors"
            )

    def factor(self) -> np.float32:
        return np.float32(self.alpha)

    def channel_axis(self, weights: Tensor) -> int:
        return -1

    def depth(self, weights: Tensor) -> int:
        return weights.shape[-2]

    def result_axis(self, rank: int) -> int:
        return rank - 1

    def sums(self, data: npt.NDArray[Any], weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.asarray(data @ weights)

    def macs(self, operands: Sequence[Tensor], out: Tensor) -> int:
        return out.size * self.depth(operands[1])
