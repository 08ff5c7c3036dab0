"""The rules: each a pattern, a condition and a replacement that is equal bit for bit.

The order of ``RULES`` is the order in which rules are tried at a node.
"""

from __future__ import annotations

from accel.graph.movement_operators import Transpose
from accel.rewriting import rule_instances as instances
from accel.rewriting.pattern import Match, Term, make, op, tensor
from accel.rewriting.product_rules import PRODUCT_RULES
from accel.rewriting.rule import Rule


def _transpose_pair(match: Match) -> Term:
    first, second = (match.operator(name, Transpose).permutation for name in ("first", "second"))
    permutation = tuple(first[axis] for axis in second)
    if permutation == tuple(range(len(permutation))):
        return match["x"]
    return make(Transpose(permutation=permutation), match["x"])


TRANSPOSE_PAIR = Rule(
    name="transpose-pair",
    text="Two Transposes in sequence become one, or none.",
    pattern=op(Transpose, op(Transpose, tensor("x"), name="first"), name="second"),
    replacement=_transpose_pair,
    instance=instances.transpose_pairs,
    simplifies=True,
)

RULES: tuple[Rule, ...] = (
    TRANSPOSE_PAIR,
    *PRODUCT_RULES,
)
