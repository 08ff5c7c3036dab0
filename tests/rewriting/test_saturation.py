"""Equality saturation: it finds what greedy does not, is never worse, and ends."""

import sys

import numpy as np
import pytest

from accel.base.errors import AccelError
from accel.base.records import replace
from accel.graph.elementwise_operators import Clip, Identity
from accel.graph.movement_operators import Concat, Slice, Transpose
from accel.graph.product_operators import MatMul
from accel.rewriting.content_numbers import ContentNumbers
from accel.rewriting.extraction import Extractor
from accel.rewriting.graph_comparison import compare_graphs
from accel.rewriting.instance_builder import InstanceBuilder
from accel.rewriting.pattern import constant, make, op, rest, tensor
from accel.rewriting.rule import Rule
from accel.rewriting.rules import RULES
from accel.rewriting.saturation import saturate
from accel.rewriting.search_result import SearchLimits
from accel.rewriting.tensor_egraph import TensorEGraph
from tests.rewriting.search_rules import COSTS, SEARCH_RULES, SWAP, TRANSPOSE_TWICE, chain

pytest.importorskip("egglog")
pytest.importorskip("highspy")
PATIENT = SearchLimits(seconds=120)


class _Costs:
    """Costs by the name of the operator, for whole graphs and for nodes."""

    def __init__(self, **prices: int) -> None:
        self._prices = prices
        self.exact = 0

    def cycles(self, graph):
        return sum(self._prices.get(node.operator.kind, 0) for node in graph.nodes)

    def node_cycles(self, graph, *, can_fuse, is_exact):
        self.exact += is_exact
        return self.cycles(graph) if is_exact else self.cycles(graph) // 2


def test_it_finds_a_graph_that_greedy_does_not():
    graph = chain(3)
    found = saturate(graph, SEARCH_RULES, _Costs(Transpose=100, Clip=10), limits=PATIENT)
    assert (found.cycles_before, found.cycles_after) == (630, 30)
    assert [type(node.operator) for node in found.graph.nodes] == [Clip] * 3
    assert found.graph.outputs == graph.outputs
    assert found.ended_by == "complete"
    compare_graphs(graph, found.graph)


def test_it_is_deterministic():
    results = [
        saturate(chain(4), SEARCH_RULES, _Costs(Transpose=100, Clip=10), limits=PATIENT) for _ in range(2)
    ]
    assert results[0].graph.nodes == results[1].graph.nodes
    assert (results[0].rules, results[0].nodes) == (results[1].rules, results[1].nodes)


def test_costs_of_the_whole_decide():
    """The sum of the extraction prefers a graph that is worse as a whole."""

    class Fused(_Costs):
        def cycles(self, graph):
            return 1 if len(graph.nodes) == 3 else 1000

    found = saturate(chain(1), SEARCH_RULES, Fused(Transpose=100, Clip=10), limits=PATIENT)
    assert (found.cycles_before, found.cycles_after, len(found.graph.nodes)) == (1, 1, 3)
    assert found.rules == {}


def test_limits_end_it():
    costs, graph = _Costs(Transpose=1, Clip=1), chain(2)
    ended = {
        "iterations": SearchLimits(seconds=120, iterations=2),
        "nodes": SearchLimits(seconds=120, nodes=9),
        "seconds": SearchLimits(seconds=0),
    }
    for limit, limits in ended.items():
        found = saturate(graph, [*SEARCH_RULES, TRANSPOSE_TWICE], costs, limits=limits)
        assert found.ended_by == limit
        assert found.cycles_after <= found.cycles_before


def test_rules_that_undo_one_another_end():
    found = saturate(chain(2), SEARCH_RULES, _Costs(Transpose=1, Clip=1), limits=PATIENT)
    assert found.ended_by == "complete"


