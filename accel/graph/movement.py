"""Operators that move values and change none."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from accel.graph.operator import MANY, Operator, refuse, same_quantization
from accel.graph.tensor import Array, Shape, Tensor


@dataclass(frozen=True, kw_only=True)
class Movement(Operator):
    """What they share: all tensors have one dtype and one quantization, per tensor."""

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        same_quantization(self, operands, out)
        if out.quantization is not None and not out.quantization.per_tensor:
            raise refuse(self, f"tensor {out.name!r} has a scale for each channel; here it must have one")


@dataclass(frozen=True, kw_only=True)
class Identity(Movement):
    """The operand under another name."""

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        return operands[0].shape

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return arrays[0]


@dataclass(frozen=True, kw_only=True)
class Reshape(Movement):
    """The values in their order in another shape.

    Attributes:
        sizes: the shape.
    """

    sizes: Shape

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        if prod(self.sizes) != operands[0].size or any(size < 1 for size in self.sizes):
            raise refuse(self, f"{operands[0].shape} is to become {self.sizes}, which has not as many values")
        return self.sizes

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return arrays[0].reshape(self.sizes)


@dataclass(frozen=True, kw_only=True)
class Transpose(Movement):
    """The axes in another order.

    Attributes:
        permutation: the operand's axis for each axis of the result.
    """

    permutation: tuple[int, ...]

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        sizes = operands[0].shape
        if sorted(self.permutation) != list(range(len(sizes))):
            raise refuse(self, f"the permutation is {self.permutation}; the operand is {sizes}")
        return tuple(sizes[axis] for axis in self.permutation)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return arrays[0].transpose(self.permutation)


@dataclass(frozen=True, kw_only=True)
class Slice(Movement):
    """Part of the operand; one number of each for each axis.

    Attributes:
        starts: the first index.
        sizes: how many.
        steps: from one to the next, never zero.
    """

    starts: tuple[int, ...]
    sizes: Shape
    steps: tuple[int, ...]

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        sizes = operands[0].shape
        wanted = (self.starts, self.sizes, self.steps)
        if {len(one) for one in wanted} != {len(sizes)} or 0 in self.steps:
            raise refuse(self, f"starts, sizes and steps are {wanted}; the operand is {sizes}")
        for start, count, step, size in zip(*wanted, sizes, strict=True):
            if count < 1 or not (0 <= start < size and 0 <= start + (count - 1) * step < size):
                raise refuse(self, f"starts, sizes and steps are {wanted}, which leave the operand, {sizes}")
        return self.sizes

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        values = arrays[0]
        for axis, (start, count, step) in enumerate(zip(self.starts, self.sizes, self.steps, strict=True)):
            values = values.take(range(start, start + count * step, step), axis=axis)
        return values


@dataclass(frozen=True, kw_only=True)
class Concat(Movement):
    """Operands behind one another.

    Attributes:
        axis: along which they are.
    """

    axis: int

    COUNT: ClassVar[tuple[int, int]] = (1, MANY)

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        shapes = [one.shape for one in operands]
        if not 0 <= self.axis < len(shapes[0]):
            raise refuse(self, f"the axis is {self.axis}; operands are {shapes}")
        others = {(*one[: self.axis], *one[self.axis + 1 :]) for one in shapes}
        if len(others) > 1 or len({len(one) for one in shapes}) > 1:
            raise refuse(self, f"operands are {shapes}; all but axis {self.axis} must be equal")
        total = sum(one[self.axis] for one in shapes)
        return (*shapes[0][: self.axis], total, *shapes[0][self.axis + 1 :])

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return np.concatenate(arrays, axis=self.axis)


@dataclass(frozen=True, kw_only=True)
class Pad(Movement):
    """The operand with values around it.

    Attributes:
        begin, end: how many before and behind, for each axis.
        value: which, in the tensor's own values, where ``mode`` is constant.
        mode: constant, edge or reflect, as numpy has them.
    """

    begin: Shape
    end: Shape
    value: float = 0
    mode: str = "constant"

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        sizes = operands[0].shape
        if {len(self.begin), len(self.end)} != {len(sizes)} or min(0, *self.begin, *self.end) < 0:
            raise refuse(self, f"pads are {self.begin} and {self.end}; the operand is {sizes}")
        if self.mode not in {"constant", "edge", "reflect"}:
            raise refuse(self, f"the mode is {self.mode!r}; it must be constant, edge or reflect")
        if self.mode == "reflect" and any(
            pad >= size for pad, size in zip(self.begin + self.end, sizes * 2, strict=True)
        ):
            raise refuse(self, f"pads are {self.begin} and {self.end}; {sizes} reflects less than its sizes")
        return tuple(a + size + b for a, size, b in zip(self.begin, sizes, self.end, strict=True))

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        super().check(operands, out)
        if out.dtype != "float32":
            bounds = np.iinfo(out.dtype)
            if self.value != int(self.value) or not bounds.min <= self.value <= bounds.max:
                raise refuse(
                    self,
                    f"its value is {self.value}; {out.dtype} has integers from {bounds.min} to {bounds.max}",
                )

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        around = list(zip(self.begin, self.end, strict=True))
        mode: Any = self.mode
        if mode == "constant":
            return np.pad(arrays[0], around, mode="constant", constant_values=self.value)
        return np.pad(arrays[0], around, mode=mode)
