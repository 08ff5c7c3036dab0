"""Searches for a better graph, by predicted cost."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from accel.base.errors import GraphError
from accel.base.rewrite_choices import RELAXATION, Search, check_search
from accel.core.config import Config
from accel.graph.graph import Graph
from accel.network.graph_cost import GraphCosts
from accel.rewriting.backtracking import backtrack
from accel.rewriting.content_numbers import ContentNumbers
from accel.rewriting.graph_comparison import compare_graphs
from accel.rewriting.rule import Rule
from accel.rewriting.rule_application import simplify
from accel.rewriting.rules import RULES
from accel.rewriting.saturation import saturate
from accel.rewriting.search_result import SearchLimits, SearchResult


def rewrite_graph(
    graph: Graph,
    config: Config,
    *,
    search: Search,
    rules: Sequence[Rule] = RULES,
    approximate: bool = False,
    fusion: bool = True,
    relaxation: float = RELAXATION,
    limits: SearchLimits | None = None,
) -> SearchResult:
    """Rewrite a graph, and compare it with the original on random inputs.

    Errors are those of :func:`accel.rewrite`.
    """
    check_search(search)
    if not (math.isfinite(relaxation) and relaxation >= 1):
        raise GraphError(f"the relaxation is {relaxation!r}; it must be a number of at least 1")
    limits = limits or SearchLimits()
    numbers = ContentNumbers()
    costs = GraphCosts(config, approximate=approximate, fusion=fusion, numbers=numbers)
    if search == "backtrack":
        found = backtrack(graph, rules, costs.cycles, relaxation=relaxation, limits=limits, numbers=numbers)
    elif search == "saturate":
        found = saturate(graph, rules, costs, limits=limits, numbers=numbers)
    else:
        found = _simplified(graph, rules if search == "greedy" else (), costs)
    if found.graph is not graph:
        compare_graphs(graph, found.graph)
    return found


def _simplified(graph: Graph, rules: Sequence[Rule], costs: GraphCosts) -> SearchResult:
    begin = time.perf_counter()
    simplified, counts = simplify(graph, rules)
    return SearchResult(
        graph=simplified,
        search="greedy" if rules else "none",
        rules=dict(sorted(counts.items())),
        cycles_before=costs.cycles(graph),
        cycles_after=costs.cycles(simplified),
        graphs=1,
        seconds=time.perf_counter() - begin,
        ended_by="complete",
    )
