"""Predicted cycles and bytes of fused nodes, on the machine and on the host.

The host's assumed speed is in its favour: it touches each byte once, multiplies at one MAC per cycle, and
does other arithmetic for free.
"""

from math import prod

from accel.core.config import Config
from accel.graph.graph import Graph
from accel.graph.graph_tensor import Tensor
from accel.network.cost import ZERO_COST, Cost
from accel.network.fused_nodes import FusedNodes
from accel.network.host_inputs import choose_layer_mapping, least_of_layer
from accel.network.lowering.lowered_layer import LoweredLayer

HOST_SWITCH_CYCLES = 1000
"""From a program's end until the host computes, and back: 10 us at 100 MHz, plus the machine's latency."""
HOST_CYCLES_PER_BYTE = 1
HOST_CYCLES_PER_MAC = 1


def machine_cost(graph: Graph, fused: FusedNodes, layer: LoweredLayer, config: Config) -> Cost:
    best = choose_layer_mapping(graph, layer, config).candidates[0]
    nbytes = best.read_bytes + _moved_results(graph, fused, layer)
    return Cost(cycles=round(best.prediction.cycles), host_cycles=0, nbytes=nbytes)


def least_machine_cost(graph: Graph, fused: FusedNodes, layer: LoweredLayer, config: Config) -> Cost:
    """Return a lower bound of the cost, without a search for plans.

    Simulated cycles are never below it. Predicted ones can be: those of an Add by up to 40 %.
    """
    least = least_of_layer(graph, layer, config)
    nbytes = int(least.read_bytes) + _moved_results(graph, fused, layer)
    return Cost(cycles=int(least.cycles), host_cycles=0, nbytes=nbytes, is_bound=True)


def _moved_results(graph: Graph, fused: FusedNodes, layer: LoweredLayer) -> int:
    residuals = sum(prod(operand.shape) for operand in layer.operands if operand.name == "residual")
    return residuals + graph.tensors[fused.output].size  # int8 or uint8: a byte each


def host_cost(graph: Graph, fused: FusedNodes, config: Config, *, switches: bool) -> Cost:
    if fused.moves_nothing:
        return ZERO_COST
    read = [graph.tensors[name] for name in fused.inputs if name not in graph.constants]
    nbytes = sum(map(_nbytes, [*read, graph.tensors[fused.output]]))
    cycles = HOST_CYCLES_PER_BYTE * nbytes + HOST_CYCLES_PER_MAC * fused.macs(graph)
    if switches:
        cycles += switch_cycles(config)
    return Cost(cycles=cycles, host_cycles=cycles, nbytes=nbytes)


def switch_cycles(config: Config) -> int:
    # the last write, and the next program's instructions, micro-ops and data
    return HOST_SWITCH_CYCLES + config.write_latency + 3 * config.read_latency


def _nbytes(tensor: Tensor) -> int:
    return tensor.size * (1 if tensor.dtype in ("int8", "uint8") else 4)
