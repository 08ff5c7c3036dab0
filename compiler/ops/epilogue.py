"""The epilogue of a layer: operations on sums before they are stored."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from accel.base.arguments import check_flag, check_integer, plain_integers
from accel.base.errors import ShapeError
from accel.compiler.expr.epilogue_operators import (
    RELU,
    Apply,
    Bias,
    Finished,
    PostOp,
    Residual,
    Shift,
    saturate,
)
from accel.compiler.expr.scalar_expressions import Expr, as_expr
from accel.compiler.expr.tensor_expressions import LARGEST_PRODUCT, placeholder
from accel.compiler.ops.epilogue_operations import EpilogueOperation, epilogue_operations
from accel.compiler.target.alu_epilogue import folded, passes, simplified
from accel.compiler.target.store_epilogue import store_path

INT8_LOW, INT8_HIGH = -128, 127
LARGEST_SHIFT = 31
_ANY_BIAS, _ANY_RESIDUAL = placeholder((1,), "int32", name="bias")[0], placeholder((1,), name="residual")[0]
_ANY_OPERAND = placeholder((1,), "int32", name="operand")[0]
"""Arbitrary elements, to count operators."""


class Epilogue(Struct, frozen=True, kw_only=True):
    """An epilogue: ``out = clip(max((operations(sums + bias) >> shift) + residual, 0), low, high)``.

    For example, ``Epilogue(shift=3, relu=True)`` maps the sums -8, 1000 and 2000 to 0, 125 and 127.

    Attributes:
        bias: whether there is an int32 bias.
        operations: declared operations of the ALU on int32 values, in order, see
            :func:`~accel.compiler.ops.epilogue_operations.epilogue_operations`.
        shift: arithmetic right shift by 0..31, or None.
        residual: whether there is an int8 residual of the result's shape.
        relu: whether negative values become zero.
        clip: bounds of the saturation, by default those of int8. Without shift, residual, ReLU and clip,
            nothing saturates: the result holds the low 8 bits.

    Raises:
        ConfigError: an operation is not declared.
        ShapeError: a flag is not a boolean, shift, clip or an operand is out of range, or an operation
            crosses lanes.
    """

    bias: bool = False
    shift: int | None = None
    residual: bool = False
    relu: bool = False
    clip: tuple[int, int] | None = None
    operations: tuple[EpilogueOperation, ...] = ()

    def __post_init__(self) -> None:
        for name in ("bias", "residual", "relu"):
            self._set(name, check_flag(name, getattr(self, name)))
        if self.shift is not None:
            self._set("shift", check_integer("shift", self.shift, least=0, most=LARGEST_SHIFT))
        if self.clip is not None:
            self._set("clip", _check_clip(self.clip))
        self._set("operations", epilogue_operations(self.operations))

    def _set(self, name: str, value: object) -> None:
        force_setattr(self, name, value)

    @property
    def saturates(self) -> bool:
        return self.relu or self.residual or self.shift is not None or self.clip is not None

    @property
    def is_empty(self) -> bool:
        """Whether the result is the low 8 bits of the sums."""
        return not (self.bias or self.operations or self.saturates)

    @property
    def channel_operands(self) -> int:
        return sum(one.reads_channels for one in self.operations)

    def operators(
        self, bias: Expr | None, residual: Expr | None, operands: Sequence[Expr] = ()
    ) -> tuple[PostOp, ...]:
        """Return the operations on one element's sums, in order.

        ``operands`` are those of operations with an operand per channel.
        """
        found: list[PostOp] = []
        if bias is not None:
            found.append(Bias(bias))
        found += self._applied(iter(operands))
        if self.shift is not None:
            found.append(Shift(self.shift))
        if residual is not None:
            found.append(Residual(residual))
        if self.relu:
            found.append(RELU)
        if self.saturates:
            found += saturate(*(self.clip or (INT8_LOW, INT8_HIGH)))
        return tuple(found)

    def _applied(self, operands: Iterator[Expr]) -> Iterator[Apply]:
        for one in self.operations:
            yield Apply(one.operation, next(operands) if one.reads_channels else as_expr(int(one.operand)))

    def apply(
        self, sums: Expr, bias: Expr | None, residual: Expr | None = None, operands: Sequence[Expr] = ()
    ) -> Expr:
        """Return the result of one element."""
        return Finished(sums, self.operators(bias, residual, operands))

    def stored(self, length: int) -> bool:
        """Whether a store unit, not the ALU, computes the epilogue of sums of ``length`` int8 products."""
        return store_path(self._simplified(), length * LARGEST_PRODUCT) is not None

    def folds(self, length: int) -> bool:
        """Whether reset and bias become one operation for sums of ``length`` int8 products."""
        return folded(self._simplified(), length * LARGEST_PRODUCT) is not None

    def alu_operations(self) -> tuple[str, ...]:
        """Return the names of the ALU operations on an accumulator, without the reset."""
        return tuple(one.op for op in self._simplified() for one in passes(op))

    def passes(self, length: int) -> int:
        """Return the number of ALU operations per accumulator for sums of ``length`` int8 products, with the
        reset."""
        return 1 + len(self.alu_operations()) - self.folds(length)

    def _simplified(self) -> tuple[PostOp, ...]:
        bias, residual = _ANY_BIAS if self.bias else None, _ANY_RESIDUAL if self.residual else None
        return simplified(self.operators(bias, residual, [_ANY_OPERAND] * self.channel_operands))

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        clip = None if self.clip is None else list(self.clip)
        operations = {"operations": list(map(str, self.operations))} if self.operations else {}
        return operations | {
            "bias": self.bias,
            "residual": self.residual,
            "relu": self.relu,
            "shift": self.shift,
            "clip": clip,
        }


def _check_clip(clip: object) -> tuple[int, ...]:
    bounds = plain_integers(clip)
    if bounds is not None and len(bounds) == 2 and INT8_LOW <= bounds[0] <= bounds[1] <= INT8_HIGH:
        return bounds
    raise ShapeError(f"clip is {clip!r}; it must be two ascending integers in {INT8_LOW}..{INT8_HIGH}")
