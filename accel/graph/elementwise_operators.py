"""Elementwise operators, Softmax and Mean."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from accel.base.fma import fma
from accel.graph.float_functions import FUNCTIONS, apply_function
from accel.graph.graph_operator import (
    Operator,
    broadcast,
    operator_error,
    require_dtype,
    require_per_tensor,
    require_same_dtype,
    require_same_quantization,
    saturate,
)
from accel.graph.graph_tensor import QUANTIZED, Array, Shape, Tensor
from accel.graph.movement_operators import Identity, Reshape
from accel.graph.quantize_values import all_values, dequantize, look_up, quantize


class _Unary(Operator, frozen=True, kw_only=True):
    def shape(self, operands: Sequence[Tensor]) -> Shape:
        return operands[0].shape


class Quantize(_Unary, frozen=True, kw_only=True):
    """float32 to int8 or uint8: ``sat(rne(x / scale) + zero)``."""

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        require_dtype(self, operands[0], "float32")
        require_dtype(self, out, *QUANTIZED)
        out.required_quantization  # noqa: B018  (raises)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return quantize(arrays[0].astype(np.float32), out)


class Dequantize(_Unary, frozen=True, kw_only=True):
    """Integers to float32: ``(x - zero) * scale``."""

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        require_dtype(self, operands[0], *QUANTIZED, "int32")
        require_dtype(self, out, "float32")
        operands[0].required_quantization  # noqa: B018  (raises)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return dequantize(arrays[0], operands[0])


class Requantize(_Unary, frozen=True, kw_only=True):
    """int8 or uint8 to another quantization: a Dequantize and a Quantize."""

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        require_per_tensor(self, *operands, out)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return quantize(dequantize(arrays[0], operands[0]), out)


class Reinterpret(_Unary, frozen=True, kw_only=True):
    """The same integers with another quantization."""

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return arrays[0]


SAME_BYTES = Identity | Reshape | Reinterpret
"""Operators that keep the bytes of the operand and their order."""


class Cast(_Unary, frozen=True, kw_only=True):
    """int32 to float32."""

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        require_dtype(self, operands[0], "int32")
        require_dtype(self, out, "float32")

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return arrays[0].astype(np.float32)


class Clip(_Unary, frozen=True, kw_only=True):
    """Bounds of values.

    Attributes:
        low, high: stored values. A ReLU of an int8 or uint8 tensor with zero point 12 has ``low=12``.
    """

    low: float | None = None
    high: float | None = None

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        require_same_quantization(self, operands, out)
        for bound in (self.low, self.high):
            if bound is None or out.dtype == "float32":
                continue
            bounds = np.iinfo(out.dtype)
            if bound != int(bound) or not bounds.min <= bound <= bounds.max:
                raise operator_error(
                    self, f"a bound is {bound}; {out.dtype} has integers from {bounds.min} to {bounds.max}"
                )

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        values: Any = arrays[0]
        if self.low is not None:
            values = np.maximum(values, np.asarray(self.low, dtype=values.dtype))
        if self.high is not None:  # the upper bound wins if they cross
            values = np.minimum(values, np.asarray(self.high, dtype=values.dtype))
        return np.asarray(values)


class Function(_Unary, frozen=True, kw_only=True):
    """A function of one variable. On int8 and uint8 it is a table of 256 values."""

    function: str
    parameters: tuple[tuple[str, float], ...] = ()
    entries: tuple[int, ...] = ()
    """ONNX Runtime's results of the 256 ascending values of int8 or uint8, or empty for numpy's."""

    @property
    def kind(self) -> str:
        return self.function

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        if self.function not in FUNCTIONS or not {name for name, _ in self.parameters} <= set(
            FUNCTIONS[self.function][1]
        ):
            raise operator_error(
                self, f"it has the parameters {dict(self.parameters)}; no such function is known"
            )
        require_same_dtype(self, [*operands, out])
        if out.dtype != "float32":
            require_per_tensor(self, *operands, out)
            check_entries(self, self.entries, out, empty=True)

    def table(self, operand: Tensor, out: Tensor) -> Array:
        if self.entries:
            return np.array(self.entries, out.dtype)
        numbers = dequantize(all_values(operand.dtype), operand)
        return quantize(apply_function(self.function, dict(self.parameters), numbers), out)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        if out.dtype == "float32":
            return apply_function(self.function, dict(self.parameters), arrays[0].astype(np.float32))
        return look_up(self.table(operands[0], out), arrays[0])


def check_entries(operator: Operator, entries: tuple[int, ...], out: Tensor, *, empty: bool = False) -> None:
    bounds = np.iinfo(out.dtype)
    if empty and not entries:
        return
    if len(entries) != 256 or not all(bounds.min <= value <= bounds.max for value in entries):
        raise operator_error(operator, f"it has {len(entries)} entries; there must be 256 of {out.dtype}")


class Table(_Unary, frozen=True, kw_only=True):
    """256 results of ascending int8 or uint8 values."""

    values: tuple[int, ...]

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        for one in (*operands, out):
            require_dtype(self, one, *QUANTIZED)
        check_entries(self, self.values, out)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return look_up(np.array(self.values, dtype=out.dtype), arrays[0])


class ChannelTable(_Unary, frozen=True, kw_only=True):
    """A function of one int8 or uint8 value for each channel along ``axis``.

    The second operand is constant: (channels, 256) results of ascending values, or (1, 256) for all channels,
    for example (32, 256) for a PRelu with 32 slopes.
    """

    COUNT: ClassVar[tuple[int, int]] = (2, 2)

    axis: int = 1

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        data, entries = operands
        require_dtype(self, data, *QUANTIZED)
        require_dtype(self, out, *QUANTIZED)
        require_dtype(self, entries, out.dtype)
        axis_is_valid = 0 <= self.axis < len(data.shape)
        if entries.shape != (1, 256) and not (
            axis_is_valid and entries.shape == (data.shape[self.axis], 256)
        ):
            raise operator_error(
                self,
                f"the shape of its results is {entries.shape}; "
                f"each channel of axis {self.axis} of {data.shape} needs 256",
            )

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        values, entries = arrays
        if len(entries) == 1:
            return look_up(entries[0], values)
        shape = [-1 if axis == self.axis else 1 for axis in range(values.ndim)]
        places = values.astype(np.int64) - np.iinfo(values.dtype).min
        return np.asarray(entries[np.arange(len(entries)).reshape(shape), places])


class _Broadcasting(Operator, frozen=True, kw_only=True):
    COUNT: ClassVar[tuple[int, int]] = (2, 2)

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        return broadcast(self, [one.shape for one in operands])

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        require_same_dtype(self, [*operands, out])
        if out.dtype != "float32":
            require_per_tensor(self, *operands, out)


class Add(_Broadcasting, frozen=True, kw_only=True):
    """A sum.

    int8 and uint8: ``sat(rne(fma(a, ra, fma(b, rb, c))))`` with ``ra = sa / sy``, ``rb = sb / sy`` and ``c =
    zy - fma(ra, za, rb * zb)``, as ONNX Runtime's QLinearAdd. With several dtypes, ONNX Runtime dequantizes,
    adds in float32 and quantizes. int32: modulo 2^32.
    """

    in_float32: bool = False

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        if out.dtype in {"float32", "int32"}:
            require_same_dtype(self, [*operands, out])
        else:
            require_per_tensor(self, *operands, out)

    def adds_float32(self, operands: Sequence[Tensor], out: Tensor) -> bool:
        return self.in_float32 or any(one.dtype != out.dtype for one in operands)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        if out.dtype in {"float32", "int32"}:
            return np.asarray(arrays[0] + arrays[1])
        if self.adds_float32(operands, out):
            left, right = (dequantize(*pair) for pair in zip(arrays, operands, strict=True))
            with np.errstate(over="ignore", invalid="ignore"):
                return quantize(left + right, out)
        return self.ordered(operands, arrays, out, swapped=swaps_operands(operands, out))

    @staticmethod
    def ordered(operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor, *, swapped: bool) -> Array:
        """ONNX Runtime's order of multiply-adds depends on the processor.

        If ``swapped``, the inner one is the first operand's.
        """
        order = (1, 0) if swapped else (0, 1)
        a, b, constant = Add.factors([operands[i] for i in order], out)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            inner = fma(arrays[order[1]].astype(np.float32), b, constant)
            return saturate(fma(arrays[order[0]].astype(np.float32), a, inner), 0, out.dtype)

    @staticmethod
    def factors(operands: Sequence[Tensor], out: Tensor) -> tuple[float, float, float]:
        """Return ``ra``, ``rb`` and ``c``. Operands are in the order of multiply-adds."""
        (one, one_zero), (other, other_zero) = (tensor.scale_and_zero for tensor in operands)
        scale, zero = out.scale_and_zero
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            a, b = one / scale, other / scale
            constant = np.float32(zero) - fma(a, np.float32(one_zero), b * np.float32(other_zero))
        return float(a), float(b), float(constant)


def swaps_operands(operands: Sequence[Tensor], out: Tensor) -> bool:
    """Whether ONNX Runtime swaps the operands of an addition: the first has size 1 along the last axis in
    which the result has more.
    """
    shapes = [(1,) * (len(out.shape) - len(one.shape)) + one.shape for one in operands]
    varying = [axis for axis, size in enumerate(out.shape) if size > 1]
    return bool(varying) and shapes[0][varying[-1]] == 1


class Mul(_Broadcasting, frozen=True, kw_only=True):
    """A product. int8 and uint8: ``sat(rne((a - za) * (b - zb) * ((sa * sb) / sy) + zy))`` in float32,
    rounded after each operation, as ONNX Runtime's QLinearMul.
    """

    in_float32: bool = False

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        if out.dtype == "float32":
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                return np.asarray(arrays[0] * arrays[1])
        if self.in_float32:
            left, right = (dequantize(*pair) for pair in zip(arrays, operands, strict=True))
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                return quantize(left * right, out)
        zero = out.scale_and_zero[1]
        left, right = (
            (values.astype(np.int32) - one.scale_and_zero[1]).astype(np.float32)
            for values, one in zip(arrays, operands, strict=True)
        )
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            numbers = left * right * self.factor(operands, out) + np.float32(zero)
        return saturate(numbers, 0, out.dtype)

    @staticmethod
    def factor(operands: Sequence[Tensor], out: Tensor) -> np.float32:
        left, right = (one.scale_and_zero[0] for one in operands)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return np.float32(left * right / out.scale_and_zero[0])


class Binary(_Broadcasting, frozen=True, kw_only=True):
    """Another function of two float32 operands. Min and Max also compare integers.

    Attributes:
        function: Sub, Div, Min, Max, Pow or PRelu.
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
    COMPARING: ClassVar[frozenset[str]] = frozenset({"Min", "Max"})

    @property
    def kind(self) -> str:
        return self.function

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        if self.function not in self.FUNCTIONS:
            raise operator_error(self, "no such function is known")
        if self.function in self.COMPARING:
            require_same_dtype(self, [*operands, out])
            return
        for one in (*operands, out):
            require_dtype(self, one, "float32")

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(self.FUNCTIONS[self.function](*arrays), dtype=out.dtype)


