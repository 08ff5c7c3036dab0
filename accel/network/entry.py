"""Layers whose data enters from the host, which packs it so that they take the fewest cycles.

Elsewhere a layer takes what its neighbour has written, as it lies. What it writes itself always lies as
without a mapping, for its neighbours.
"""

from accel.compiler.mappings.choose import Choice, choose
from accel.compiler.mappings.mapping import AUTO, PLAIN
from accel.core.config import Config
from accel.graph.graph import Graph
from accel.graph.movement import Identity, Reshape, Transpose
from accel.network.lower import Layer

_DATA = "data"
"""What the input is called that operators with mappings take from other layers."""


def planned(graph: Graph, layer: Layer, config: Config) -> Choice:
    """A layer's mapping and plans.

    Raises:
        ScheduleError: no plan fits the machine.
    """
    mapping = AUTO if enters(graph, layer) else PLAIN
    return choose(layer.workload(), config, mapping=mapping, keep_results=True)


def enters(graph: Graph, layer: Layer) -> bool:
    """Whether the host packs a layer's data: it is an input of the graph, or made of floating-point numbers,
    which the machine does not have, and since then at most turned or given another shape."""
    found = next((operand.tensor for operand in layer.operands if operand.name == _DATA), None)
    while found is not None and found not in graph.inputs:
        node = graph.producers.get(found)
        if node is None:
            return False
        if any(one.dtype == "float32" for one in graph.operands(node)):
            return True
        found = node.inputs[0] if isinstance(node.operator, Identity | Reshape | Transpose) else None
    return found is not None
