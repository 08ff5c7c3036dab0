"""The predicted cost of graphs: equal to what a build chooses, and cached by content."""

import numpy as np
import pytest

from accel.base.records import replace
from accel.compiler.target.machine import machine
from accel.graph.elementwise_operators import Clip, Dequantize, Quantize
from accel.graph.graph import Graph
from accel.graph.graph_tensor import Quantization
from accel.graph.movement_operators import Concat, Reshape, Slice, Transpose
from accel.graph.product_operators import Conv, MatMul
from accel.graph.window_geometry import Windows
from accel.network.graph_cost import GraphCosts
from accel.network.graph_rewriting import rewrite_graph
from accel.network.network import Network
from accel.network.network_file import load_network, network_bytes, save_network
from accel.network.network_rewriting import rewrite
from accel.network.predicted_cost import switch_cycles
from accel.network.rewrite_comparison import compiled_cost
from accel.rewriting.instance_builder import InstanceBuilder
from accel.rewriting.search_result import CompiledCost, SearchLimits

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


@pytest.mark.parametrize(("config", "programs"), [("vta-int8", 1), ("gemm8x8-int8", 3)])
def test_a_transpose_to_a_matrix_product_cuts_programs_if_elements_have_several_rows(config, programs):
    """gemm8x8 has 8 rows in an element: 8 rows of a matrix, but not 8 pixels of a picture."""
    draw = InstanceBuilder(np.random.default_rng(4))
    first = _conv(draw, draw.byte_input((1, 16, 8, 8), "int8"), 16)
    rows = draw.node(Reshape(sizes=(16, 64)), first)
    rows = draw.node(Transpose(permutation=(1, 0)), rows)
    product = draw.node(
        MatMul(),
        rows,
        draw.weights((16, 16), axis=None),
        dtype="int8",
        quantization=_quantization(draw, rows),
    )
    picture = draw.node(Transpose(permutation=(1, 0)), product)
    graph = draw.done(_conv(draw, draw.node(Reshape(sizes=(1, 16, 8, 8)), picture), 16, 3))
    target = machine(config).config
    switch = switch_cycles(target)
    assert len(Network(graph=graph).build(target).chains) == programs
    cost = GraphCosts(target).cost(graph)
    # each Transpose on the host reads and writes 1,024 bytes
    assert cost.host_cycles == programs * switch + (programs > 1) * 2 * 2048


def _quantization(draw: InstanceBuilder, name: str) -> Quantization | None:
    return draw.tensors[name].quantization


class _Inverted(GraphCosts):
    """A prediction that is wrong: the more nodes, the better."""

    def cycles(self, graph: Graph) -> int:
        return 1000 - len(graph.nodes)


def test_a_search_never_ends_worse_than_without(monkeypatch, tmp_path):
    """Whatever the search predicts, the faster compiled network is kept."""
    monkeypatch.setattr("accel.network.graph_rewriting.GraphCosts", _Inverted)
    graph = branches(seed=6, size=14)
    network = Network(graph=graph)
    greedy = network.build(CONFIG)
    program = network.build(CONFIG, rewrite="backtrack", limits=SearchLimits(graphs=12))
    assert program.rewriting is not None
    compiled = program.rewriting.compiled
    assert compiled is not None
    assert not compiled.keeps_search
    assert compiled.greedy == compiled_cost(greedy)
    assert compiled.greedy.cycles <= compiled.searched.cycles
    assert program.rewriting.graph is graph
    assert network_bytes(replace(program, rewriting=None)) == network_bytes(greedy)
    assert "without the search is kept" in program.rewriting.describe()
    save_network(program, tmp_path / "net.accel")
    loaded = load_network(tmp_path / "net.accel").rewriting
    assert loaded is not None
    assert loaded.to_dict() == program.rewriting.to_dict()


def test_the_compiled_cost_is_that_of_the_run_and_of_the_host():
    graph = branches(seed=7)
    program = Network(graph=graph).build(CONFIG)
    found = compiled_cost(program)
    assert found == CompiledCost(
        cycles=(program.run(check=False).cycles or 0) + switch_cycles(CONFIG), programs=1
    )
