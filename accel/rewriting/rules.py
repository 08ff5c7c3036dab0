"""All rules, in the order in which they are tried at a node."""

from __future__ import annotations

from accel.rewriting.byte_rules import BYTE_RULES
from accel.rewriting.constant_rules import CONSTANT_RULES
from accel.rewriting.elementwise_rules import ELEMENTWISE_RULES
from accel.rewriting.movement_rules import MOVEMENT_RULES
from accel.rewriting.product_rules import PRODUCT_RULES
from accel.rewriting.rule import Rule
from accel.rewriting.transpose_rules import TRANSPOSE_RULES

RULES: tuple[Rule, ...] = (
    *CONSTANT_RULES,
    *BYTE_RULES,
    *MOVEMENT_RULES,
    *ELEMENTWISE_RULES,
    *TRANSPOSE_RULES,
    *PRODUCT_RULES,
)
