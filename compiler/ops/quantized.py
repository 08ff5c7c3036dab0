"""Quantized layers as networks have them: scales, zero points, int8 and uint8."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.arguments import check_flag, check_integer, plain_integers
from accel.base.errors import ShapeError, nearest
from accel.compiler.expr.post import AddQuantized, Bias, Finished, PostOp, Requantize
from accel.compiler.expr.quantized import (
    Addition,
    Order,
    Quantization,
    QuantizedSum,
    bounds_of,
    check_order,
    check_scales,
)
from accel.compiler.expr.scalar import Dtype, Expr, cast, check_dtype
from accel.compiler.expr.tensor import Tensor, compute, placeholder
from accel.compiler.ops.addition import find_addition

Bounds = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class QuantizedResidual:
    """Another layer's result that is added, as ONNX's QLinearAdd does it.

    The layer's own result y stands for ``(y - output_zero) * result_scale``, the residual r for
    ``(r - zero) * scale``; their sum is given back as ``value / sum_scale + sum_zero``, rounded half to even
    and saturated. The store unit does that in integers, which are searched for and compared with float32 on
    all 65,536 pairs of values; ``Quantized.sum.addition.differences`` says how many differ.

    Attributes:
        result_scale: float32, of the layer's own result.
        scale, zero, dtype: of the residual.
        sum_scale, sum_zero, sum_dtype: of the sum.
        sum_clip: what the sum is saturated to; its type's own bounds if None.
        approximate: whether pairs of values may differ from float32.
        order: how float32 adds: with the multiply-add of the layer's own result last (``left``), with that of
            the residual last (``right``), or ``apart``, see :data:`~accel.compiler.expr.quantized.ORDERS`.

    Raises:
        ShapeError: a scale that is not positive, a zero point or bounds out of range, another type or order.
    """

    result_scale: float
    scale: float
    zero: int = 0
    dtype: str = "int8"
    sum_scale: float
    sum_zero: int = 0
    sum_dtype: str = "int8"
    sum_clip: Bounds | None = None
    approximate: bool = False
    order: Order = "left"

    def __post_init__(self) -> None:
        for name in ("result_scale", "scale", "sum_scale"):
            _settle(self, name, _one_scale(f"{name} of the residual", getattr(self, name)))
        _settle(self, "zero", _zero("zero of the residual", self.zero, self.dtype))
        _settle(self, "sum_zero", _zero("sum_zero", self.sum_zero, self.sum_dtype))
        _settle(self, "sum_clip", _clip("sum_clip", self.sum_clip, self.sum_dtype))
        _settle(self, "approximate", check_flag("approximate", self.approximate))
        _settle(self, "order", check_order(self.order))


@dataclass(frozen=True, kw_only=True)
class Quantized:
    """What follows the sums of a quantized layer, as ONNX's QLinearConv, QGemm and QLinearMatMul have it.

    ``y = clamp(rne(float32(sum) * scale) + output_zero)`` of the exact int32 sum, bias included, of
    ``(x - input_zero) * w``; rne rounds half to even. Padding stands for ``input_zero``.

    Attributes:
        scale: float32, positive: ``x_scale * w_scale / y_scale``; a number, or one for each output channel.
        input_zero, input_dtype: zero point and type of the input, ``int8`` or ``uint8``.
        output_zero, output_dtype: of the result.
        clip: what the result is saturated to, in values of its type; the type's own bounds if None.
        residual: another layer's result that is added then.

    Raises:
        ShapeError: a scale that is not positive, a zero point or bounds out of range, another type; or an
            addition that no integers do exactly, unless ``residual.approximate``.
    """

    scale: float | Sequence[float] | npt.NDArray[np.float32]
    input_zero: int = 0
    input_dtype: str = "int8"
    output_zero: int = 0
    output_dtype: str = "int8"
    clip: Bounds | None = None
    residual: QuantizedResidual | None = None

    def __post_init__(self) -> None:
        found = check_scales(self.scale)
        _settle(self, "scale", found[0] if len(found) == 1 else found)
        _settle(self, "input_zero", _zero("input_zero", self.input_zero, self.input_dtype))
        _settle(self, "output_zero", _zero("output_zero", self.output_zero, self.output_dtype))
        _settle(self, "clip", _clip("clip", self.clip, self.output_dtype))
        if self.residual is not None and not isinstance(self.residual, QuantizedResidual):
            raise ShapeError(f"the residual is {self.residual!r}; it must be a QuantizedResidual")
        if self.residual is not None and self.sum is not None and not self.residual.approximate:
            differences = self.sum.addition.differences
            if differences:
                raise ShapeError(
                    f"the sum with the residual differs from float32 for {differences} of 65536 pairs of "
                    f"values, with the best integers that were found; approximate=True allows that"
                )

    @cached_property
    def scales(self) -> tuple[float, ...]:
        """One for all channels, or one for each."""
        return check_scales(self.scale)

    @property
    def bounds(self) -> Bounds:
        """What the result is saturated to before a residual is added."""
        return self.clip or bounds_of(self.output_dtype)

    @property
    def dtype(self) -> Dtype:
        """Of what is stored."""
        return check_dtype(self.output_dtype if self.residual is None else self.residual.sum_dtype)

    @cached_property
    def sum(self) -> QuantizedSum | None:
        """How the residual is added."""
        one = self.residual
        if one is None:
            return None
        left = Quantization(
            scale=one.result_scale, zero=self.output_zero, unsigned=self.output_dtype == "uint8"
        )
        right = Quantization(scale=one.scale, zero=one.zero, unsigned=one.dtype == "uint8")
        out = Quantization(scale=one.sum_scale, zero=one.sum_zero, unsigned=one.sum_dtype == "uint8")
        low, high = one.sum_clip or (out.low, out.high)
        addition = _addition(left, right, out, low, high, one.order)
        return QuantizedSum(
            left=left, right=right, out=out, low=low, high=high, addition=addition, order=one.order
        )

    @property
    def is_empty(self) -> bool:
        """Whether the result is the sums' low 8 bits; it never is."""
        return False

    def operators(self, channel: Expr, bias: Expr | None, residual: Expr | None) -> tuple[PostOp, ...]:
        """What is done to the sums of one element, in order.

        Args:
            channel: of the element.
            bias, residual: the elements that are added; None if there is none.
        """
        low, high = self.bounds
        found: list[PostOp] = [] if bias is None else [Bias(bias)]
        found.append(Requantize(channel, self.scales, self.output_zero, low, high))
        if residual is not None:
            assert self.sum is not None
            found.append(AddQuantized(residual, self.sum))
        return tuple(found)

    def apply(self, sums: Expr, channel: Expr, bias: Expr | None, residual: Expr | None) -> Expr:
        """The result of one element."""
        return Finished(sums, self.operators(channel, bias, residual))

    def input(self, shape: Sequence[int], name: str) -> tuple[Tensor, Tensor]:
        """An input of that shape, and its values less the zero point."""
        data = placeholder(shape, self.input_dtype, name=name)
        if self.input_dtype == "int8" and not self.input_zero:
            return data, data
        zero = self.input_zero
        return data, compute(shape, lambda *at: cast(data[at] - zero, "int16"), name=f"{name}_centered")

    def check_channels(self, channels: int) -> None:
        """Refuse scales of another number of channels.

        Raises:
            ShapeError: they are.
        """
        if len(self.scales) not in (1, channels):
            raise ShapeError(f"there are {len(self.scales)} scales; the layer has {channels} output channels")

    def stored(self, length: int) -> bool:
        """Whether the store unit of a machine with ``post=1`` finishes the sums."""
        return True

    def folds(self, length: int) -> bool:
        """Reset and bias are no one operation; the store unit adds the bias."""
        return False

    def products(self) -> int:
        """Those of its operations on each accumulator that multiply: none."""
        return 0

    def passes(self, length: int) -> int:
        """Operations on each accumulator besides GEMM: the reset."""
        return 1

    def to_dict(self) -> dict[str, Any]:
        """Its parameters as plain data, one level deep; :meth:`from_dict` reads them back."""
        scale = self.scales[0] if len(self.scales) == 1 else list(self.scales)
        found: dict[str, Any] = {"scale": scale}
        found |= {name: getattr(self, name) for name in _OWN[1:]}
        found["clip"] = None if self.clip is None else list(self.clip)
        if self.residual is not None:
            found |= {flat: getattr(self.residual, name) for flat, name in _OF_RESIDUAL.items()}
            clip = self.residual.sum_clip
            found["sum_clip"] = None if clip is None else list(clip)
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Quantized":
        """The inverse of :meth:`to_dict`; what is None or left out has its default.

        Raises:
            ShapeError: an unknown name, a scale that is missing, or a bad value.
        """
        known = [*_OWN, *_OF_RESIDUAL]
        for name in data:
            if name not in known:
                raise ShapeError(f"{name!r} is no parameter of a quantized layer; {nearest(name, known)}")
        given = {name: value for name, value in data.items() if value is not None}
        if "scale" not in given:
            raise ShapeError(
                f"{next(iter(given), 'a quantized layer')} needs a scale besides; it must be given"
            )
        own = {name: value for name, value in given.items() if name in _OWN}
        added = {_OF_RESIDUAL[name]: value for name, value in given.items() if name in _OF_RESIDUAL}
        if not added or added == {"approximate": False}:
            return cls(**own)
        for name in ("result_scale", "scale", "sum_scale"):
            if name not in added:
                flat = next(one for one, field in _OF_RESIDUAL.items() if field == name)
                raise ShapeError(f"the residual lacks {flat}; it must be given")
        return cls(**own, residual=QuantizedResidual(**added))


