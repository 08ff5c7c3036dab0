"""Backtracking: it finds what greedy does not, is never worse, and ends."""

import numpy as np
import pytest

from accel.base.records import replace
from accel.graph.elementwise_operators import Clip
from accel.graph.graph import Graph
from accel.graph.movement_operators import Transpose
from accel.rewriting.backtracking import backtrack
from accel.rewriting.content_numbers import ContentNumbers
from accel.rewriting.graph_comparison import compare_graphs
from accel.rewriting.instance_builder import InstanceBuilder
from accel.rewriting.movement_rules import TRANSPOSE_PAIR
from accel.rewriting.rule_application import simplify
from accel.rewriting.rule_check import check_rule
from accel.rewriting.rules import RULES
from accel.rewriting.search_result import SearchLimits
from tests.rewriting.search_rules import (
    COSTS,
    SEARCH_RULES,
    SWAP,
    TRANSPOSE_FIRST,
    TRANSPOSE_TWICE,
    chain,
)


@pytest.mark.parametrize("rule", [*SEARCH_RULES, TRANSPOSE_TWICE], ids=lambda rule: rule.name)
def test_the_rules_of_these_tests_are_exact(rule):
    check_rule(rule)


def test_backtracking_finds_a_graph_that_greedy_does_not():
    graph = chain(3)
    greedy, _ = simplify(graph, SEARCH_RULES)
    found = backtrack(graph, SEARCH_RULES, COSTS.cycles)
    # pairs between the Clips vanish without a search
    assert (COSTS.cycles(greedy), found.cycles_before) == (230, 630)
    assert found.cycles_after == COSTS.cycles(found.graph) == 30
    assert [type(node.operator) for node in found.graph.nodes] == [Clip] * 3
    assert found.ended_by == "complete"
    assert found.rules["transpose-pair"] == 3
    compare_graphs(graph, found.graph)


def test_relaxation_bounds_the_detour():
    draw = InstanceBuilder(np.random.default_rng(0))
    data = draw.node(Transpose(permutation=SWAP), draw.byte_input((3, 4), "int8"))
    data = draw.node(Clip(low=-90, high=100), draw.node(Clip(low=-100, high=90), data))
    graph = draw.done(draw.node(Transpose(permutation=SWAP), data))
    rules = [TRANSPOSE_PAIR, TRANSPOSE_FIRST]
    results = [backtrack(graph, rules, _two_steps, relaxation=one) for one in (1.0, 1.19, 1.2)]
    assert [one.cycles_after for one in results] == [100, 100, 10]
    assert results[2].rules == {"transpose-first": 2, "transpose-pair": 1}


def _two_steps(graph: Graph) -> int:
    """The first of two steps costs 20 cycles."""
    kinds = "".join(node.operator.kind[0] for node in graph.nodes)
    return {"TCCT": 100, "TCTC": 120, "CC": 10}[kinds]


def test_it_is_never_worse_than_the_given_graph():
    # the simplified graph costs more
    found = backtrack(chain(2), SEARCH_RULES, lambda graph: 100 - len(graph.nodes))
    assert found.cycles_after == found.cycles_before
    assert found.rules == {}


def test_limits_end_it():
    graph = chain(2)
    few = backtrack(graph, [TRANSPOSE_TWICE], lambda graph: 7, limits=SearchLimits(graphs=20))
    assert (few.ended_by, few.graphs) == ("graphs", 20)
    short = backtrack(graph, [TRANSPOSE_TWICE], lambda graph: 7, limits=SearchLimits(seconds=0))
    assert (short.ended_by, short.graphs) == ("seconds", 1)


def test_it_is_deterministic():
    found = [backtrack(chain(4), SEARCH_RULES, COSTS.cycles) for _ in range(2)]
    assert found[0].graph.nodes == found[1].graph.nodes
    assert (found[0].rules, found[0].graphs) == (found[1].rules, found[1].graphs)


def test_equal_graphs_have_equal_numbers():
    numbers = ContentNumbers()
    one, other = chain(2), chain(2)
    renamed = {node.output: f"new_{node.output}" for node in one.nodes[:-1]}
    names = lambda all_names: tuple(renamed.get(name, name) for name in all_names)  # noqa: E731
    changed = replace(
        one,
        nodes=tuple(
            replace(node, inputs=names(node.inputs), output=names([node.output])[0]) for node in one.nodes
        ),
        tensors={names([name])[0]: tensor for name, tensor in one.tensors.items()},
    )
    assert numbers.graph(one) == numbers.graph(other) == numbers.graph(changed)
    assert numbers.graph(one) != numbers.graph(chain(3))


def test_constants_have_numbers_by_values():
    numbers, graph = ContentNumbers(), chain(1)
    tensor = next(iter(graph.tensors.values()))
    values = np.arange(12, dtype=np.int8).reshape(3, 4)
    assert numbers.constant(tensor, values) == numbers.constant(tensor, values.copy())
    assert numbers.constant(tensor, values) != numbers.constant(tensor, values + 1)


def test_all_rules_take_part_in_a_search():
    graph = chain(2)
    found = backtrack(graph, RULES, COSTS.cycles, limits=SearchLimits(graphs=200, seconds=30))
    compare_graphs(graph, found.graph)
    assert found.cycles_after <= 30
