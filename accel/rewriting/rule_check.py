"""The check of rules: both sides are computed on drawn graphs, and must be equal bit for bit."""

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from accel.base.errors import GraphError, MismatchError
from accel.graph.graph import Graph
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import Array, random_values
from accel.rewriting.editable_graph import EditableGraph
from accel.rewriting.rule import Rule
from accel.rewriting.rule_application import applications

SUITE_INSTANCES = 20
LEAST_APPLIED = 0.2
"""Of instances in which a rule must apply. The others fail the condition on purpose, which tests its
boundary.
"""


class RuleCheck(Struct, frozen=True, kw_only=True):
    rule: str
    instances: int
    applied: int


def check_rule(rule: Rule, count: int = SUITE_INSTANCES, seed: int = 0) -> RuleCheck:
    """Compare both sides of a rule on ``count`` drawn graphs.

    Raises:
        MismatchError: the two sides differ.
        GraphError: the rule applies to too few graphs, or its replacement does not fit.
    """
    applied = 0
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        graph = rule.instance(rng)
        inputs = {name: random_values(rng, graph.tensors[name]) for name in graph.inputs}
        expected = evaluate(graph, inputs)
        was_applied = False
        for new in rewritten(rule, graph):
            was_applied = True
            found = evaluate(new, inputs)
            for name in graph.outputs:
                differing = differing_values(found[name], expected[name])
                if differing:
                    raise MismatchError(
                        f"rule {rule.name!r}: {differing} of {found[name].size} values of {name!r} differ in "
                        f"instance {number} of seed {seed}; both sides must be equal bit for bit"
                    )
        applied += was_applied
    if applied < LEAST_APPLIED * count:
        raise GraphError(
            f"rule {rule.name!r} applies to {applied} of {count} drawn graphs; its generator must draw "
            f"graphs of which at least {LEAST_APPLIED:.0%} match"
        )
    return RuleCheck(rule=rule.name, instances=count, applied=applied)


def rewritten(rule: Rule, graph: Graph) -> Iterator[Graph]:
    """Yield the graphs after one application of the rule."""
    base = EditableGraph(graph)
    for output in base.results():
        for match, terms in applications(base, rule, output):
            new = base.copy()
            new.replace(rule, match, terms)
            yield new.graph()


def differing_values(found: Array, expected: Array) -> int:
    """Count values with different bits. All NaNs are equal."""
    bits, expected_bits = (
        np.ascontiguousarray(one).reshape(-1, 1).view(np.uint8) for one in (found, expected)
    )
    differs = (bits != expected_bits).any(axis=1).reshape(found.shape)
    if found.dtype.kind == "f":
        differs &= ~(np.isnan(found) & np.isnan(expected))
    return int(differs.sum())