_OWN = tuple(one.name for one in fields(Quantized) if one.name != "residual")
_OF_RESIDUAL = {
    one.name if one.name.startswith(("sum_", "result_", "approximate")) else f"residual_{one.name}": one.name
    for one in fields(QuantizedResidual)
}
"""Names of the residual's parameters beside the layer's own, and their fields."""
QUANTIZED_PARAMETERS = (*_OWN, *_OF_RESIDUAL)
"""The names of :meth:`Quantized.to_dict`."""


@lru_cache(maxsize=256)
def _addition(
    left: Quantization, right: Quantization, out: Quantization, low: int, high: int, order: Order
) -> Addition:
    return find_addition(left, right, out, low=low, high=high, order=order)


def _settle(one: object, name: str, value: object) -> None:
    object.__setattr__(one, name, value)


def _one_scale(name: str, scale: object) -> float:
    found = check_scales(scale, name)
    if len(found) > 1:
        raise ShapeError(f"{name} is {len(found)} numbers; it must be one")
    return found[0]


def _zero(name: str, zero: object, dtype: str) -> int:
    low, high = bounds_of(dtype)
    return check_integer(name, zero, least=low, most=high)


def _clip(name: str, clip: object, dtype: str) -> Bounds | None:
    if clip is None:
        return None
    low, high = bounds_of(dtype)
    found = plain_integers(clip)
    if found is not None and len(found) == 2 and low <= found[0] <= found[1] <= high:
        return found[0], found[1]
    raise ShapeError(f"{name} is {clip!r}; it must be two ascending integers in {low}..{high}")
