"""Operators that work value by value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from accel.base.fma import fma
from accel.graph.functions import FUNCTIONS, apply
from accel.graph.operator import (
    Operator,
    broadcast,
    need,
    need_quantized,
    refuse,
    same_dtype,
    same_quantization,
    saturate,
)
from accel.graph.tensor import QUANTIZED, Array, Shape, Tensor


def dequantize(values: Array, tensor: Tensor) -> npt.NDArray[np.float32]:
    """The numbers that integers stand for: ``(value - zero) * scale``, float32."""
    quantization, rank = tensor.quantized, values.ndim
    shifted = values.astype(np.int64) - quantization.zeros_along(rank)
    return np.asarray(shifted.astype(np.float32) * quantization.scales_along(rank))


def quantize(numbers: npt.NDArray[np.float32], tensor: Tensor) -> Array:
    """The integers that stand for numbers: ``sat(rne(number / scale) + zero)``, NaN as the least of them."""
    quantization, rank = tensor.quantized, numbers.ndim
    bounds = np.iinfo(tensor.dtype)
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.rint(numbers / quantization.scales_along(rank))
    zeros = quantization.zeros_along(rank).astype(np.float32)
    scaled = np.where(np.isnan(scaled), -np.inf, scaled)
    return np.asarray((np.clip(scaled, bounds.min - zeros, bounds.max - zeros) + zeros).astype(tensor.dtype))


class _Single(Operator):
    """Of one operand, of its shape."""

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        return operands[0].shape


@dataclass(frozen=True, kw_only=True)
class Quantize(_Single):
    """float32 to int8 or uint8: ``sat(rne(x / scale) + zero)``."""

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        need(self, operands[0], "float32")
        need(self, out, *QUANTIZED)
        out.quantized  # noqa: B018  (it raises)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return quantize(arrays[0].astype(np.float32), out)


@dataclass(frozen=True, kw_only=True)
class Dequantize(_Single):
    """Integers to float32: ``(x - zero) * scale``."""

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        need(self, operands[0], *QUANTIZED, "int32")
        need(self, out, "float32")
        operands[0].quantized  # noqa: B018  (it raises)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return dequantize(arrays[0], operands[0])


@dataclass(frozen=True, kw_only=True)
class Requantize(_Single):
    """int8 or uint8 to other scales or the other type: as a Dequantize and a Quantize."""

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        need_quantized(self, *operands, out)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return quantize(dequantize(arrays[0], operands[0]), out)


@dataclass(frozen=True, kw_only=True)
class Reinterpret(_Single):
    """The same integers, standing for other numbers: where a file has two opinions on one tensor."""

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return arrays[0]


@dataclass(frozen=True, kw_only=True)
class Cast(_Single):
    """int32 to float32."""

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        need(self, operands[0], "int32")
        need(self, out, "float32")

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return arrays[0].astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class Clip(_Single):
    """Values within bounds.

    Attributes:
        low, high: in the tensor's own values (integers of int8 and uint8, zero points included); None for
            none.
    """

    low: float | None = None
    high: float | None = None

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        same_quantization(self, operands, out)
        for bound in (self.low, self.high):
            if bound is None or out.dtype == "float32":
                continue
            bounds = np.iinfo(out.dtype)
            if bound != int(bound) or not bounds.min <= bound <= bounds.max:
                raise refuse(
                    self, f"a bound is {bound}; {out.dtype} has integers from {bounds.min} to {bounds.max}"
                )

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        values: Any = arrays[0]
        if self.low is not None:
            values = np.maximum(values, np.asarray(self.low, dtype=values.dtype))
        if self.high is not None:  # behind the lower bound: it wins where they cross
            values = np.minimum(values, np.asarray(self.high, dtype=values.dtype))
        return np.asarray(values)


@dataclass(frozen=True, kw_only=True)
class Function(_Single):
    """A function of one variable: of float32, or of int8 and uint8 as a table of what Dequantize, function
    and Quantize give.

    Attributes:
        function: a key of :data:`~accel.graph.functions.FUNCTIONS`.
        parameters: names and values of those that are given.
    """

    function: str
    parameters: tuple[tuple[str, float], ...] = ()

    @property
    def kind(self) -> str:
        return self.function

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        if self.function not in FUNCTIONS or not {name for name, _ in self.parameters} <= set(
            FUNCTIONS[self.function][1]
        ):
            raise refuse(self, f"it has the parameters {dict(self.parameters)}; no such function is known")
        same_dtype(self, [*operands, out])
        if out.dtype != "float32":
            need_quantized(self, *operands, out)

    def table(self, operand: Tensor, out: Tensor) -> Array:
        """The results of all 256 values of the operand's type, from the least on."""
        numbers = dequantize(all_values(operand.dtype), operand)
        return quantize(apply(self.function, dict(self.parameters), numbers), out)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        if out.dtype == "float32":
            return apply(self.function, dict(self.parameters), arrays[0].astype(np.float32))
        return look_up(self.table(operands[0], out), arrays[0])


