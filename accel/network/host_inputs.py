"""Mappings of layers whose data the host packs."""

from accel.compiler.mappings.cycle_bound import LowerBound
from accel.compiler.mappings.mapping import AUTO, PLAIN
from accel.compiler.mappings.mapping_choice import MappingChoice, choose_mapping, least_mapped
from accel.core.config import Config
from accel.graph.elementwise_operators import SAME_BYTES
from accel.graph.graph import Graph
from accel.graph.movement_operators import Transpose
from accel.network.lowering.lowered_layer import LoweredLayer

_DATA = "data"


def choose_layer_mapping(graph: Graph, layer: LoweredLayer, config: Config) -> MappingChoice:
    return choose_mapping(layer.workload(), config, mapping=_mapping(graph, layer), keep_results=True)


def least_of_layer(graph: Graph, layer: LoweredLayer, config: Config) -> LowerBound:
    """Return a lower bound of what :func:`choose_layer_mapping` can find."""
    return least_mapped(layer.workload(), config, mapping=_mapping(graph, layer), keep_results=True)


def _mapping(graph: Graph, layer: LoweredLayer) -> str:
    return AUTO if host_packs_data(graph, layer) else PLAIN


def host_packs_data(graph: Graph, layer: LoweredLayer) -> bool:
    name = next((operand.tensor for operand in layer.operands if operand.name == _DATA), None)
    return name is not None and is_packed_by_host(graph, name)


def is_packed_by_host(graph: Graph, tensor: str) -> bool:
    """True for inputs of the graph and results of float32 operators, also after Transpose and operators that
    keep bytes.
    """
    name: str | None = tensor
    while name is not None and name not in graph.inputs:
        node = graph.producers.get(name)
        if node is None:
            return False
        if any(one.dtype == "float32" for one in graph.operands(node)):
            return True
        name = node.inputs[0] if isinstance(node.operator, SAME_BYTES | Transpose) else None
    return name is not None
