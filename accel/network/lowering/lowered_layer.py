"""A layer as the compiler sees it: an operator, its parameters, and its operands."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from accel.compiler.operators.operator_registry import WORKLOADS
from accel.compiler.ops.quantized_layers import Quantized
from accel.compiler.ops.workload import Workload
from accel.core.config import Config
from accel.graph.graph import Graph
from accel.graph.graph_tensor import QUANTIZED, Array, Shape, Tensor

WEIGHT_INPUTS = ("weight", "B")
"""Inputs of layers that hold weights."""


class NotOnMachine(Exception):
    """The machine cannot execute fused nodes."""


@dataclass(frozen=True, kw_only=True)
class Operand:
    """One input of a layer, and the tensor that it reads.

    Weights beyond int8 are written as a sum of ``copies`` int8 values, and the layer reads its data as often:
    ``x * 200 = x * 127 + x * 73`` has two copies, one after the other along ``axis``.

    Attributes:
        shape: shape in which the layer reads the values.
        axis: axis of ``tensor_shape``.
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
        """Return the values that the layer reads, if known before a run."""
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
    """Subtract the zero points of weights, int32."""
    return np.asarray(values.astype(np.int32) - weights.required_quantization.zeros_along(values.ndim))


def _int8_summands(values: Array, count: int) -> list[Array]:
    summands, rest = [], values.astype(np.int32)
    for _ in range(count):
        summands.append(np.clip(rest, -128, 127).astype(np.int8))
        rest = rest - summands[-1]
    assert not rest.any()
    return summands


@dataclass(frozen=True, kw_only=True)
class LoweredLayer:
    """Fused nodes as one operator of the compiler.

    Attributes:
        operator: for example ``conv2d``.
        differences: pairs of values, of 65,536, whose sum or product differs from float32: 0 unless it is
            approximate.
    """

    operator: str
    parameters: Mapping[str, Any]
    operands: tuple[Operand, ...]
    output: str
    differences: int = 0

    def workload(self) -> Workload:
        return self._workload

    def check_machine(self, config: Config) -> None:
        """Raise NotOnMachine if the layer needs a feature that the machine lacks."""
        quantized = self.parameters.get("quantized")
        if not isinstance(quantized, Quantized):
            return
        residual = quantized.residual
        if residual is not None and residual.requires_res_mul and not config.res_mul:
            if residual.operation == "multiply":
                raise NotOnMachine("the machine does not multiply two tensors value by value")
            raise NotOnMachine("the machine adds no value per channel that varies")
        if quantized.table is not None and not config.tab_bytes:
            raise NotOnMachine("no scale and bias reproduce all of its values, and the machine has no tables")

    @cached_property
    def _workload(self) -> Workload:
        return WORKLOADS[self.operator](**self.parameters)
