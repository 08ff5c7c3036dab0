"""Operators that move values."""

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from accel.graph.graph_operator import (
    MAX_OPERANDS,
    Operator,
    operator_error,
    require_same_quantization,
)
from accel.graph.graph_tensor import Array, Shape, Tensor


class Movement(Operator, frozen=True, kw_only=True):
    """All tensors have one dtype and a single scale."""

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        require_same_quantization(self, operands, out)
        if out.quantization is not None and not out.quantization.is_per_tensor:
            raise operator_error(
                self, f"tensor {out.name!r} has a scale for each channel; here it must have one"
            )


class Identity(Movement, frozen=True, kw_only=True):
    """The operand under another name."""

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        return operands[0].shape

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return arrays[0]


class Reshape(Movement, frozen=True, kw_only=True):
    """The values in the same order in another shape."""

    sizes: Shape

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        if prod(self.sizes) != operands[0].size or any(size < 1 for size in self.sizes):
            raise operator_error(
                self, f"the shape is {self.sizes}; it must have as many values as {operands[0].shape}"
            )
        return self.sizes

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return arrays[0].reshape(self.sizes)


class Transpose(Movement, frozen=True, kw_only=True):
    """The axes in another order: ``permutation`` has the operand's axis for each axis of the result."""

    permutation: tuple[int, ...]

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        sizes = operands[0].shape
        if sorted(self.permutation) != list(range(len(sizes))):
            raise operator_error(self, f"the permutation is {self.permutation}; the operand is {sizes}")
        return tuple(sizes[axis] for axis in self.permutation)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return arrays[0].transpose(self.permutation)


class Slice(Movement, frozen=True, kw_only=True):
    """A part of the operand. Each attribute has one number for each axis. Steps are nonzero."""

    starts: tuple[int, ...]
    sizes: Shape
    steps: tuple[int, ...]

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        sizes = operands[0].shape
        attributes = (self.starts, self.sizes, self.steps)
        if {len(one) for one in attributes} != {len(sizes)} or 0 in self.steps:
            raise operator_error(self, f"starts, sizes and steps are {attributes}; the operand is {sizes}")
        for start, count, step, size in zip(*attributes, sizes, strict=True):
            if count < 1 or not (0 <= start < size and 0 <= start + (count - 1) * step < size):
                raise operator_error(
                    self,
                    f"starts, sizes and steps are {attributes}; they must stay within the operand, {sizes}",
                )
        return self.sizes

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        values = arrays[0]
        for axis, (start, count, step) in enumerate(zip(self.starts, self.sizes, self.steps, strict=True)):
            values = values.take(range(start, start + count * step, step), axis=axis)
        return values


class Concat(Movement, frozen=True, kw_only=True):
    """Operands in sequence."""

    axis: int

    COUNT: ClassVar[tuple[int, int]] = (1, MAX_OPERANDS)

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        shapes = [one.shape for one in operands]
        if not 0 <= self.axis < len(shapes[0]):
            raise operator_error(self, f"the axis is {self.axis}; operands are {shapes}")
        others = {(*one[: self.axis], *one[self.axis + 1 :]) for one in shapes}
        if len(others) > 1 or len({len(one) for one in shapes}) > 1:
            raise operator_error(self, f"operands are {shapes}; all but axis {self.axis} must be equal")
        total = sum(one[self.axis] for one in shapes)
        return (*shapes[0][: self.axis], total, *shapes[0][self.axis + 1 :])

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return np.concatenate(arrays, axis=self.axis)