@dataclass(frozen=True, kw_only=True)
class Table(_Single):
    """A function of one int8 or uint8 operand, value by value.

    Attributes:
        values: the results of all 256 values of the operand's type, from the least on.
    """

    values: tuple[int, ...]

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        for one in (*operands, out):
            need(self, one, *QUANTIZED)
        bounds = np.iinfo(out.dtype)
        if len(self.values) != 256 or not all(bounds.min <= value <= bounds.max for value in self.values):
            raise refuse(self, f"it has {len(self.values)} entries; there must be 256 of {out.dtype}")

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return look_up(np.array(self.values, dtype=out.dtype), arrays[0])


def all_values(dtype: str) -> Array:
    """All 256 values of int8 or uint8, from the least on."""
    bounds = np.iinfo(dtype)
    return np.arange(bounds.min, bounds.max + 1).astype(dtype)


def look_up(table: Array, values: Array) -> Array:
    """The entry of each value; the first entry is that of the least value."""
    return np.asarray(table[values.astype(np.int64) - np.iinfo(values.dtype).min])


@dataclass(frozen=True, kw_only=True)
class _Sides(Operator):
    """Of two operands that broadcast."""

    COUNT: ClassVar[tuple[int, int]] = (2, 2)

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        return broadcast(self, [one.shape for one in operands])

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        same_dtype(self, [*operands, out])
        if out.dtype != "float32":
            need_quantized(self, *operands, out)


@dataclass(frozen=True, kw_only=True)
class Add(_Sides):
    """A sum.

    int8 and uint8: ``sat(rne(fma(a, ra, fma(b, rb, c))))`` with ``ra = sa / sy``, ``rb = sb / sy`` and
    ``c = zy - fma(ra, za, rb * zb)``. Where not all three have one type, ONNX Runtime has no such operator,
    and it is a Dequantize of each operand, an addition and a Quantize.
    """

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        if out.dtype == "float32":
            same_dtype(self, [*operands, out])
        else:
            need_quantized(self, *operands, out)

    @staticmethod
    def is_apart(operands: Sequence[Tensor], out: Tensor) -> bool:
        """Whether quantized operands are added as the numbers that they stand for."""
        return any(one.dtype != out.dtype for one in operands)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        if out.dtype == "float32":
            return np.asarray(arrays[0] + arrays[1])
        if self.is_apart(operands, out):
            one, other = (dequantize(*pair) for pair in zip(arrays, operands, strict=True))
            with np.errstate(over="ignore", invalid="ignore"):
                return quantize(one + other, out)
        return self.ordered(operands, arrays, out, swapped=inner_is_scalar(operands, out))

    @staticmethod
    def ordered(operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor, *, swapped: bool) -> Array:
        """The sum with its multiply-adds in either order; which one ONNX Runtime takes depends on the
        processor.

        Args:
            operands, arrays, out: as for :meth:`evaluate`, all int8 or all uint8.
            swapped: the first operand's is the inner one.
        """
        order = (1, 0) if swapped else (0, 1)
        a, b, constant = Add.factors([operands[i] for i in order], out)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            inner = fma(arrays[order[1]].astype(np.float32), b, constant)
            return saturate(fma(arrays[order[0]].astype(np.float32), a, inner), 0, out.dtype)

    @staticmethod
    def factors(operands: Sequence[Tensor], out: Tensor) -> tuple[float, float, float]:
        """``ra``, ``rb`` and ``c`` of quantized operands in the order of their multiply-adds; float32."""
        (one, one_zero), (other, other_zero) = (tensor.per_tensor for tensor in operands)
        scale, zero = out.per_tensor
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            a, b = one / scale, other / scale
            constant = np.float32(zero) - fma(a, np.float32(one_zero), b * np.float32(other_zero))
        return float(a), float(b), float(constant)


