"""Searches with all rules on drawn graphs: the result computes the same, whatever the costs are."""

import numpy as np
import pytest

from accel.graph.graph import Graph
from accel.rewriting.backtracking import backtrack
from accel.rewriting.graph_comparison import compare_graphs
from accel.rewriting.rules import RULES
from accel.rewriting.saturation import saturate
from accel.rewriting.search_result import SearchLimits, SearchResult

pytest.importorskip("egglog")
pytest.importorskip("highspy")
LIMITS = SearchLimits(seconds=60, graphs=60, nodes=150, iterations=3)


class DrawnCosts:
    """A random price for each kind of operator, so that searches take rules in all directions."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._prices: dict[str, int] = {}

    def cycles(self, graph: Graph) -> int:
        return sum(self._price(node.operator.kind) for node in graph.nodes)

    def node_cycles(self, graph: Graph, *, can_fuse: bool, is_exact: bool) -> int:
        return self.cycles(graph) // (1 if is_exact else 2)

    def _price(self, kind: str) -> int:
        rng = np.random.default_rng([self._seed, *kind.encode()])
        return self._prices.setdefault(kind, int(rng.integers(1, 100)))


def search_drawn_graph(name: str, seed: int) -> list[SearchResult]:
    """Search from an instance of a rule, and compare the results with it."""
    rule = next(one for one in RULES if one.name == name)
    graph = rule.instance(np.random.default_rng([seed, 7]))
    costs = DrawnCosts(seed)
    found = [
        backtrack(graph, RULES, costs.cycles, limits=LIMITS, relaxation=1.5),
        saturate(graph, RULES, costs, limits=LIMITS),
    ]
    for one in found:
        compare_graphs(graph, one.graph, seed)
        assert one.graph.outputs == graph.outputs
        assert one.cycles_after == costs.cycles(one.graph) <= costs.cycles(graph)
    return found


@pytest.mark.parametrize("name", [rule.name for rule in RULES])
def test_results_are_equal(name: str) -> None:
    search_drawn_graph(name, seed=0)
