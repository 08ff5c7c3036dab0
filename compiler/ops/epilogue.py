"""What happens to sums before they are stored."""

from dataclasses import dataclass
from typing import Any

from accel.base.arguments import check_flag, check_integer, plain_integers
from accel.base.errors import ShapeError
from accel.compiler.expr.post import RELU, Bias, Finished, PostOp, Residual, Shift, saturate
from accel.compiler.expr.scalar import Expr
from accel.compiler.expr.tensor import LARGEST_PRODUCT, placeholder
from accel.compiler.target.finish import ALU_NAMES, folded, passes, simplified
from accel.compiler.target.store import store_path

INT8_LOW, INT8_HIGH = -128, 127
LARGEST_SHIFT = 31
_BIAS, _RESIDUAL = placeholder((1,), "int32", name="bias")[0], placeholder((1,), name="residual")[0]
"""Any elements, where only their number counts."""


@dataclass(frozen=True, kw_only=True)
class Epilogue:
    """Plus bias, arithmetic shift right, plus residual, ReLU, saturation, in this order.

    ``out = clip(max(((sums + bias) >> shift) + residual, 0), low, high)``

    Attributes:
        bias: whether one is added, int32 and before the shift.
        shift: 0..31, or None.
        residual: whether another int8 tensor of the result's shape is added, after the shift.
        relu: negative values become zero.
        clip: what to saturate to, within int8; int8's own bounds if None. Without shift, residual, ReLU and
            clip nothing saturates: the result holds the low 8 bits.

    Raises:
        ShapeError: a flag that is no boolean, or shift or clip out of range.
    """

    bias: bool = False
    shift: int | None = None
    residual: bool = False
    relu: bool = False
    clip: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        for name in ("bias", "residual", "relu"):
            self._set(name, check_flag(name, getattr(self, name)))
        if self.shift is not None:
            self._set("shift", check_integer("shift", self.shift, least=0, most=LARGEST_SHIFT))
        if self.clip is not None:
            self._set("clip", _bounds(self.clip))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def saturates(self) -> bool:
        return self.relu or self.residual or self.shift is not None or self.clip is not None

    @property
    def is_empty(self) -> bool:
        """Whether the result is the sums' low 8 bits."""
        return not (self.bias or self.saturates)

    def operators(self, bias: Expr | None, residual: Expr | None) -> tuple[PostOp, ...]:
        """What is done to the sums of one element, in order.

        Args:
            bias, residual: the elements that are added; None if there is none.
        """
        found: list[PostOp] = []
        if bias is not None:
            found.append(Bias(bias))
        if self.shift is not None:
            found.append(Shift(self.shift))
        if residual is not None:
            found.append(Residual(residual))
        if self.relu:
            found.append(RELU)
        if self.saturates:
            found += saturate(*(self.clip or (INT8_LOW, INT8_HIGH)))
        return tuple(found)

    def apply(self, sums: Expr, bias: Expr | None, residual: Expr | None = None) -> Expr:
        """The result of one element."""
        return Finished(sums, self.operators(bias, residual))

    def stored(self, length: int) -> bool:
        """Whether the store unit of a machine with ``post=1`` finishes the sums, rather than the ALU.

        Args:
            length: int8 products in a sum.
        """
        return store_path(self._simplified(), length * LARGEST_PRODUCT) is not None

    def folds(self, length: int) -> bool:
        """Whether reset and bias become one operation.

        Args:
            length: int8 products in a sum.
        """
        return folded(self._simplified(), length * LARGEST_PRODUCT) is not None

    def products(self) -> int:
        """Those of its operations on each accumulator that multiply."""
        return sum(one.op == ALU_NAMES["*"] for op in self._simplified() for one in passes(op))

    def passes(self, length: int) -> int:
        """Operations on each accumulator besides GEMM, the reset among them.

        Args:
            length: int8 products in a sum.
        """
        each = (len(passes(op)) for op in self._simplified())
        return 1 + sum(each) - self.folds(length)

    def _simplified(self) -> tuple[PostOp, ...]:
        """The operators that the compiler will find, on any elements."""
        bias, residual = _BIAS if self.bias else None, _RESIDUAL if self.residual else None
        return simplified(self.operators(bias, residual))

    def to_dict(self) -> dict[str, Any]:
        """Its parameters as plain data."""
        clip = None if self.clip is None else list(self.clip)
        return {
            "bias": self.bias,
            "residual": self.residual,
            "relu": self.relu,
            "shift": self.shift,
            "clip": clip,
        }


def _bounds(clip: object) -> tuple[int, ...]:
    """What to saturate to, as Python's own integers.

    Raises:
        ShapeError: it is no two ascending integers within int8.
    """
    bounds = plain_integers(clip)
    if bounds is not None and len(bounds) == 2 and INT8_LOW <= bounds[0] <= bounds[1] <= INT8_HIGH:
        return bounds
    raise ShapeError(f"clip is {clip!r}; it must be two ascending integers in {INT8_LOW}..{INT8_HIGH}")
