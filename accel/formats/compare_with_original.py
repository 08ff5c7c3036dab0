"""Comparison of a graph with its ONNX file, as ONNX Runtime optimizes that file."""

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from accel.formats.compare_with_runtime import (
    DYNAMIC,
    Comparison,
    TensorDifference,
    compare_tensor,
    integer_tolerance,
)
from accel.formats.onnx_file import onnx
from accel.formats.onnx_runtime import run_onnx_runtime, run_optimized
from accel.graph.graph import Graph, Node
from accel.graph.graph_evaluation import check_inputs, evaluate_node
from accel.graph.graph_tensor import QUANTIZED, Array
from accel.graph.pooling_operators import GlobalAveragePool
from accel.graph.product_operators import Product

FLOAT_SUM_TOLERANCE = 1
"""ONNX Runtime computes some products and global means in float32, and the graph in integers."""
_QUANTIZING = "QuantizeLinear"


def compare_with_original(
    graph: Graph, path: str | os.PathLike[str], inputs: Mapping[str, Array], *, optimized: bool = True
) -> Comparison:
    """ONNX Runtime runs the ``optimized`` file, with all quantized tensors as outputs. The graph is evaluated
    from one of them to the next on their values. So only the first tensor after its cause shows a difference.
    """
    model = onnx().load(os.fspath(path))
    kinds = {name: node.op_type for node in model.graph.node for name in node.output}
    wanted = [node.output for node in graph.nodes if _is_comparable(graph, node, kinds)]
    _add_outputs(model, [name for name in wanted if name not in {one.name for one in model.graph.output}])
    values = {**graph.constants, **check_inputs(graph, inputs)}
    content, given = model.SerializeToString(), {name: values[name] for name in graph.inputs}
    theirs, computed_by = (
        run_optimized(content, given, wanted) if optimized else (run_onnx_runtime(content, given, wanted), {})
    )
    tolerances: dict[str, int] = {}
    compared: list[TensorDifference] = []
    for node in graph.nodes:
        operands = [values[name] for name in node.inputs]
        tolerance = max([integer_tolerance(node), *(tolerances.get(name, 0) for name in node.inputs)])
        if computed_by.get(node.output) == _QUANTIZING and isinstance(
            node.operator, Product | GlobalAveragePool
        ):
            tolerance = max(tolerance, FLOAT_SUM_TOLERANCE)
        if node.output in theirs:
            values[node.output] = theirs[node.output]
            compared.append(compare_tensor(graph, node, operands, theirs[node.output], tolerance=tolerance))
        else:
            values[node.output] = evaluate_node(graph, node, operands)
            tolerances[node.output] = tolerance
    return Comparison(tensors=tuple(compared))


class ModeDifference(Struct, frozen=True, kw_only=True):
    """An output that differs between two modes, in ``differing`` of ``values`` values."""

    name: str
    differing: int
    values: int
    largest: float

    def describe(self) -> str:
        return (
            f"ONNX Runtime's own modes, without and with optimizations, differ in {self.differing:,} of "
            f"{self.values:,} values of output {self.name!r}, by up to {self.largest:.3g}"
        )


def compare_modes(
    graph: Graph, path: str | os.PathLike[str], inputs: Mapping[str, Array]
) -> tuple[ModeDifference, ...]:
    """Return outputs that differ in ONNX Runtime without and with optimizations."""
    model = onnx().load(os.fspath(path))
    content = model.SerializeToString()
    values = check_inputs(graph, inputs)
    names = [one.name for one in model.graph.output]
    plain, (optimized, _) = run_onnx_runtime(content, values, names), run_optimized(content, values, names)
    found = []
    for name in names:
        one, other = plain[name], optimized[name]
        if one.shape != other.shape:
            found.append(ModeDifference(name=name, differing=one.size, values=one.size, largest=math.inf))
            continue
        differs = one != other
        if one.dtype.kind == "f":
            differs &= ~(np.isnan(one) & np.isnan(other))
        if differs.any():
            with np.errstate(invalid="ignore"):
                distance = np.abs(one[differs].astype(np.float64) - other[differs])
            found.append(
                ModeDifference(
                    name=name,
                    differing=int(differs.sum()),
                    values=one.size,
                    largest=float(np.nan_to_num(distance, nan=math.inf, posinf=math.inf).max()),
                )
            )
    return tuple(found)


def _is_comparable(graph: Graph, node: Node, kinds: Mapping[str, str]) -> bool:
    """Whether ONNX Runtime also has a node's result, as output or quantized tensor."""
    if node.output in graph.outputs:
        return node.output in kinds
    kind = kinds.get(node.output, "")
    if kind == DYNAMIC:
        return True
    return graph.tensors[node.output].dtype in QUANTIZED and (
        kind == _QUANTIZING or kind.startswith("QLinear")
    )


def _add_outputs(model: Any, names: list[str]) -> None:
    for name in names:
        model.graph.output.append(onnx().ValueInfoProto(name=name))
