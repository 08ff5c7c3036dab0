"""Tables of functions as ONNX Runtime computes them.

ONNX Runtime evaluates polynomials. For example, 3 % of random tables of Sigmoid have an entry that differs by
1 from numpy's.
"""

from accel.base.errors import GraphError
from accel.base.records import replace
from accel.formats.onnx_runtime import run_optimized
from accel.graph.elementwise_operators import Function
from accel.graph.graph import Graph, Node, build_graph, with_nodes
from accel.graph.graph_tensor import QUANTIZED, Array, Tensor
from accel.graph.qdq_tables import evaluate_table
from accel.graph.quantize_values import all_values


def with_runtime_tables(graph: Graph) -> Graph:
    """Fill in the entries of tables, if ONNX Runtime is installed."""
    nodes = [_with_entries(graph, node) for node in graph.nodes]
    if nodes == list(graph.nodes):
        return graph
    return with_nodes(graph, nodes)


def runtime_table(graph: Graph, values: Array) -> Array:
    """Compute ``y`` of a graph from ``x`` in ONNX Runtime, or in numpy without it."""
    try:
        return _run(graph, values)
    except GraphError:
        return evaluate_table(graph, values)


def _run(graph: Graph, values: Array) -> Array:
    from accel.formats.onnx_export import export_onnx  # slow to import

    return run_optimized(export_onnx(graph), {"x": values}, ["y"])[0]["y"]


def _with_entries(graph: Graph, node: Node) -> Node:
    operator, out = node.operator, graph.tensors[node.output]
    if not isinstance(operator, Function) or operator.entries or out.dtype not in QUANTIZED:
        return node
    operand = graph.tensors[node.inputs[0]]
    try:
        entries = _entries(operator, operand, out)
    except GraphError:
        return node
    return replace(node, operator=replace(operator, entries=entries))


def _entries(operator: Function, operand: Tensor, out: Tensor) -> tuple[int, ...]:
    x = replace(operand, name="x", shape=(256,))
    y = replace(out, name="y", shape=(256,))
    node = Node(name="table", operator=operator, inputs=("x",), output="y")
    alone = build_graph("table", [x, y], {}, [node], ["x"], ["y"])
    return tuple(_run(alone, all_values(operand.dtype)).tolist())
