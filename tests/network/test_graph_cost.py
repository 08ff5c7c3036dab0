"""The predicted cost of graphs: equal to what a build chooses, and cached by content."""

from dataclasses import replace

import numpy as np
import pytest

from accel.compiler.target.machine import machine
from accel.graph.elementwise_operators import Clip, Dequantize, Quantize
from accel.graph.graph import Graph
from accel.graph.movement_operators import Concat, Slice
from accel.graph.product_operators import Conv
from accel.graph.window_geometry import Windows
from accel.network.graph_cost import GraphCosts
from accel.network.graph_rewriting import rewrite_graph
from accel.network.network import Network
from accel.network.network_rewriting import rewrite
from accel.rewriting.instance_builder import InstanceBuilder

CONFIG = machine("vta-int8").config


def _conv(draw: InstanceBuilder, data: str, channels: int, kernel: int = 1) -> str:
    inputs = draw.tensors[data].shape[1]
    pad = (kernel // 2,) * 2
    windows = Windows(kernel=(kernel,) * 2, strides=(1, 1), dilations=(1, 1), begin=pad, end=pad)
    weights = draw.weights((channels, inputs, kernel, kernel), axis=None)
    quantization = draw.tensors[data].quantization
    return draw.node(
        Conv(windows=windows), data, weights, draw.bias(channels), dtype="int8", quantization=quantization
    )


def branches(seed: int = 0, channels: int = 16, size: int = 8) -> Graph:
    """Return convolutions of one tensor whose results are added."""
    draw = InstanceBuilder(np.random.default_rng(seed))
    x = draw.byte_input((1, channels, size, size), "int8")
    body = _conv(draw, x, channels)
    one, other = _conv(draw, body, channels), _conv(draw, body, channels)
    return draw.done(_conv(draw, draw.node(Concat(axis=1), one, other), channels, 3))


def test_the_cost_is_that_of_the_layers_that_a_build_chooses():
    graph = branches()
    program = Network(graph=graph).build(CONFIG)
    cost = GraphCosts(CONFIG).cost(graph)
    layers = sum(part.alone or 0 for part in program.parts)
    assert len(program.chains) == 1
    assert cost.cycles - cost.host_cycles == layers
    assert cost.host_cycles > 0  # the switch to the machine


def test_a_conversion_on_the_host_cuts_a_program():
    draw = InstanceBuilder(np.random.default_rng(1))
    x = draw.byte_input((1, 16, 8, 8), "int8")
    first = _conv(draw, x, 16)
    quantization = draw.tensors[first].quantization
    real = draw.node(Dequantize(), first, dtype="float32")
    back = draw.node(Quantize(), real, dtype="int8", quantization=quantization)
    cut = draw.done(_conv(draw, back, 16))
    draw = InstanceBuilder(np.random.default_rng(1))
    whole = draw.done(_conv(draw, _conv(draw, draw.byte_input((1, 16, 8, 8), "int8"), 16), 16))
    costs = GraphCosts(CONFIG)
    assert len(Network(graph=cut).build(CONFIG).chains) == 2
    moved_bytes = 2 * (1 + 4) * 16 * 64
    switch = costs.cost(whole).host_cycles
    assert costs.cost(cut).host_cycles == 2 * switch + moved_bytes


@pytest.mark.parametrize("aligned", [True, False])
def test_moves_of_whole_blocks_cost_nothing(aligned):
    draw = InstanceBuilder(np.random.default_rng(2))
    x = draw.byte_input((1, 32, 8, 8), "int8")
    body = _conv(draw, x, 32)
    sizes = (1, 16, 8, 8) if aligned else (1, 32, 8, 4)
    starts = tuple(16 if at == 1 and aligned else 4 if at == 3 and not aligned else 0 for at in range(4))
    part = draw.node(Slice(starts=starts, sizes=sizes, steps=(1,) * 4), body)
    graph = draw.done(_conv(draw, part, 16))
    costs = GraphCosts(CONFIG)
    without = [costs.cost(one).cycles for one in _convolutions_alone(graph)]
    switch = costs.cost(graph).host_cycles
    move = costs.cost(graph).cycles - (sum(without) - 2 * switch) - switch
    assert (move == 0) if aligned else (0 < move < 4000)


def _convolutions_alone(graph: Graph) -> list[Graph]:
    found = []
    for node in graph.nodes:
        if isinstance(node.operator, Conv):
            inputs = (node.inputs[0],)
            found.append(replace(graph, nodes=(node,), inputs=inputs, outputs=(node.output,)))
    return found


def test_equal_groups_of_other_graphs_are_not_predicted_again(monkeypatch):
    costs = GraphCosts(CONFIG)
    before = costs.cost(branches())
    monkeypatch.setattr("accel.network.graph_cost.FusionChooser", None)
    graph = branches()
    renamed = replace(graph, name="other")
    assert costs.cost(renamed) == before


def test_a_tensor_from_the_host_is_another_group():
    """The layer's data may be packed then."""
    draw = InstanceBuilder(np.random.default_rng(3))
    first = draw.done(_conv(draw, draw.byte_input((1, 3, 32, 32), "int8"), 16, 3))
    fresh = GraphCosts(CONFIG).cost(first)
    draw = InstanceBuilder(np.random.default_rng(3))
    x = draw.byte_input((1, 3, 32, 32), "int8")
    clipped = draw.node(Clip(low=-100, high=100), x)
    behind = draw.done(_conv(draw, clipped, 16, 3))
    costs = GraphCosts(CONFIG)
    costs.cost(behind)
    assert costs.cost(first) == fresh


def test_backtracking_merges_convolutions_where_that_is_predicted_to_help():
    graph = branches(channels=64, size=14)
    found = rewrite_graph(graph, CONFIG, search="backtrack")
    assert found.cycles_after <= found.cycles_before
    assert GraphCosts(CONFIG).cycles(found.graph) == found.cycles_after
    program = Network(graph=graph).build(CONFIG, rewrite="backtrack")
    assert program.rewriting is not None
    assert program.rewriting.rules == found.rules
    program.run(seed=1)


def test_a_rewritten_network_keeps_its_outputs_and_runs():
    network = Network(graph=branches(seed=5))
    new = rewrite(network, CONFIG, search="backtrack")
    assert new.graph.outputs == network.graph.outputs
    assert new.rewriting is not None
    assert new.build(CONFIG).rewriting == new.rewriting
    assert new.build(CONFIG).run(seed=2).wrong == 0