class Pad(Movement, frozen=True, kw_only=True):
    """The operand with values around it.

    Attributes:
        value: the stored value for ``constant``.
        mode: ``constant``, ``edge`` or ``reflect``, as in numpy.
    """

    begin: Shape
    end: Shape
    value: float = 0
    mode: str = "constant"

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        sizes = operands[0].shape
        if {len(self.begin), len(self.end)} != {len(sizes)} or min(0, *self.begin, *self.end) < 0:
            raise operator_error(self, f"pads are {self.begin} and {self.end}; the operand is {sizes}")
        if self.mode not in {"constant", "edge", "reflect"}:
            raise operator_error(self, f"the mode is {self.mode!r}; it must be constant, edge or reflect")
        if self.mode == "reflect" and any(
            pad >= size for pad, size in zip(self.begin + self.end, sizes * 2, strict=True)
        ):
            raise operator_error(
                self,
                f"pads are {self.begin} and {self.end}; to reflect {sizes}, they must be less than its sizes",
            )
        return tuple(a + size + b for a, size, b in zip(self.begin, sizes, self.end, strict=True))

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        super().check(operands, out)
        if np.dtype(out.dtype).kind in "iu":
            bounds = np.iinfo(out.dtype)
            if self.value != int(self.value) or not bounds.min <= self.value <= bounds.max:
                raise operator_error(
                    self,
                    f"its value is {self.value}; {out.dtype} has integers from {bounds.min} to {bounds.max}",
                )

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        around = list(zip(self.begin, self.end, strict=True))
        mode: Any = self.mode
        if mode == "constant":
            return np.pad(arrays[0], around, mode="constant", constant_values=self.value)
        return np.pad(arrays[0], around, mode=mode)


class Take(Movement, frozen=True, kw_only=True):
    """Values along one axis by index, as ``numpy.take``, for example 0, 0, 1, 1 in a nearest Resize."""

    axis: int
    indices: tuple[int, ...]

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        sizes = operands[0].shape
        if not 0 <= self.axis < len(sizes):
            raise operator_error(self, f"the axis is {self.axis}; the operand is {sizes}")
        size = sizes[self.axis]
        if not self.indices or not all(0 <= index < size for index in self.indices):
            raise operator_error(
                self, f"it takes {len(self.indices)} indices; all must be from 0 to {size - 1}"
            )
        return (*sizes[: self.axis], len(self.indices), *sizes[self.axis + 1 :])

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        return arrays[0].take(self.indices, axis=self.axis)


class DepthToSpace(Movement, frozen=True, kw_only=True):
    """Channels of (N, C, H, W) as squares of ``block`` by ``block`` pixels.

    Attributes:
        columns_first: whether the pixel in the square is the slow part of the operand's channel number (DCR
            in ONNX) instead of the fast one (CRD).
    """

    block: int
    columns_first: bool = True

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        sizes = operands[0].shape
        if len(sizes) != 4 or self.block < 1 or sizes[1] % self.block**2:
            raise operator_error(
                self,
                f"the block is {self.block}; the operand is {sizes}, and its channels must be a multiple of "
                "the block's square",
            )
        count, channels, height, width = sizes
        return count, channels // self.block**2, height * self.block, width * self.block

    def source_channels(self, channels: int) -> npt.NDArray[np.int64]:
        """Return the operand's channel for each pixel of a square, int64[block, block, channels]."""
        numbers = np.arange(channels * self.block**2, dtype=np.int64)
        if self.columns_first:
            return numbers.reshape(self.block, self.block, channels)
        return numbers.reshape(channels, self.block, self.block).transpose(1, 2, 0)

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        count, _, height, width = operands[0].shape
        channels = self.source_channels(out.shape[1]).reshape(-1)
        squares = arrays[0].take(channels, axis=1)
        squares = squares.reshape(count, self.block, self.block, out.shape[1], height, width)
        return squares.transpose(0, 3, 4, 1, 5, 2).reshape(out.shape)


class SpaceToDepth(Movement, frozen=True, kw_only=True):
    """Squares of ``block`` by ``block`` pixels of (N, C, H, W) as channels, pixel by pixel."""

    block: int

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        sizes = operands[0].shape
        if len(sizes) != 4 or self.block < 1 or sizes[2] % self.block or sizes[3] % self.block:
            raise operator_error(
                self, f"the block is {self.block}; the operand is {sizes}, and it must divide both sizes"
            )
        count, channels, height, width = sizes
        return count, channels * self.block**2, height // self.block, width // self.block

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        count, channels, height, width = operands[0].shape
        block = self.block
        squares = arrays[0].reshape(count, channels, height // block, block, width // block, block)
        return squares.transpose(0, 3, 5, 1, 2, 4).reshape(out.shape)
