"""Quantized layers of networks: scales, zero points, int8 and uint8."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from accel.base.arguments import check_flag, check_integer, plain_integers
from accel.base.errors import ShapeError, nearest
from accel.base.records import field_names
from accel.compiler.expr.epilogue_operators import (
    AddQuantized,
    Bias,
    Finished,
    LookUp,
    MultiplyQuantized,
    PostOp,
    Requantize,
)
from accel.compiler.expr.quantization import Order, Quantization, bounds_of, check_order
from accel.compiler.expr.quantized_expressions import Addition, QuantizedSum, check_scales
from accel.compiler.expr.quantized_products import Multiplication, QuantizedProduct
from accel.compiler.expr.scalar_expressions import Dtype, Expr, cast, check_dtype
from accel.compiler.expr.table_expressions import check_entries
from accel.compiler.expr.tensor_expressions import Tensor, compute, placeholder
from accel.compiler.ops.quantized_addition import find_addition
from accel.compiler.ops.quantized_multiplication import find_multiplication

Bounds = tuple[int, int]
ResidualOperation = Literal["add", "multiply"]
RESIDUAL_OPERATIONS: tuple[ResidualOperation, ...] = get_args(ResidualOperation)


@dataclass(frozen=True, kw_only=True)
class QuantizedResidual:
    """Another layer's result to add, as in ONNX's QLinearAdd, or to multiply by, as in QLinearMul.

    The layer's result y stands for ``(y - output_zero) * result_scale``, the residual r for ``(r - zero) *
    scale``. The result is ``sum / sum_scale + sum_zero``, rounded half to even and saturated. For example,
    without zero points 10 with scale 0.5 plus 4 with scale 0.25 is 12 with ``sum_scale=0.5``. The compiler
    searches for integers with which the store unit adds or multiplies, and compares them with float32 for all
    65,536 pairs of values. ``Quantized.differences`` counts the pairs that differ.

    Attributes:
        result_scale: float32 scale of the layer's own result.
        scale, zero, dtype: those of the residual.
        sum_scale, sum_zero, sum_dtype: those of the sum or product.
        sum_clip: bounds of the sum or product, by default those of its type.
        approximate: whether pairs of values may differ from float32.
        order: see :data:`~accel.compiler.expr.quantization.ORDERS`. The left operand is the layer's own
            result, the right one the residual. For products, ``left`` and ``right`` are the same.
        operation: ``add``, or ``multiply`` on machines with ``res_mul=1``.
        per_channel: whether the residual has one value per channel of each picture, as in a
            squeeze-and-excite block: its shape is ``(N, channels, 1, 1)``. This also needs ``res_mul=1``.

    Raises:
        ShapeError: a scale is not positive, a zero point or bounds are out of range, or the type or order is
            unknown.
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
    operation: ResidualOperation = "add"
    per_channel: bool = False

    def __post_init__(self) -> None:
        for name in ("result_scale", "scale", "sum_scale"):
            _set_field(self, name, _check_scale(f"{name} of the residual", getattr(self, name)))
        _set_field(self, "zero", _check_zero("zero of the residual", self.zero, self.dtype))
        _set_field(self, "sum_zero", _check_zero("sum_zero", self.sum_zero, self.sum_dtype))
        _set_field(self, "sum_clip", _check_clip("sum_clip", self.sum_clip, self.sum_dtype))
        _set_field(self, "approximate", check_flag("approximate", self.approximate))
        _set_field(self, "order", check_order(self.order))
        _set_field(self, "per_channel", check_flag("residual_per_channel", self.per_channel))
        if self.operation not in RESIDUAL_OPERATIONS:
            known = ", ".join(RESIDUAL_OPERATIONS)
            raise ShapeError(f"residual_operation is {self.operation!r}; it must be one of {known}")

    @property
    def requires_res_mul(self) -> bool:
        return self.operation == "multiply" or self.per_channel


@dataclass(frozen=True, kw_only=True)
class QuantizedTable:
    """A function of the requantized value, such as Sigmoid: the result is ``entries[value & 255]``.

    The machine needs ``tab_bytes``.

    Attributes:
        entries: the 256 results as integers of ``dtype``. Entry 255 is that of -1, or of 255.
        dtype: ``int8`` or ``uint8``, the type of the results.
        zero: zero point of the results, for a residual that is added to them.

    Raises:
        ShapeError: there are not 256 values of the type, or the zero point is out of range.
    """

    entries: Sequence[int]
    dtype: str = "int8"
    zero: int = 0

    def __post_init__(self) -> None:
        _set_field(self, "zero", _check_zero("zero of the table", self.zero, self.dtype))
        low, high = bounds_of(self.dtype)
        given = tuple(check_entries(self.entries))
        signed = tuple(entry - 256 if entry > high else entry for entry in given)
        if signed != plain_integers(self.entries):
            raise ShapeError(f"the table has values beyond {low}..{high}; its results are {self.dtype}")
        _set_field(self, "entries", signed)

    @property
    def operator(self) -> LookUp:
        return LookUp(check_entries(self.entries), self.dtype)


