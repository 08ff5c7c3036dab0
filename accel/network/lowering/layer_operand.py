"""An input of a layer, and the tensor that it reads."""

from dataclasses import dataclass
from math import prod

import numpy as np

from accel.graph.graph import Graph
from accel.graph.graph_tensor import QUANTIZED, Array, Shape, Tensor

WEIGHT_INPUTS = ("weight", "B")


@dataclass(frozen=True, kw_only=True)
class Operand:
    """Weights beyond int8 become a sum of ``copies`` int8 values, and the layer reads its data as often:
    ``x * 200 = x * 127 + x * 73`` has two copies in sequence along ``axis`` of ``tensor_shape``.

    Attributes:
        shape: in which the layer reads the values.
        groups: parts of that axis that are copied separately, as in a grouped convolution.
        generated: values of no tensor, for example an average's ones: int8, or int32 for a bias. Either all
            values, or a matrix's diagonal.
    """

    name: str
    tensor: str
    shape: Shape
    copies: int = 1
    axis: int = 0
    groups: int = 1
    tensor_shape: Shape = ()
    generated: tuple[int, ...] = ()

    def constant_values(self, graph: Graph) -> Array | None:
        """Return None if the values are unknown before a run."""
        if self.generated:
            values = np.array(self.generated, dtype="int32" if self.name == "bias" else "int8")
            return values.reshape(self.shape) if values.size == prod(self.shape) else np.diag(values)
        if self.tensor in graph.constants:
            return self.values(graph, graph.constants[self.tensor])
        return None

    def values(self, graph: Graph, array: Array) -> Array:
        """Return values as the layer reads them: copied, and weights without zero points."""
        tensor = graph.tensors[self.tensor]
        if self.tensor in graph.constants and tensor.dtype in QUANTIZED and self.name in WEIGHT_INPUTS:
            summands = _int8_summands(weights_without_zero(tensor, array), self.copies)
            return np.concatenate(summands, axis=self.axis).reshape(self.shape)
        if self.copies > 1:
            before, after = self.tensor_shape[: self.axis], self.tensor_shape[self.axis + 1 :]
            group_size = self.tensor_shape[self.axis] // self.groups
            grouped = array.reshape(*before, self.groups, group_size, *after)
            array = np.concatenate([grouped] * self.copies, axis=self.axis + 1)
        return np.ascontiguousarray(array).reshape(self.shape)


def weights_without_zero(weights: Tensor, values: Array) -> Array:
    return np.asarray(values.astype(np.int32) - weights.required_quantization.zeros_along(values.ndim))


def _int8_summands(values: Array, count: int) -> list[Array]:
    summands, rest = [], values.astype(np.int32)
    for _ in range(count):
        summands.append(np.clip(rest, -128, 127).astype(np.int8))
        rest = rest - summands[-1]
    assert not rest.any()
    return summands
