"""The application of rules wherever they match."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence

from accel.base.unique_names import Names
from accel.graph.graph import Graph
from accel.graph.graph_operator import Operator
from accel.rewriting.editable_graph import EditableGraph
from accel.rewriting.pattern import Match, Term
from accel.rewriting.rule import Rule

MAX_APPLICATIONS = 50
"""Limit for each node of a graph. Only rules that undo one another reach it."""


def applications(graph: EditableGraph, rule: Rule, output: str) -> Iterator[tuple[Match, tuple[Term, ...]]]:
    for match in graph.matches(rule, output):
        terms = rule.terms(match)
        if terms is not None and graph.can_replace(match, terms):
            yield match, terms


def apply_everywhere(graph: EditableGraph, rules: Iterable[Rule], outputs: Iterable[str]) -> Counter[str]:
    """Apply rules at some nodes, then wherever the graph changed, until none matches."""
    counts: Counter[str] = Counter()
    ordered: Sequence[Rule] = tuple(rules)
    depth = max((pattern.depth for rule in ordered for pattern in rule.roots), default=1)
    by_kind: dict[type[Operator], list[Rule]] = {}
    waiting = deque(outputs)
    is_waiting = set(waiting)
    limit = MAX_APPLICATIONS * (1 + len(waiting))
    while waiting and counts.total() < limit:
        output = waiting.popleft()
        is_waiting.discard(output)
        node = graph.node(output)
        if node is None:
            continue
        kind = type(node.operator)
        if kind not in by_kind:
            by_kind[kind] = [rule for rule in ordered if issubclass(kind, rule.roots[0].kinds)]
        for rule in by_kind[kind]:
            found = next(applications(graph, rule, output), None)
            if found is None:
                continue
            counts[rule.name] += 1
            for name in graph.downstream(graph.replace(rule, *found), depth - 1):
                if name not in is_waiting:
                    waiting.append(name)
                    is_waiting.add(name)
            break
    return counts


def simplify(graph: Graph, rules: Iterable[Rule], names: Names | None = None) -> tuple[Graph, Counter[str]]:
    """Apply simplifying rules until none matches.

    Args:
        names: as in :class:`~accel.rewriting.editable_graph.EditableGraph`.

    Returns:
        The graph, unchanged if no rule matched, and the number of applications of each rule.
    """
    return apply_rules(graph, (rule for rule in rules if rule.simplifies), names)


def apply_rules(
    graph: Graph, rules: Iterable[Rule], names: Names | None = None
) -> tuple[Graph, Counter[str]]:
    """Apply all given rules likewise."""
    editable = EditableGraph(graph, names)
    counts = apply_everywhere(editable, rules, editable.results())
    return (editable.graph() if counts else graph), counts