class Softmax(_Unary, frozen=True, kw_only=True):
    """``exp(x) / sum of exp(x)``. int8 and uint8: of dequantized values, within 1 of ONNX Runtime."""

    axes: tuple[int, ...]

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        if not self.axes or not set(self.axes) <= set(range(len(out.shape))):
            raise operator_error(self, f"axes are {self.axes}; they must be among those of {out.shape}")
        require_same_dtype(self, [*operands, out])
        if out.dtype != "float32":
            require_per_tensor(self, *operands, out)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        is_quantized = out.dtype != "float32"
        numbers: Any = dequantize(arrays[0], operands[0]) if is_quantized else arrays[0]
        with np.errstate(all="ignore"):
            powers = np.exp(numbers.astype(np.float64) - numbers.max(axis=self.axes, keepdims=True))
            shares = (powers / powers.sum(axis=self.axes, keepdims=True)).astype(np.float32)
        return quantize(shares, out) if is_quantized else np.asarray(shares)


class Mean(Operator, frozen=True, kw_only=True):
    """The mean of float32 values over axes, which keep size 1."""

    axes: tuple[int, ...]

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        sizes = operands[0].shape
        if not set(self.axes) <= set(range(len(sizes))):
            raise operator_error(self, f"axes are {self.axes}; they must be among those of {sizes}")
        return tuple(1 if axis in self.axes else size for axis, size in enumerate(sizes))

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        require_dtype(self, operands[0], "float32")
        require_dtype(self, out, "float32")

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        values: Any = arrays[0]
        return np.asarray(values.mean(axis=self.axes, keepdims=True), dtype=np.float32)
