"""A builder of small random graphs, for generators of instances."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from accel.graph.graph import Graph
from accel.graph.graph_builder import Builder
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import QUANTIZED, Quantization, Shape, Tensor

_T = TypeVar("_T")


class InstanceBuilder(Builder):
    """A builder that draws sizes, dtypes, scales and zero points.

    For example, an instance of two Transposes in sequence::

        draw = InstanceBuilder(rng)
        x = draw.byte_input(draw.shape(3))
        y = draw.node(Transpose(permutation=draw.permutation(3)), x)
        z = draw.node(Transpose(permutation=draw.permutation(3)), y)
        return draw.done(z)
    """

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self.rng = rng

    def integer(self, low: int, high: int) -> int:
        """Draw an integer from ``low`` to ``high``, both included."""
        return int(self.rng.integers(low, high, endpoint=True))

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def choice(self, values: Sequence[_T]) -> _T:
        return values[self.integer(0, len(values) - 1)]

    def shape(self, rank: int, most: int = 5) -> Shape:
        """Draw sizes from 1 to ``most``."""
        return tuple(self.integer(1, most) for _ in range(rank))

    def permutation(self, rank: int) -> tuple[int, ...]:
        return tuple(map(int, self.rng.permutation(rank)))

    def quantization(self, dtype: str = "int8", *, zero: int | None = None) -> Quantization:
        """Draw a scale around 0.05, and a zero point unless it is given."""
        bounds = np.iinfo(dtype)
        scale = np.float32(0.05 * 2 ** self.rng.uniform(-2, 2))
        drawn = self.integer(bounds.min, bounds.max) if zero is None else zero
        return Quantization(scale=(float(scale),), zero=(drawn,))

    def byte_input(self, shape: Shape, dtype: str | None = None, name: str = "x") -> str:
        """Declare an int8 or uint8 input."""
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

    def weights(self, shape: Shape, axis: int | None = 0, *, zero: int = 0) -> str:
        """Declare random int8 weights with one scale, or with one for each index along ``axis``."""
        count = 1 if axis is None or self.chance(0.3) else shape[axis]
        scales = (0.01 * 2 ** self.rng.uniform(-2, 2, count)).astype(np.float32)
        return self.constant(
            self.fresh("w"),
            self.rng.integers(-128, 127, shape, np.int8, endpoint=True),
            Quantization.of(scales, zero, axis),
        )

    def bias(self, channels: int) -> str:
        """Declare a random int32 bias."""
        return self.constant(self.fresh("b"), self.rng.integers(-2000, 2000, channels, np.int32))

    def node(
        self,
        operator: Operator,
        *inputs: str,
        dtype: str | None = None,
        quantization: Quantization | None = None,
    ) -> str:
        """Add an operator. The result has the first operand's dtype and quantization by default."""
        first = self.tensors[inputs[0]]
        if dtype is None and quantization is None:
            quantization = first.quantization
        return self.emit(operator, inputs, self.fresh("t"), dtype=dtype, quantization=quantization)

    def done(self, *outputs: str) -> Graph:
        """Return the graph with these outputs."""
        return self.graph("instance", outputs)
