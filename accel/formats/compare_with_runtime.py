"""Comparison of a graph with ONNX Runtime, tensor by tensor."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct

from accel.base.errors import GraphError, MismatchError
from accel.formats.onnx_export import export_onnx
from accel.formats.onnx_runtime import run_onnx_runtime
from accel.graph.elementwise_operators import Add, Quantize, Softmax
from accel.graph.foreign_operator import Foreign
from accel.graph.graph import Graph, Node
from accel.graph.graph_evaluation import check_inputs, evaluate_node
from accel.graph.graph_tensor import QUANTIZED, Array, random_values
from accel.graph.pooling_operators import AveragePool

FLOAT_TOLERANCES = {"float16": 2e-3, "float32": 1e-4, "float64": 1e-4}
"""Largest difference relative to the tensor's largest value, since sums may have another order: two units in
the last place of float16."""
SOFTMAX_TOLERANCE = 1
MEAN_TOLERANCE = 1
"""ONNX Runtime's order of float32 additions depends on its memory layout."""
DYNAMIC = "DynamicQuantizeLinear"
DYNAMIC_TOLERANCE = 1
"""Its operand is float32."""
_RANDOM_SPREAD = 1.0
"""For float32 inputs that no Quantize reads."""


class TensorDifference(Struct, frozen=True, kw_only=True):
    """The comparison of one node's result.

    Attributes:
        differing: values that differ by more than the tolerance.
        reordered: values that differ only by the processor's order of an addition's multiply-adds.
        place: the index of the first differing value, if any.
    """

    name: str
    node: str
    operator: str
    values: int
    differing: int
    reordered: int
    largest: float
    place: tuple[int, ...] | None

    def describe(self) -> str:
        return (
            f"tensor {self.name!r} ({self.operator} of node {self.node!r}) differs from ONNX Runtime's in "
            f"{self.differing} of {self.values} values, by up to {self.largest:g}, first at {self.place}"
        )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The comparisons of all tensors."""

    tensors: tuple[TensorDifference, ...]

    @property
    def first(self) -> TensorDifference | None:
        return next((one for one in self.tensors if one.differing), None)

    @property
    def values(self) -> int:
        return sum(one.values for one in self.tensors)

    @property
    def reordered(self) -> int:
        return sum(one.reordered for one in self.tensors)

    def raise_if_bad(self) -> None:
        if self.first is not None:
            raise MismatchError(self.first.describe())


def compare(graph: Graph, inputs: Mapping[str, Array]) -> Comparison:
    """Each node is evaluated on ONNX Runtime's values, so only the node that causes a difference shows it."""
    values = {**graph.constants, **check_inputs(graph, inputs)}
    values.update(run_onnx_runtime(export_onnx(graph), {name: values[name] for name in graph.inputs}))
    return Comparison(
        tensors=tuple(
            compare_tensor(graph, node, [values[name] for name in node.inputs], values[node.output])
            for node in graph.nodes
        )
    )


def random_inputs(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Return integers over their full range, and floats over that of their Quantize."""
    rng = np.random.default_rng(seed)
    consumers = graph.consumers()
    found: dict[str, Array] = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        low, high = -_RANDOM_SPREAD, _RANDOM_SPREAD
        for node in consumers[name]:
            if isinstance(node.operator, Quantize):
                target = graph.tensors[node.output]
                scale, zero = target.required_quantization.scale[0], target.required_quantization.zero[0]
                low, high = (scale * (bound - zero) for bound in _range(target.dtype))
        found[name] = random_values(rng, tensor, low, high)
    return found


def _range(dtype: str) -> tuple[int, int]:
    bounds = np.iinfo(dtype)
    return bounds.min, bounds.max


def _fused(graph: Graph, node: Node) -> bool:
    operator, operands, out = node.operator, graph.operands(node), graph.tensors[node.output]
    return isinstance(operator, Add) and out.dtype in QUANTIZED and not operator.adds_float32(operands, out)


def compare_tensor(
    graph: Graph, node: Node, operands: list[Array], theirs: Array, *, tolerance: int = 0
) -> TensorDifference:
    """Compare the result of one node with ONNX Runtime's. ``tolerance`` adds to that of integers."""
    out = graph.tensors[node.output]
    ours = evaluate_node(graph, node, operands)
    if theirs.shape != ours.shape or theirs.dtype != ours.dtype:
        raise GraphError(
            f"node {node.name!r} gives {theirs.dtype} {theirs.shape} in ONNX Runtime; here it is "
            f"{ours.dtype} {ours.shape}"
        )
    reordered = np.zeros(ours.shape, dtype=bool)
    with np.errstate(invalid="ignore"):
        distance: Any = np.abs(theirs.astype(np.float64) - ours)
    distance = np.where(theirs == ours, 0, np.where(np.isnan(theirs) & np.isnan(ours), 0, distance))
    if out.dtype in FLOAT_TOLERANCES:
        finite = np.abs(theirs[np.isfinite(theirs)])
        allowed = FLOAT_TOLERANCES[out.dtype] * float(finite.max(initial=0))
    else:
        allowed = max(integer_tolerance(node), tolerance)
    if isinstance(node.operator, Add) and _fused(graph, node) and distance.any():
        tensors = graph.operands(node)
        orders = [node.operator.ordered(tensors, operands, out, swapped=swapped) for swapped in (False, True)]
        reordered = (theirs != ours) & ((theirs == orders[0]) | (theirs == orders[1]))
    wrong = ~(distance <= allowed) & ~reordered
    first = np.argwhere(wrong)
    return TensorDifference(
        name=node.output,
        node=node.name,
        operator=node.operator.kind,
        values=ours.size,
        differing=int(wrong.sum()),
        reordered=int(reordered.sum()),
        largest=float(distance.max(initial=0)),
        place=tuple(first[0].tolist()) if len(first) else None,
    )


def integer_tolerance(node: Node) -> int:
    if isinstance(node.operator, Softmax):
        return SOFTMAX_TOLERANCE
    if isinstance(node.operator, AveragePool) and node.operator.in_float32:
        return MEAN_TOLERANCE
    if isinstance(node.operator, Foreign) and node.operator.title == DYNAMIC:
        return DYNAMIC_TOLERANCE
    return 0
