"""Matrix products without Reshapes around them.

A Gemm multiplies matrices only. So a linear layer of tokens (1, 64, 384) is exported as Reshape to (64, 384),
Gemm, and Reshape back. As one product of (1, 64, 384), the next Add of a residual can be part of its layer.
"""

from dataclasses import replace

from accel.graph.graph import Graph, Node, with_nodes
from accel.graph.graph_tensor import QUANTIZED
from accel.graph.movement_operators import Reshape
from accel.graph.product_operators import MatMul


def drop_row_reshapes(graph: Graph) -> Graph:
    """Compute integer products of a matrix on the tensor before a Reshape that joined its leading axes."""
    consumers = graph.consumers()
    products: dict[str, Node] = {}
    """By the output of the Reshape back, the product that computes it."""
    for node in graph.nodes:
        source = _rows_before(graph, node)
        if source is None or node.output in graph.outputs:
            continue
        readers = consumers.get(node.output, [])
        if len(readers) != 1 or not isinstance(readers[0].operator, Reshape):
            continue
        out = graph.tensors[readers[0].output]
        if out.shape[:-1] == graph.tensors[source].shape[:-1]:
            products[out.name] = replace(node, inputs=(source, *node.inputs[1:]), output=out.name)
    if not products:
        return graph
    names = {node.name for node in products.values()}
    nodes = [products.get(node.output, node) for node in graph.nodes if node.name not in names]
    return with_nodes(graph, nodes)


def _rows_before(graph: Graph, node: Node) -> str | None:
    """Return the tensor whose leading axes a Reshape joins before a product of two matrices, or None."""
    if not isinstance(node.operator, MatMul) or graph.tensors[node.output].dtype not in {*QUANTIZED, "int32"}:
        return None
    data, weights, *_ = graph.operands(node)
    reshape = graph.producers.get(data.name)
    if reshape is None or not isinstance(reshape.operator, Reshape):
        return None
    source = graph.tensors[reshape.inputs[0]]
    is_joined = len(source.shape) > 2 and source.shape[-1] == data.shape[-1]
    is_matrix = len(data.shape) == len(weights.shape) == 2 and weights.name in graph.constants
    return source.name if is_joined and is_matrix else None
