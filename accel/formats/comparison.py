"""A graph against ONNX Runtime, tensor by tensor."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.base.errors import GraphError, MismatchError
from accel.formats.onnx_export import export_onnx
from accel.formats.onnx_runtime import run_onnx_runtime
from accel.graph.elementwise import Add, Quantize, Softmax
from accel.graph.evaluate import check_inputs, evaluate_node
from accel.graph.graph import Graph, Node
from accel.graph.tensor import QUANTIZED, Array

FLOAT_TOLERANCE = 1e-4
"""How far a float32 value may be off, of the largest of its tensor: sums in another order."""
SOFTMAX_TOLERANCE = 1
"""How far a quantized softmax may be off."""
_RANDOM_SPREAD = 1.0
"""Of random float32 inputs that no Quantize takes."""


@dataclass(frozen=True, kw_only=True)
class TensorDifference:
    """One node's result, computed here and there from the same operands.

    Attributes:
        name: of the tensor.
        node: the node's name.
        operator: what it is.
        values: how many there are.
        differing: how many are not equal; of float32 and of a quantized softmax, beyond the tolerance.
        reordered: how many differ by nothing but the order of an addition's multiply-adds, which depends on
            the processor; they are not among those differing.
        largest: the largest difference of all.
        place: the index of the first that differs, None if none does.
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
        """In a sentence."""
        return (
            f"tensor {self.name!r} ({self.operator} of node {self.node!r}) differs from ONNX Runtime's in "
            f"{self.differing} of {self.values} values, by up to {self.largest:g}, first at {self.place}"
        )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What came of it.

    Attributes:
        tensors: every node's, in order.
    """

    tensors: tuple[TensorDifference, ...]

    @property
    def first(self) -> TensorDifference | None:
        """The first tensor that differs."""
        return next((one for one in self.tensors if one.differing), None)

    @property
    def values(self) -> int:
        """Compared."""
        return sum(one.values for one in self.tensors)

    @property
    def reordered(self) -> int:
        """Values that differ by the order of multiply-adds alone."""
        return sum(one.reordered for one in self.tensors)

    def raise_if_bad(self) -> None:
        """Name the first difference.

        Raises:
            MismatchError: there is one.
        """
        if self.first is not None:
            raise MismatchError(self.first.describe())


def compare(graph: Graph, inputs: Mapping[str, Array]) -> Comparison:
    """Every tensor of a graph against what ONNX Runtime gives for it.

    The graph is written in QOperator format. Each node is computed here from the operands that ONNX Runtime
    has, so that a difference is found where it arises, and nowhere else.

    Args:
        graph: any.
        inputs: an array for each input.

    Raises:
        GraphError: ONNX Runtime is not installed or refuses the model.
        ShapeError: an input is missing, unknown, or has another shape or dtype.
    """
    values = {**graph.constants, **check_inputs(graph, inputs)}
    values.update(run_onnx_runtime(export_onnx(graph), {name: values[name] for name in graph.inputs}))
    return Comparison(tensors=tuple(_compared(graph, node, values) for node in graph.nodes))


def random_inputs(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Inputs for a run: integers all over their range, floats over that of the Quantize that takes them.

    Args:
        graph: whose inputs they are.
        seed: of the generator.
    """
    rng = np.random.default_rng(seed)
    consumers = graph.consumers()
    found: dict[str, Array] = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        if tensor.dtype != "float32":
            bounds = np.iinfo(tensor.dtype)
            found[name] = rng.integers(bounds.min, bounds.max + 1, tensor.shape).astype(tensor.dtype)
            continue
        low, high = -_RANDOM_SPREAD, _RANDOM_SPREAD
        for node in consumers[name]:
            if isinstance(node.operator, Quantize):
                target = graph.tensors[node.output]
                scale, zero = target.quantized.scale[0], target.quantized.zero[0]
                low, high = (scale * (bound - zero) for bound in _range(target.dtype))
        found[name] = rng.uniform(low, high, tensor.shape).astype(np.float32)
    return found


def _range(dtype: str) -> tuple[int, int]:
    bounds = np.iinfo(dtype)
    return bounds.min, bounds.max


def _fused(graph: Graph, node: Node) -> bool:
    """Whether a node adds integers by multiply-adds."""
    operands, out = graph.operands(node), graph.tensors[node.output]
    return out.dtype in QUANTIZED and not Add.is_apart(operands, out)


def _compared(graph: Graph, node: Node, values: Mapping[str, Array]) -> TensorDifference:
    """One node, from the operands that the values have."""
    operands = [values[name] for name in node.inputs]
    out, theirs = graph.tensors[node.output], values[node.output]
    ours = evaluate_node(graph, node, operands)
    if theirs.shape != ours.shape or theirs.dtype != ours.dtype:
        raise GraphError(
            f"node {node.name!r} gives {theirs.dtype} {theirs.shape} in ONNX Runtime; here it is "
            f"{ours.dtype} {ours.shape}"
        )
    reordered = np.zeros(ours.shape, dtype=bool)
    distance: Any = np.abs(theirs.astype(np.float64) - ours)
    distance = np.where(theirs == ours, 0, np.where(np.isnan(theirs) & np.isnan(ours), 0, distance))
    allowed = 0.0
    if out.dtype == "float32":
        finite = np.abs(theirs[np.isfinite(theirs)])
        allowed = FLOAT_TOLERANCE * float(finite.max(initial=0))
    elif isinstance(node.operator, Softmax):
        allowed = SOFTMAX_TOLERANCE
    elif isinstance(node.operator, Add) and _fused(graph, node) and distance.any():
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
