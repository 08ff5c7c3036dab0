"""Constant folding: what does not depend on a run is computed once."""

from accel.graph.evaluate import evaluate_node
from accel.graph.graph import Graph, build_graph


def fold_constants(graph: Graph) -> Graph:
    """The graph with constants in the place of nodes whose operands are constants.

    Args:
        graph: any.
    """
    constants = dict(graph.constants)
    kept = []
    for node in graph.nodes:
        if all(name in constants for name in node.inputs):
            constants[node.output] = evaluate_node(graph, node, [constants[name] for name in node.inputs])
        else:
            kept.append(node)
    return build_graph(graph.name, graph.tensors.values(), constants, kept, graph.inputs, graph.outputs)
