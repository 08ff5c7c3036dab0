"""What happens to sums before they are stored."""

from dataclasses import dataclass
from typing import Any

from accel.compiler.expr import Expr, clip, maximum
from accel.compiler.fold import preparation_for
from accel.compiler.tensor import LARGEST_PRODUCT
from accel.errors import ShapeError

INT8_LOW, INT8_HIGH = -128, 127
LARGEST_SHIFT = 31


@dataclass(frozen=True, kw_only=True)
class Epilogue:
    """Plus bias, arithmetic shift right, ReLU, saturation, in this order.

    Attributes:
        bias: whether one is added.
        shift: 0..31, or None.
        relu: negative values become zero.
        clip: what to saturate to, within int8; int8's own bounds if None. Without shift, ReLU and clip
            nothing saturates: the result holds the low 8 bits.

    Raises:
        ShapeError: shift or clip out of range.
    """

    bias: bool = False
    shift: int | None = None
    relu: bool = False
    clip: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.shift is not None and not (type(self.shift) is int and 0 <= self.shift <= LARGEST_SHIFT):
            raise ShapeError(f"shift is {self.shift!r}; it must be in 0..{LARGEST_SHIFT}")
        if self.clip is None:
            return
        bounds = tuple(self.clip)
        if (
            len(bounds) != 2
            or any(type(n) is not int for n in bounds)
            or not INT8_LOW <= bounds[0] <= bounds[1] <= INT8_HIGH
        ):
            raise ShapeError(
                f"clip is {self.clip!r}; it must be two ascending integers in {INT8_LOW}..{INT8_HIGH}"
            )
        object.__setattr__(self, "clip", bounds)

    @property
    def saturates(self) -> bool:
        return self.relu or self.shift is not None or self.clip is not None

    @property
    def is_empty(self) -> bool:
        """Whether the result is the sums' low 8 bits."""
        return not (self.bias or self.saturates)

    def apply(self, sums: Expr, bias: Expr | None) -> Expr:
        """The result of one element."""
        value = sums if bias is None else sums + bias
        if self.shift is not None:
            value = value >> self.shift
        if self.relu:
            value = maximum(value, 0)
        return clip(value, *(self.clip or (INT8_LOW, INT8_HIGH))) if self.saturates else value

    def folds(self, length: int) -> bool:
        """Whether reset and bias become one operation (:mod:`accel.compiler.fold`).

        Args:
            length: int8 products in a sum.
        """
        if not (self.bias and self.saturates and self.shift):
            return False
        low, high = self.clip or (INT8_LOW, INT8_HIGH)
        if self.relu:
            low, high = max(low, 0), max(high, 0)
        return preparation_for(low, high, self.shift, length * LARGEST_PRODUCT) is not None

    def passes(self, length: int) -> int:
        """Operations on each accumulator besides GEMM, the reset among them.

        Args:
            length: int8 products in a sum.
        """
        return 1 + self.bias - self.folds(length) + bool(self.shift) + 2 * self.saturates

    def to_dict(self) -> dict[str, Any]:
        """Its parameters as plain data."""
        clip = None if self.clip is None else list(self.clip)
        return {"bias": self.bias, "relu": self.relu, "shift": self.shift, "clip": clip}
