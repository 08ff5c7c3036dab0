"""A builder of small random graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from accel.base.records import replace
from accel.graph.elementwise_operators import (
    Add,
    Binary,
    Cast,
    Clip,
    Dequantize,
    Function,
    Mul,
    Quantize,
    Reinterpret,
    Requantize,
    Table,
)
from accel.graph.graph import Graph
from accel.graph.graph_builder import Builder
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import QUANTIZED, Quantization, Shape, Tensor, random_values
from accel.graph.movement_operators import (
    DepthToSpace,
    Identity,
    Reshape,
    Slice,
    SpaceToDepth,
    Take,
    Transpose,
)

FUNCTION_NAMES = ("Sigmoid", "Tanh", "LeakyRelu", "Abs", "Exp", "HardSwish", "Elu")

_T = TypeVar("_T")


class InstanceBuilder(Builder):
    """A builder of instances of rules. docs/how-to/rewrite-a-graph.md has an example."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self.rng = rng

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high, endpoint=True))

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def choice(self, values: Sequence[_T]) -> _T:
        return values[self.integer(0, len(values) - 1)]

    def shape(self, rank: int, most: int = 5) -> Shape:
        return tuple(self.integer(1, most) for _ in range(rank))

    def permutation(self, rank: int) -> tuple[int, ...]:
        return tuple(map(int, self.rng.permutation(rank)))

    def quantization(self, dtype: str = "int8", *, zero: int | None = None) -> Quantization:
        """Draw a scale around 0.05, and a zero point unless it is given.

        Some scales are multiples of 0.01. Then sums often lie halfway between two integers, where the order
        of operations matters.
        """
        bounds = np.iinfo(dtype)
        multiple = 0.01 * self.integer(1, 20)
        scale = np.float32(multiple if self.chance(0.7) else 0.05 * 2 ** self.rng.uniform(-2, 2))
        drawn = self.integer(bounds.min, bounds.max) if zero is None else zero
        return Quantization(scale=(float(scale),), zero=(drawn,))

    def byte_input(self, shape: Shape, dtype: str | None = None, name: str = "x") -> str:
        chosen = dtype or self.choice(QUANTIZED)
        made = Tensor(
            name=self.fresh(name), shape=shape, dtype=chosen, quantization=self.quantization(chosen)
        )
        self.input(made)
        return made.name

    def float_input(self, shape: Shape, name: str = "x") -> str:
        made = Tensor(name=self.fresh(name), shape=shape, dtype="float32")
        self.input(made)
        return made.name

    def any_input(self, shape: Shape, name: str = "x") -> str:
        return self.float_input(shape, name) if self.chance(0.3) else self.byte_input(shape, name=name)

    def int32_input(self, shape: Shape, name: str = "x") -> str:
        made = Tensor(
            name=self.fresh(name), shape=shape, dtype="int32", quantization=self.quantization(zero=0)
        )
        self.input(made)
        return made.name

    def like_input(self, other: str, shape: Shape, name: str = "y") -> str:
        made = replace(self.tensors[other], name=self.fresh(name), shape=shape)
        self.input(made)
        return made.name

    def constant_like(self, other: str, shape: Shape) -> str:
        dtype = self.tensors[other].dtype
        values = random_values(self.rng, Tensor(name="c", shape=shape, dtype=dtype))
        return self.constant(
            self.fresh("c"), values, self.quantization(dtype) if dtype in QUANTIZED else None
        )

    def clip(self, dtype: str) -> Clip:
        """Bounds may cross, and one may be absent."""
        if dtype == "float32":
            low, high = (float(np.float32(self.rng.uniform(-0.9, 0.9))) for _ in range(2))
        else:
            bounds = np.iinfo(dtype)
            low, high = (float(self.integer(int(bounds.min), int(bounds.max))) for _ in range(2))
        if self.chance(0.8):
            low, high = min(low, high), max(low, high)
        absent = self.integer(0, 3)
        return Clip(low=None if absent == 1 else low, high=None if absent == 2 else high)

    def function(self, x: str) -> str:
        dtype = self.tensors[x].dtype
        if dtype == "int32":
            return self.node(self.choice((Cast(), Dequantize())), x, dtype="float32")
        if dtype == "float32":
            kind = self.integer(0, 2)
            if kind == 0:
                byte = self.choice(QUANTIZED)
                return self.node(Quantize(), x, dtype=byte, quantization=self.quantization(byte))
            operator = self.clip(dtype) if kind == 1 else Function(function=self.choice(FUNCTION_NAMES))
            return self.node(operator, x)
        kind = self.integer(0, 5)
        if kind == 0:
            return self.node(Dequantize(), x, dtype="float32")
        if kind == 1:
            return self.node(self.clip(dtype), x)
        return self.byte_function(x, kind)

    def byte_function(self, x: str, kind: int | None = None) -> str:
        """Add a Function (kind 2), Table (3), Requantize (4) or Reinterpret (another number). None draws the
        kind.
        """
        dtype, other = self.tensors[x].dtype, self.choice(QUANTIZED)
        chosen = self.integer(2, 5) if kind is None else kind
        if chosen == 2:
            function = Function(function=self.choice(FUNCTION_NAMES))
            return self.node(function, x, dtype=dtype, quantization=self.quantization(dtype))
        if chosen == 3:
            bounds = np.iinfo(other)
            values = self.rng.integers(bounds.min, bounds.max, 256, endpoint=True).tolist()
            return self.node(
                Table(values=tuple(values)), x, dtype=other, quantization=self.quantization(other)
            )
        if chosen == 4:
            return self.node(Requantize(), x, dtype=other, quantization=self.quantization(other))
        return self.node(Reinterpret(), x, dtype=dtype, quantization=self.quantization(dtype))

    def binary(self, left: str, right: str, *, sums: float = 0) -> str:
        """Add an operator of two tensors of one dtype.

        ``sums`` is the least share of quantized Adds among operators of bytes: the order of operands rarely
        changes their result.
        """
        dtype = self.tensors[left].dtype
        if dtype == "float32":
            functions = tuple(Binary(function=name) for name in ("Sub", "Div", "Min", "Max", "PRelu"))
            return self.node(self.choice((Add(), Mul(), *functions)), left, right)
        operators = (
            Add(),
            Add(),
            Add(in_float32=True),
            Mul(),
            Mul(in_float32=True),
            Binary(function="Min"),
            Binary(function="Max"),
        )
        operator = Add() if self.chance(sums) else self.choice(operators)
        return self.node(operator, left, right, dtype=dtype, quantization=self.quantization(dtype))

    def move(self, x: str, kind: type[Operator]) -> str:
        """DepthToSpace takes a multiple of 4 channels, and SpaceToDepth even heights and widths."""
        shape = self.tensors[x].shape
        if kind is Transpose:
            return self.node(Transpose(permutation=self.permutation(len(shape))), x)
        if kind is Reshape:
            return self.node(Reshape(sizes=self.regrouped(shape)), x)
        if kind is Slice:
            return self.node(self.slice(shape), x)
        if kind is Take:
            axis = self.integer(0, len(shape) - 1)
            count = self.integer(1, 2 * shape[axis])
            indices = tuple(self.integer(0, shape[axis] - 1) for _ in range(count))
            return self.node(Take(axis=axis, indices=indices), x)
        if kind is DepthToSpace:
            return self.node(DepthToSpace(block=2, columns_first=self.chance(0.5)), x)
        return self.node(SpaceToDepth(block=2) if kind is SpaceToDepth else Identity(), x)

    def regrouped(self, shape: Shape) -> Shape:
        factors = [int(one) for one in self.rng.permutation(np.array(shape))]
        sizes: list[int] = []
        for factor in factors:
            if sizes and self.chance(0.4):
                sizes[-1] *= factor
            else:
                sizes.append(factor)
        return tuple(sizes)

    def slice(self, shape: Shape) -> Slice:
        """Steps have either sign. Each axis is often whole."""
        starts, sizes, steps = [], [], []
        for size in shape:
            step = 1 if self.chance(0.6) else self.choice((-2, -1, 2))
            start = self.integer(0, size - 1)
            if self.chance(0.4):
                step, start = 1, 0
            most = (size - 1 - start) // step + 1 if step > 0 else start // -step + 1
            starts.append(start)
            sizes.append(most if self.chance(0.5) else self.integer(1, most))
            steps.append(step)
        return Slice(starts=tuple(starts), sizes=tuple(sizes), steps=tuple(steps))

    def weights(self, shape: Shape, axis: int | None = 0, *, zero: int = 0) -> str:
        count = 1 if axis is None or self.chance(0.3) else shape[axis]
        scales = (0.01 * 2 ** self.rng.uniform(-2, 2, count)).astype(np.float32)
        return self.constant(
            self.fresh("w"),
            self.rng.integers(-128, 127, shape, np.int8, endpoint=True),
            Quantization.of(scales, zero, axis),
        )

    def bias(self, channels: int) -> str:
        return self.constant(self.fresh("b"), self.rng.integers(-2000, 2000, channels, np.int32))

    def node(
        self,
        operator: Operator,
        *inputs: str,
        dtype: str | None = None,
        quantization: Quantization | None = None,
    ) -> str:
        """The result has the first operand's dtype and quantization by default."""
        first = self.tensors[inputs[0]]
        if dtype is None and quantization is None:
            quantization = first.quantization
        return self.emit(operator, inputs, self.fresh("t"), dtype=dtype, quantization=quantization)

    def done(self, *outputs: str) -> Graph:
        return self.graph("instance", outputs)
