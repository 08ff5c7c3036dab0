"""Equality saturation: all rules are applied at once to an e-graph, until none adds anything or at a limit.

Then an integer program extracts graphs (:mod:`accel.rewriting.extraction`). They, the graph of the
simplifying rules alone, and the given graph are compared. docs/how-to/rewrite-a-graph.md has the reasons.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct, field

from accel.graph.graph import Graph
from accel.rewriting.content_numbers import ContentNumbers
from accel.rewriting.extraction import Extractor
from accel.rewriting.pattern import Match, NewNode, Term
from accel.rewriting.rule import Rule
from accel.rewriting.rule_application import simplify
from accel.rewriting.search_result import CostModel, Ending, SearchLimits, SearchResult
from accel.rewriting.tensor_egraph import EMatch, TensorEGraph

_EXTRACTION_SHARE = 0.5
"""Of the seconds after the first predictions."""


def saturate(
    graph: Graph,
    rules: Sequence[Rule],
    costs: CostModel,
    *,
    limits: SearchLimits | None = None,
    numbers: ContentNumbers | None = None,
) -> SearchResult:
    """Search for the graph with the fewest predicted cycles.

    Raises:
        AccelError: egglog or highspy is not installed.
    """
    begin = time.perf_counter()
    limits = limits or SearchLimits()
    numbers = numbers or ContentNumbers()
    before = costs.cycles(graph)
    simplified, counts = simplify(graph, rules)
    # the first graph wins if costs are equal
    candidates = [(before, graph, Counter[str]()), (costs.cycles(simplified), simplified, counts)]
    egraph = TensorEGraph(graph, numbers)
    extractor = Extractor(graph, egraph, costs)  # before the saturation, because highspy may be missing
    left = begin + limits.seconds - time.perf_counter()
    stop = time.perf_counter() + left * (1 - _EXTRACTION_SHARE)
    saturation = _Saturation(egraph, rules, limits, stop)
    ended_by = saturation.run()
    seen = {numbers.graph(graph), numbers.graph(simplified)}
    for extracted, applied in extractor.graphs(begin + limits.seconds):
        number = numbers.graph(extracted)
        if number not in seen:
            seen.add(number)
            candidates.append((costs.cycles(extracted), extracted, applied))
    if extractor.ran_out_of_time:  # another run may find another graph
        ended_by = "seconds"
    cycles, best, applied = min(candidates, key=lambda one: one[0])
    return SearchResult(
        graph=best,
        search="saturate",
        rules=dict(sorted(applied.items())),
        cycles_before=before,
        cycles_after=cycles,
        graphs=len(seen),
        nodes=egraph.count,
        seconds=time.perf_counter() - begin,
        ended_by=ended_by,
    )


class _Saturation(Struct):
    egraph: TensorEGraph
    rules: Sequence[Rule]
    limits: SearchLimits
    stop: float
    _done: set[tuple[str, EMatch]] = field(default_factory=set)
    _covers: dict[int, frozenset[int]] = field(default_factory=dict)
    """By reference: the roots of one node with several roots."""
    _joined: set[tuple[str, frozenset[int]]] = field(default_factory=set)
    _added: int = 0

    def run(self) -> Ending:
        """Return the limit that ended the search, or ``complete``."""
        for iteration in range(self.limits.iterations):
            rules = [
                rule
                for rule in self.rules
                if len(rule.roots) == 1 or iteration < self.limits.joined_iterations
            ]
            before = self.egraph.count, len(self.egraph.nodes)
            ending = self._apply(rules)
            self.egraph.rebuild()
            if ending is not None:
                return ending
            if (self.egraph.count, len(self.egraph.nodes)) == before:
                return "complete"
        return "iterations"

    def _apply(self, rules: Sequence[Rule]) -> Ending | None:
        """New matches belong to the next iteration."""
        self._added = 0
        for rule, match, found in self.egraph.matches(rules, self._done):
            if time.perf_counter() > self.stop:
                return "seconds"
            if self.egraph.count + self._added >= self.limits.nodes:
                return "nodes"
            self._done.add((rule.name, found))
            self._apply_once(rule, match)
        return None

    def _apply_once(self, rule: Rule, match: Match) -> None:
        roots = [int(root.key) for root in match.roots]
        covers = [self._cover(root) for root in roots]
        everything = frozenset[int]().union(*covers)
        if len(roots) > 1:
            key = rule.name, everything
            is_disjoint = sum(map(len, covers)) == len(everything)
            if key in self._joined or not is_disjoint or self._depend_on_one_another(roots):
                return
        terms = rule.terms(match)
        if terms is None:
            return
        if len(roots) > 1:
            self._joined.add((rule.name, everything))
        made: dict[int, int] = {}
        for root, term in zip(roots, terms, strict=True):
            self.egraph.union(root, self.egraph.add_term(term, rule.name, made))
        self._added += len(made)
        if len(roots) > 1:
            for shared in _shared_nodes(terms):
                self._covers[made[shared]] = everything

    def _cover(self, root: int) -> frozenset[int]:
        for reference, cover in self._covers.items():
            if self.egraph.find(reference) == root:
                return cover
        return frozenset({root})

    def _depend_on_one_another(self, roots: Sequence[int]) -> bool:
        """Whether a root depends on another one. Then no graph has one node for both."""
        for root in roots:
            others = {*roots} - {root}
            seen: set[int] = set()
            waiting = [root]
            while waiting:
                for node in self.egraph.nodes.get(waiting.pop(), ()):
                    new = {*node.operands} - seen
                    if new & others:
                        return True
                    seen |= new
                    waiting += new
        return False


def _shared_nodes(terms: Sequence[Term]) -> set[int]:
    found = [set(_nodes(term)) for term in terms]
    return set.intersection(*found)


def _nodes(term: Term) -> set[int]:
    if not isinstance(term, NewNode):
        return set()
    return {id(term)}.union(*map(_nodes, term.operands))
