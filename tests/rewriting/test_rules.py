"""Rules: both sides are equal on drawn graphs."""

import pytest

from accel.rewriting.rule_check import check_rule
from accel.rewriting.rules import RULES


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_both_sides_are_equal_bit_for_bit(rule):
    check_rule(rule)


def test_names_are_unique():
    assert len({rule.name for rule in RULES}) == len(RULES)