def inner_is_scalar(operands: Sequence[Tensor], out: Tensor) -> bool:
    """Whether the first operand stands still along the innermost axis that the result has; ONNX Runtime
    exchanges the operands there."""
    shapes = [(1,) * (len(out.shape) - len(one.shape)) + one.shape for one in operands]
    moving = [axis for axis, size in enumerate(out.shape) if size > 1]
    return bool(moving) and shapes[0][moving[-1]] == 1


@dataclass(frozen=True, kw_only=True)
class Mul(_Sides):
    """A product. int8 and uint8: ``sat(rne((a - za) * (b - zb) * ((sa * sb) / sy) + zy))`` in float32, with a
    rounding after each operation."""

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        if out.dtype == "float32":
            return np.asarray(arrays[0] * arrays[1])
        left_zero, right_zero = (one.per_tensor[1] for one in operands)
        zero = out.per_tensor[1]
        factors = [
            (values.astype(np.int32) - zero).astype(np.float32)
            for values, zero in zip(arrays, (left_zero, right_zero), strict=True)
        ]
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            numbers = factors[0] * factors[1] * self.factor(operands, out) + np.float32(zero)
        return saturate(numbers, 0, out.dtype)

    @staticmethod
    def factor(operands: Sequence[Tensor], out: Tensor) -> np.float32:
        """What the product of quantized operands is multiplied by: ``(sa * sb) / sy``."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return np.float32(operands[0].per_tensor[0] * operands[1].per_tensor[0] / out.per_tensor[0])


@dataclass(frozen=True, kw_only=True)
class Binary(_Sides):
    """Another function of two float32 operands.

    Attributes:
        function: its name in ONNX: Sub, Div, Min, Max, Pow or PRelu.
    """

    function: str

    FUNCTIONS: ClassVar[dict[str, Any]] = {
        "Sub": np.subtract,
        "Div": np.divide,
        "Min": np.minimum,
        "Max": np.maximum,
        "Pow": np.power,
        "PRelu": lambda x, slope: np.where(x < 0, x * slope, x),
    }

    @property
    def kind(self) -> str:
        return self.function

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        if self.function not in self.FUNCTIONS:
            raise refuse(self, "no such function is known")
        for one in (*operands, out):
            need(self, one, "float32")

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(self.FUNCTIONS[self.function](*arrays), dtype=np.float32)


@dataclass(frozen=True, kw_only=True)
class Softmax(_Single):
    """``exp(x) / sum of exp(x)`` along axes; int8 and uint8 by the numbers that they stand for. Equal to ONNX
    Runtime's within 1 after quantization.

    Attributes:
        axes: those that sums go along.
    """

    axes: tuple[int, ...]

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        if not self.axes or not set(self.axes) <= set(range(len(out.shape))):
            raise refuse(self, f"axes are {self.axes}; they must be among those of {out.shape}")
        same_dtype(self, [*operands, out])
        if out.dtype != "float32":
            need_quantized(self, *operands, out)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        quantized = out.dtype != "float32"
        numbers: Any = dequantize(arrays[0], operands[0]) if quantized else arrays[0]
        with np.errstate(all="ignore"):
            powers = np.exp(numbers.astype(np.float64) - numbers.max(axis=self.axes, keepdims=True))
            shares = (powers / powers.sum(axis=self.axes, keepdims=True)).astype(np.float32)
        return quantize(shares, out) if quantized else np.asarray(shares)


@dataclass(frozen=True, kw_only=True)
class Mean(Operator):
    """The mean of float32 values along axes, which stay, with a size of 1.

    Attributes:
        axes: those that go.
    """

    axes: tuple[int, ...]

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        sizes = operands[0].shape
        if not set(self.axes) <= set(range(len(sizes))):
            raise refuse(self, f"axes are {self.axes}; they must be among those of {sizes}")
        return tuple(1 if axis in self.axes else size for axis, size in enumerate(sizes))

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        need(self, operands[0], "float32")
        need(self, out, "float32")

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        values: Any = arrays[0]
        return np.asarray(values.mean(axis=self.axes, keepdims=True), dtype=np.float32)
