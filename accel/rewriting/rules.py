"""The rules: each a pattern, a condition and a replacement that is equal bit for bit.

The order of ``RULES`` is the order in which rules are tried at a node.
"""

from __future__ import annotations

from accel.rewriting.elementwise_rules import ELEMENTWISE_RULES
from accel.rewriting.movement_rules import MOVEMENT_RULES
from accel.rewriting.product_rules import PRODUCT_RULES
from accel.rewriting.rule import Rule

RULES: tuple[Rule, ...] = (
    *ELEMENTWISE_RULES,
    *MOVEMENT_RULES,
    *PRODUCT_RULES,
)