@dataclass(frozen=True, kw_only=True)
class Quantized:
    """The epilogue of a quantized layer, as in ONNX's QLinearConv, QGemm and QLinearMatMul.

    ``y = clamp(rne(float32(sum) * scale) + output_zero)``, where ``sum`` is the exact int32 sum of ``(x -
    input_zero) * w`` with the bias, and rne rounds half to even. Padding stands for ``input_zero``. For
    example, with ``scale=0.01`` and ``output_zero=3`` the sum 1234 becomes 12 + 3 = 15.

    Attributes:
        scale: float32, positive: ``x_scale * w_scale / y_scale``, one number or one per output channel.
        input_zero, input_dtype: zero point and type of the input, ``int8`` or ``uint8``.
        weight_zero, weight_dtype: those of the second operand of :func:`accel.gemm`, which may be another
            layer's result. Other operators have int8 weights without a zero point. Values other than 0 and
            ``int8`` need a machine with ``wgt_zero``.
        output_zero, output_dtype: those of the result. ``int32`` keeps the sums for a host that scales them.
            Then scale is 1, and there is no bias.
        clip: bounds of the result, by default those of its type.
        table: a function of the result, or None.
        residual: another layer's result to add to the (table's) result, or None.

    Raises:
        ShapeError: a scale is not positive, a zero point or bounds are out of range, a type is unknown, or no
            integers add the residual exactly and it is not ``approximate``.
    """

    scale: float | Sequence[float] | npt.NDArray[np.float32]
    input_zero: int = 0
    input_dtype: str = "int8"
    weight_zero: int = 0
    weight_dtype: str = "int8"
    output_zero: int = 0
    output_dtype: str = "int8"
    clip: Bounds | None = None
    table: QuantizedTable | None = None
    residual: QuantizedResidual | None = None

    def __post_init__(self) -> None:
        found = check_scales(self.scale)
        _set_field(self, "scale", found[0] if len(found) == 1 else found)
        _set_field(self, "input_zero", _check_zero("input_zero", self.input_zero, self.input_dtype))
        _set_field(self, "weight_zero", _check_zero("weight_zero", self.weight_zero, self.weight_dtype))
        if self.output_dtype == "int32":
            self._check_sums()
            return
        _set_field(self, "output_zero", _check_zero("output_zero", self.output_zero, self.output_dtype))
        _set_field(self, "clip", _check_clip("clip", self.clip, self.output_dtype))
        if self.table is not None and not isinstance(self.table, QuantizedTable):
            raise ShapeError(f"the table is {self.table!r}; it must be a QuantizedTable")
        if self.residual is not None and not isinstance(self.residual, QuantizedResidual):
            raise ShapeError(f"the residual is {self.residual!r}; it must be a QuantizedResidual")
        if self.residual is not None and not self.residual.approximate and self.differences:
            name = "sum with" if self.product is None else "product with"
            raise ShapeError(
                f"the {name} the residual differs from float32 for {self.differences} of 65536 pairs of "
                f"values, with the best integers that were found; approximate=True allows that"
            )

    def _check_sums(self) -> None:
        others = (self.scale, self.output_zero, self.clip, self.table, self.residual)
        if others != (1.0, 0, None, None, None):
            raise ShapeError(
                "output_dtype is 'int32', which keeps the sums: scale must be 1 and output_zero 0, "
                "without clip, table and residual"
            )

    @cached_property
    def scales(self) -> tuple[float, ...]:
        return check_scales(self.scale)

    @property
    def bounds(self) -> Bounds:
        """Bounds of the requantized value."""
        return self.clip or bounds_of(self.output_dtype)

    @property
    def dtype(self) -> Dtype:
        """The dtype that is stored."""
        return check_dtype(self._result[0] if self.residual is None else self.residual.sum_dtype)

    @property
    def _result(self) -> tuple[str, int]:
        if self.table is None:
            return self.output_dtype, self.output_zero
        return self.table.dtype, self.table.zero

    @cached_property
    def sum(self) -> QuantizedSum | None:
        """The addition of the residual, or None."""
        one = self.residual
        if one is None or one.operation != "add":
            return None
        left, right, out, low, high = self._residual_quantizations(one)
        addition = _addition(left, right, out, low, high, one.order)
        return QuantizedSum(
            left=left, right=right, out=out, low=low, high=high, addition=addition, order=one.order
        )

    @cached_property
    def product(self) -> QuantizedProduct | None:
        one = self.residual
        if one is None or one.operation != "multiply":
            return None
        left, right, out, low, high = self._residual_quantizations(one)
        found = _multiplication(left, right, out, low, high, self._result_bounds, one.order)
        return QuantizedProduct(
            left=left, right=right, out=out, low=low, high=high, multiplication=found, order=one.order
        )

    @property
    def _result_bounds(self) -> Bounds:
        if self.table is None:
            return self.bounds
        low, high = self.bounds
        entries = [self.table.entries[value & 0xFF] for value in range(low, high + 1)]
        return min(entries), max(entries)

    def _residual_quantizations(
        self, one: QuantizedResidual
    ) -> tuple[Quantization, Quantization, Quantization, int, int]:
        dtype, zero = self._result
        left = Quantization(scale=one.result_scale, zero=zero, unsigned=dtype == "uint8")
        right = Quantization(scale=one.scale, zero=one.zero, unsigned=one.dtype == "uint8")
        out = Quantization(scale=one.sum_scale, zero=one.sum_zero, unsigned=one.sum_dtype == "uint8")
        return left, right, out, *(one.sum_clip or (out.low, out.high))

    @property
    def differences(self) -> int:
        """Pairs of values, of 65,536, that differ from float32."""
        if self.product is not None:
            return self.product.differences
        return 0 if self.sum is None else self.sum.addition.differences

    @property
    def is_empty(self) -> bool:
        return self.output_dtype == "int32"

    @property
    def form(self) -> tuple[object, ...]:
        """Equal forms differ in scales, zero points, bounds and float32's order only, so that instructions
        of layers with a bias differ in SETs only."""
        one = self.residual
        residual = None if one is None else (one.dtype, one.sum_dtype, one.operation, one.per_channel)
        is_centered = (self.input_dtype, self.input_zero == 0, self.weight_dtype, self.weight_zero == 0)
        return np.shape(self.scale), is_centered, self.output_dtype, self.table, residual

    def operators(self, channel: Expr, bias: Expr | None, residual: Expr | None) -> tuple[PostOp, ...]:
        low, high = self.bounds
        found: list[PostOp] = [] if bias is None else [Bias(bias)]
        found.append(Requantize(channel, self.scales, self.output_zero, low, high))
        if self.table is not None:
            found.append(self.table.operator)
        if residual is not None:
            if self.product is not None:
                found.append(MultiplyQuantized(residual, self.product))
            else:
                assert self.sum is not None
                found.append(AddQuantized(residual, self.sum))
        return tuple(found)

    def apply(self, sums: Expr, channel: Expr, bias: Expr | None, residual: Expr | None) -> Expr:
        return Finished(sums, self.operators(channel, bias, residual))

    @property
    def has_centered_weights(self) -> bool:
        return self.weight_dtype != "int8" or self.weight_zero != 0

    def input(self, shape: Sequence[int], name: str) -> tuple[Tensor, Tensor]:
        return _centered(shape, name, self.input_dtype, self.input_zero)

    def weights(self, shape: Sequence[int], name: str) -> Tensor:
        return _centered(shape, name, self.weight_dtype, self.weight_zero)[1]

    def check_channels(self, channels: int) -> None:
        if len(self.scales) not in (1, channels):
            raise ShapeError(f"there are {len(self.scales)} scales; the layer has {channels} output channels")

    def stored(self, length: int) -> bool:
        return True

    def folds(self, length: int) -> bool:
        return False

    def alu_operations(self) -> tuple[str, ...]:
        return ()

    def passes(self, length: int) -> int:
        return 1

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain data, one level deep."""
        scale = self.scales[0] if len(self.scales) == 1 else list(self.scales)
        found: dict[str, Any] = {"scale": scale}
        found |= {name: getattr(self, name) for name in _LAYER_FIELDS[1:] if name not in _WEIGHT_FIELDS}
        if self.has_centered_weights:
            found |= {name: getattr(self, name) for name in _WEIGHT_FIELDS}
        found["clip"] = None if self.clip is None else list(self.clip)
        if self.table is not None:
            found |= {flat: getattr(self.table, name) for flat, name in _TABLE_FIELDS.items()}
            found["table"] = list(self.table.entries)
        if self.residual is not None:
            given = {flat: getattr(self.residual, name) for flat, name in _RESIDUAL_FIELDS.items()}
            found |= {name: value for name, value in given.items() if value != _OMITTED.get(name)}
            clip = self.residual.sum_clip
            found["sum_clip"] = None if clip is None else list(clip)
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Quantized":
        """Rebuild the epilogue from :meth:`to_dict`. Missing entries and None have their defaults.

        Raises:
            ShapeError: a name is unknown, a scale is missing, or a value is out of range.
        """
        known = QUANTIZED_PARAMETERS
        for name in data:
            if name not in known:
                raise ShapeError(f"{name!r} is not a parameter of a quantized layer; {nearest(name, known)}")
        given = {name: value for name, value in data.items() if value is not None}
        if "scale" not in given:
            raise ShapeError(f"{next(iter(given), 'a quantized layer')} also needs a scale; it must be given")
        own = {name: value for name, value in given.items() if name in _LAYER_FIELDS}
        table = {_TABLE_FIELDS[name]: value for name, value in given.items() if name in _TABLE_FIELDS}
        if table and "entries" not in table:
            name = next(name for name in given if name in _TABLE_FIELDS)
            raise ShapeError(f"{name} needs the table's 256 entries; 'table' must be given")
        if table:
            own["table"] = QuantizedTable(**table)
        added = {_RESIDUAL_FIELDS[name]: value for name, value in given.items() if name in _RESIDUAL_FIELDS}
        if all(value is False for value in added.values()):
            return cls(**own)
        for name in ("result_scale", "scale", "sum_scale"):
            if name not in added:
                flat = next(one for one, field in _RESIDUAL_FIELDS.items() if field == name)
                raise ShapeError(f"the residual lacks {flat}; it must be given")
        return cls(**own, residual=QuantizedResidual(**added))


_LAYER_FIELDS = tuple(one for one in field_names(Quantized) if one not in ("table", "residual"))
_WEIGHT_FIELDS = ("weight_zero", "weight_dtype")
"""Parameters that plain data omits if they have their defaults."""
_TABLE_FIELDS = {"table" if one == "entries" else f"table_{one}": one for one in field_names(QuantizedTable)}
"""From the layer's names of the table's parameters to its fields."""
_RESIDUAL_FIELDS = {
    one if one.startswith(("sum_", "result_", "approximate")) else f"residual_{one}": one
    for one in field_names(QuantizedResidual)
}
_OMITTED = {"residual_operation": "add", "residual_per_channel": False}
QUANTIZED_PARAMETERS = (*_LAYER_FIELDS, *_TABLE_FIELDS, *_RESIDUAL_FIELDS)
"""The names in :meth:`Quantized.to_dict`."""


@lru_cache(maxsize=256)
def _addition(
    left: Quantization, right: Quantization, out: Quantization, low: int, high: int, order: Order
) -> Addition:
    return find_addition(left, right, out, low=low, high=high, order=order)


@lru_cache(maxsize=256)
def _multiplication(
    left: Quantization,
    right: Quantization,
    out: Quantization,
    low: int,
    high: int,
    left_bounds: Bounds,
    order: Order,
) -> Multiplication:
    return find_multiplication(left, right, out, low=low, high=high, left_bounds=left_bounds, order=order)


def _centered(shape: Sequence[int], name: str, dtype: str, zero: int) -> tuple[Tensor, Tensor]:
    data = placeholder(shape, dtype, name=name)
    if dtype == "int8" and not zero:
        return data, data
    return data, compute(shape, lambda *at: cast(data[at] - zero, "int16"), name=f"{name}_centered")


def _set_field(one: object, name: str, value: object) -> None:
    object.__setattr__(one, name, value)


def _check_scale(name: str, scale: object) -> float:
    found = check_scales(scale, name)
    if len(found) > 1:
        raise ShapeError(f"{name} is {len(found)} numbers; it must be one")
    return found[0]


def _check_zero(name: str, zero: object, dtype: str) -> int:
    low, high = bounds_of(dtype)
    return check_integer(name, zero, least=low, most=high)


def _check_clip(name: str, clip: object, dtype: str) -> Bounds | None:
    if clip is None:
        return None
    low, high = bounds_of(dtype)
    found = plain_integers(clip)
    if found is not None and len(found) == 2 and low <= found[0] <= found[1] <= high:
        return found[0], found[1]
    raise ShapeError(f"{name} is {clip!r}; it must be two ascending integers in {low}..{high}")