def test_a_tensor_that_is_read_twice_is_paid_once():
    """Two readers share a Transpose. A sum over trees would prefer the Transposes of the readers' own."""
    draw = InstanceBuilder(np.random.default_rng(1))
    x = draw.byte_input((3, 4), "int8")
    swapped = draw.node(Transpose(permutation=SWAP), x)
    outputs = [draw.node(Clip(low=low), swapped) for low in (-10, -20, -30)]
    graph = draw.done(*outputs)
    found = saturate(graph, SEARCH_RULES, _Costs(Transpose=100, Clip=10), limits=PATIENT)
    assert found.cycles_after == found.cycles_before == 130


def test_outputs_with_one_value_keep_their_names():
    draw = InstanceBuilder(np.random.default_rng(1))
    x = draw.byte_input((3, 4), "int8")
    first = draw.node(Clip(low=-10), x)
    second = draw.node(Identity(), draw.node(Clip(low=-10), x))
    graph = draw.done(first, second)
    drop = Rule(
        name="drop-identity",
        text="An Identity is its operand.",
        pattern=op(Identity, tensor("x")),
        replacement=lambda match: match["x"],
        instance=lambda rng: graph,
    )
    found = saturate(graph, [drop], _Costs(Clip=10, Identity=1), limits=PATIENT)
    assert found.graph.outputs == graph.outputs
    assert found.cycles_after == 11
    compare_graphs(graph, found.graph)


def test_three_products_of_one_tensor_become_one():
    draw = InstanceBuilder(np.random.default_rng(4))
    x = draw.byte_input((1, 4, 8), "int8")
    quantization = draw.quantization("int8", zero=0)
    outputs = [
        draw.node(MatMul(), x, draw.weights((8, size), axis=1), dtype="int8", quantization=quantization)
        for size in (4, 8, 16)
    ]
    graph = draw.done(*outputs)
    costs = _Costs(MatMul=100, Slice=1, Concat=1)
    found = saturate(
        graph, [r for r in RULES if r.name in {"merge-products", "slice-pair"}], costs, limits=PATIENT
    )
    kinds = [type(node.operator) for node in found.graph.nodes]
    assert kinds.count(MatMul) == 1
    assert kinds.count(Slice) >= 3
    assert found.rules["merge-products"] >= 1
    compare_graphs(graph, found.graph)


def _joins() -> tuple[TensorEGraph, Rule]:
    draw = InstanceBuilder(np.random.default_rng(2))
    x, y = draw.byte_input((2, 3), "int8"), draw.byte_input((2, 3), "int8")
    draw.tensors[y] = replace(draw.tensors[x], name=y)
    pair = draw.node(Concat(axis=0), x, y)
    graph = draw.done(draw.node(Concat(axis=0), pair, x, y))
    rule = Rule(
        name="flat",
        text="A Concat of a Concat becomes one.",
        pattern=op(Concat, op(Concat, rest("inner"), name="first"), rest("outer"), name="second"),
        replacement=lambda match: make(Concat(axis=0), *match.rest("inner"), *match.rest("outer")),
        instance=lambda rng: graph,
    )
    return TensorEGraph(graph, ContentNumbers()), rule


def test_rest_matches_all_counts_of_operands():
    egraph, rule = _joins()
    ((_, match, _),) = egraph.matches([rule])
    assert [len(match.rest(name)) for name in ("inner", "outer")] == [2, 2]
    assert match.rest("inner") == match.rest("outer")
    assert match.operator("first", Concat).axis == 0


def test_equal_operators_on_equal_operands_are_one_node():
    draw = InstanceBuilder(np.random.default_rng(1))
    x = draw.byte_input((3, 4), "int8")
    graph = draw.done(draw.node(Clip(low=-10), x), draw.node(Clip(low=-10), x))
    egraph = TensorEGraph(graph, ContentNumbers())
    assert egraph.count == 1
    first, second = (egraph.references[name] for name in graph.outputs)
    assert egraph.find(first) == egraph.find(second)
    (definition,) = egraph.definitions(str(second))
    assert definition[0] == Clip(low=-10)


