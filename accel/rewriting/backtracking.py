"""Backtracking over rewritten graphs, in the order of their cost.

The search expands the cheapest graph that is not expanded yet: it applies each rule at each match. This is
the search of MetaFlow (Jia et al., MLSys 2019).
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from accel.base.rewrite_choices import RELAXATION
from accel.base.unique_names import Names
from accel.graph.graph import Graph
from accel.rewriting.content_numbers import ContentNumbers
from accel.rewriting.editable_graph import EditableGraph
from accel.rewriting.rule import Rule
from accel.rewriting.rule_application import applications, apply_everywhere, simplify
from accel.rewriting.search_result import Ending, SearchLimits, SearchResult


class _Candidate(Struct, frozen=True):
    cycles: int
    graph: Graph
    rules: Counter[str]


def backtrack(
    graph: Graph,
    rules: Sequence[Rule],
    cycles: Callable[[Graph], int],
    *,
    relaxation: float = RELAXATION,
    limits: SearchLimits | None = None,
    numbers: ContentNumbers | None = None,
) -> SearchResult:
    """Search for the graph with the fewest predicted cycles.

    Args:
        rules: simplifying ones are applied after each other rule, wherever they match.
        numbers: shared with ``cycles``.
    """
    begin = time.perf_counter()
    limits = limits or SearchLimits()
    numbers = numbers or ContentNumbers()
    names = Names()
    simplified, counts = simplify(graph, rules, names)
    before = cycles(graph)
    best = _Candidate(cycles(simplified), simplified, counts)
    if best.cycles > before:
        best = _Candidate(before, graph, Counter())
    start = _Candidate(cycles(simplified), simplified, counts)
    seen = {numbers.graph(graph), numbers.graph(simplified)}
    queue: list[tuple[int, int, _Candidate]] = [(start.cycles, 0, start)]
    ended_by: Ending = "complete"

    def is_over() -> bool:
        nonlocal ended_by
        if len(seen) >= limits.graphs:
            ended_by = "graphs"
        elif time.perf_counter() - begin > limits.seconds:
            ended_by = "seconds"
        return ended_by != "complete"

    while queue and not is_over():
        _, _, taken = heapq.heappop(queue)
        if taken.cycles > relaxation * best.cycles:
            break  # all others cost at least as much
        for new, applied in _neighbours(taken.graph, rules, names):
            number = numbers.graph(new)
            if number not in seen:
                seen.add(number)
                found = _Candidate(cycles(new), new, taken.rules + applied)
                if found.cycles < best.cycles:
                    best = found
                if found.cycles <= relaxation * best.cycles:
                    heapq.heappush(queue, (found.cycles, len(seen), found))
            if is_over():
                break
    return SearchResult(
        graph=best.graph,
        search="backtrack",
        rules=dict(sorted(best.rules.items())),
        cycles_before=before,
        cycles_after=best.cycles,
        graphs=len(seen),
        seconds=time.perf_counter() - begin,
        ended_by=ended_by,
    )


def _neighbours(graph: Graph, rules: Sequence[Rule], names: Names) -> Iterator[tuple[Graph, Counter[str]]]:
    simplifying = [rule for rule in rules if rule.simplifies]
    base = EditableGraph(graph, names)
    for output in base.results():
        for rule in rules:
            if rule.simplifies:
                continue
            for match, terms in applications(base, rule, output):
                new = base.copy()
                changed = new.replace(rule, match, terms)
                counts = apply_everywhere(new, simplifying, changed)
                counts[rule.name] += 1
                yield new.unchecked_graph(), counts
