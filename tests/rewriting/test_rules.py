"""Rules: both sides are equal on drawn graphs."""

import pytest

from accel.network.graph_preparation import ONE_ROW_RULES
from accel.rewriting.rule_check import check_rule
from accel.rewriting.rules import RULES
from tests.rewriting.random_walks import walk


@pytest.mark.parametrize("rule", [*RULES, *ONE_ROW_RULES], ids=lambda rule: rule.name)
def test_both_sides_are_equal_bit_for_bit(rule):
    check_rule(rule)


def test_names_are_unique():
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_rules_that_follow_one_another_change_no_result():
    applied = {name for seed in range(100) for name in walk(seed, 8)}
    assert len(applied) > len(RULES) // 2


def test_rewritten_graphs_run_on_machines():
    walks = [walk(seed, 6, "vta-npu") for seed in range(6)]
    assert sum(map(bool, walks)) > 3
