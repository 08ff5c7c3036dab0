"""Elementwise operators before Transposes and Reshapes, where a product of two tensors reads the result.

If the Mul that scales the heads of attention comes before the moves, it stores its result where the product
reads it.
"""

from collections.abc import Collection

from accel.base.records import replace
from accel.graph.elementwise_operators import Clip, Function, Mul, Requantize, Table
from accel.graph.graph import Graph
from accel.graph.graph_tensor import QUANTIZED
from accel.graph.movement_operators import Identity, Reshape, Transpose
from accel.graph.product_operators import MatMul
from accel.rewriting.editable_graph import EditableGraph
from accel.rewriting.elementwise_rules import (
    FIRST_SCALAR_BEFORE_MOVE,
    FUNCTION_BEFORE_RESHAPE,
    FUNCTION_BEFORE_TRANSPOSE,
    SCALAR_BEFORE_MOVE,
)
from accel.rewriting.rule import Rule
from accel.rewriting.rule_application import apply_everywhere

_MOVES = Identity | Reshape | Transpose
_UNIFORM = Clip | Function | Mul | Requantize | Table
"""They treat all values alike if other operands are single values."""


def _sinking(rule: Rule) -> Rule:
    """Require that nothing else reads the move's result."""
    return replace(
        rule,
        condition=lambda match: match.has_one_reader("move") and rule.condition(match),
        simplifies=True,
    )


_RULES: tuple[Rule, ...] = (
    _sinking(FUNCTION_BEFORE_TRANSPOSE),
    _sinking(FUNCTION_BEFORE_RESHAPE),
    _sinking(SCALAR_BEFORE_MOVE),
    _sinking(FIRST_SCALAR_BEFORE_MOVE),
)


def sink_moves(graph: Graph) -> Graph:
    """Exchange moves with the elementwise operators that follow them.

    For example, Transpose, Mul by 0.125, MatMul becomes Mul, Transpose, MatMul. This function chooses places,
    because rules do not see a result's readers.
    """
    wanted = _read_by_products(graph)
    if not wanted:
        return graph
    editable = EditableGraph(graph)
    counts = apply_everywhere(editable, _RULES, wanted)
    return editable.graph() if counts else graph


def _read_by_products(graph: Graph) -> Collection[str]:
    """Return elementwise results that reach a product of two tensors, perhaps through moves and elementwise
    operators.
    """
    found: set[str] = set()
    for node in reversed(graph.nodes):
        varying = [name for name in node.inputs if name not in graph.constants]
        is_product = isinstance(node.operator, MatMul) and graph.tensors[node.output].dtype in QUANTIZED
        if (is_product and node.inputs[1] in varying) or (
            node.output in found and isinstance(node.operator, _MOVES | _UNIFORM)
        ):
            found.update(varying)
    return [
        node.output for node in graph.nodes if node.output in found and isinstance(node.operator, _UNIFORM)
    ]
