"""Equal Quantize and Requantize nodes of one tensor as one.

Some quantizers give each reader of a tensor a Quantize and Dequantize pair of its own, for example ONNX
Runtime with ``DedicatedQDQPair``. Then the tensor has two readers, and its product would stay in float32.
An operand of several Concats is requantized for each of them, often to the same scale.
"""

from dataclasses import replace

from accel.graph.elementwise_operators import Quantize, Requantize
from accel.graph.graph import Graph, Node, with_nodes


def merge_equal_quantizes(graph: Graph) -> Graph:
    """Keep one of all nodes with the same operator, operand, dtype, scale and zero point. Outputs stay."""
    kept: dict[object, str] = {}
    renamed: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        out = graph.tensors[node.output]
        inputs = tuple(renamed.get(name, name) for name in node.inputs)
        if isinstance(node.operator, Quantize | Requantize) and node.output not in graph.outputs:
            key = (type(node.operator), inputs, out.dtype, out.quantization)
            first = kept.setdefault(key, node.output)
            if first != node.output:
                renamed[node.output] = first
                continue
        nodes.append(replace(node, inputs=inputs))
    if not renamed:
        return graph
    return with_nodes(graph, nodes)
