"""Equal Quantize nodes of one tensor as one.

Some quantizers give each reader of a tensor a Quantize and Dequantize pair of its own, for example ONNX
Runtime with ``DedicatedQDQPair``. Then the tensor has two readers, and its product would stay in float32.
"""

from dataclasses import replace

from accel.graph.elementwise_operators import Quantize
from accel.graph.graph import Graph, Node, build_graph


def merge_equal_quantizes(graph: Graph) -> Graph:
    """Keep one of all Quantize nodes with the same operand, dtype, scale and zero point. Outputs stay."""
    kept: dict[object, str] = {}
    renamed: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        out = graph.tensors[node.output]
        if isinstance(node.operator, Quantize) and node.output not in graph.outputs:
            first = kept.setdefault((node.inputs, out.dtype, out.quantization), node.output)
            if first != node.output:
                renamed[node.output] = first
                continue
        nodes.append(replace(node, inputs=tuple(renamed.get(name, name) for name in node.inputs)))
    if not renamed:
        return graph
    return build_graph(
        graph.name, graph.tensors.values(), graph.constants, nodes, graph.inputs, graph.outputs
    )
