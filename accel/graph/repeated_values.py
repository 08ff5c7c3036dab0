"""Functions of repeated values, computed before the values are repeated."""

from dataclasses import replace

from accel.base.unique_names import Names
from accel.graph.elementwise_operators import Clip, Function, Requantize, Table
from accel.graph.graph import Graph, Node, with_nodes
from accel.graph.graph_tensor import QUANTIZED
from accel.graph.movement_operators import Take

_FUNCTIONS = Clip | Function | Requantize | Table


def compute_before_repeats(graph: Graph) -> Graph:
    """Move functions of one byte before a Take that repeats values, if nothing else reads its result.

    For example, a Requantize after a nearest Resize by 2 computes a quarter of the values before it.
    """
    tensors, nodes = dict(graph.tensors), {node.output: node for node in graph.nodes}
    names = Names()
    names.reserve([*tensors, *(node.name for node in graph.nodes)])
    readers = {name: len(found) for name, found in graph.consumers().items()}
    changed = False
    for function in graph.nodes:
        if not isinstance(function.operator, _FUNCTIONS) or tensors[function.output].dtype not in QUANTIZED:
            continue
        moved = function
        while True:
            take = nodes.get(moved.inputs[0])
            if take is None or take.output in graph.outputs or readers[take.output] > 1:
                break
            if (
                not isinstance(take.operator, Take)
                or tensors[take.output].size <= tensors[take.inputs[0]].size
            ):
                break
            source, out = tensors[take.inputs[0]], tensors[moved.output]
            early = names.fresh(f"{take.inputs[0]}/early")
            tensors[early] = replace(out, name=early, shape=source.shape)
            readers[early] = 1
            del nodes[take.output]
            nodes[moved.output] = Node(
                name=take.name, operator=take.operator, inputs=(early,), output=moved.output
            )
            moved = replace(moved, inputs=take.inputs, output=early)
            nodes[early] = moved
            changed = True
    if not changed:
        return graph
    return with_nodes(graph, nodes.values(), tensors=tensors.values())
