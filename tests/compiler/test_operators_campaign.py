"""A few operators of the campaign."""

from collections import Counter

from tests.compiler.operators_campaign import outcome


def test_random_operators_on_random_machines() -> None:
    found = Counter(outcome(number) for number in range(40))
    assert found["right"] > 20