def test_a_pattern_of_a_constant_needs_one():
    draw = InstanceBuilder(np.random.default_rng(1))
    x = draw.byte_input((3, 4), "int8")
    held = draw.constant("held", np.zeros((3, 4), np.int8), draw.tensors[x].quantization)
    graph = draw.done(draw.node(Clip(low=-10), x), draw.node(Clip(low=-10), held))
    rule = Rule(
        name="constant",
        text="A Clip of a constant.",
        pattern=op(Clip, constant("x"), name="clip"),
        replacement=lambda match: match["x"],
        instance=lambda rng: graph,
    )
    egraph = TensorEGraph(graph, ContentNumbers())
    assert [match["x"].values is not None for _, match, _ in egraph.matches([rule])] == [True]


@pytest.mark.parametrize("module", ["egglog", "highspy"])
def test_a_missing_package_names_the_extra(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, f"{module}.bindings", None)
    with pytest.raises(AccelError, match=rf"need.* {module}, which is not installed; .*\[rewrite\]"):
        saturate(chain(1), SEARCH_RULES, COSTS)


def test_all_rules_take_part():
    graph = chain(2)
    costs = _Costs(Transpose=100, Clip=10, Table=10, Reshape=10)
    found = saturate(graph, RULES, costs, limits=SearchLimits(seconds=120, nodes=400, iterations=4))
    assert found.cycles_after <= 20
    compare_graphs(graph, found.graph)


class _SlowCosts(_Costs):
    """Each prediction of a node takes a second of a clock that a test reads."""

    def __init__(self) -> None:
        super().__init__(Transpose=100, Clip=10)
        self.now = 0

    def node_cycles(self, graph, *, can_fuse, is_exact):
        self.now += 1
        return super().node_cycles(graph, can_fuse=can_fuse, is_exact=is_exact)


@pytest.mark.parametrize("seconds", [3, 1000])
def test_the_extraction_stops_between_two_predictions(seconds, monkeypatch):
    graph, costs = chain(3), _SlowCosts()
    egraph = TensorEGraph(graph, ContentNumbers())
    extractor = Extractor(graph, egraph, costs)
    monkeypatch.setattr("accel.rewriting.extraction.time.perf_counter", lambda: costs.now)
    found = list(extractor.graphs(seconds))
    monkeypatch.undo()
    assert egraph.count > 3
    assert extractor.ran_out_of_time is (seconds == 3)
    if seconds == 3:
        assert (costs.now, found) == (3, [])
    else:
        assert found
        assert costs.now >= egraph.count


def test_time_that_ends_the_extraction_is_reported_whatever_ended_the_saturation(monkeypatch):
    costs, limits = _Costs(Transpose=100, Clip=10), replace(PATIENT, iterations=2)
    assert saturate(chain(3), SEARCH_RULES, costs, limits=limits).ended_by == "iterations"

    def graphs(self, stop):
        self.ran_out_of_time = True
        return iter(())

    monkeypatch.setattr(Extractor, "graphs", graphs)
    assert saturate(chain(3), SEARCH_RULES, costs, limits=limits).ended_by == "seconds"


class _Recorder:
    """An e-graph of egglog that counts the commands of each text."""

    def __init__(self, egraph):
        self._egraph = egraph
        self.most = self.commands = 0

    def __getattr__(self, name):
        return getattr(self._egraph, name)

    def parse_program(self, text):
        found = self._egraph.parse_program(text)
        self.most, self.commands = max(self.most, len(found)), self.commands + len(found)
        return found


def test_each_command_is_parsed_alone():
    """2,000 commands in one text take 3 GB, and one by one nothing that is worth mentioning."""
    graph = chain(4)
    egraph = TensorEGraph(graph, ContentNumbers())
    recorder = egraph._egraph = _Recorder(egraph._egraph)
    list(egraph.matches(SEARCH_RULES))
    for node in graph.nodes:
        data = egraph.references[node.inputs[0]]
        egraph.add(Identity(), (data,), graph.tensors[node.inputs[0]], "")
    egraph.rebuild()
    assert recorder.commands > 10
    assert recorder.most == 1
