"""Constant folding."""

from accel.graph.graph import Graph, build_graph
from accel.graph.graph_evaluation import evaluate_node


def fold_constants(graph: Graph) -> Graph:
    """Replace nodes whose operands are constants by their results."""
    constants = dict(graph.constants)
    remaining = []
    for node in graph.nodes:
        if all(name in constants for name in node.inputs):
            constants[node.output] = evaluate_node(graph, node, [constants[name] for name in node.inputs])
        else:
            remaining.append(node)
    return build_graph(graph.name, graph.tensors.values(), constants, remaining, graph.inputs, graph.outputs)
