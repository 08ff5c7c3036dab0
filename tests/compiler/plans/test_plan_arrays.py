"""Divisions of integers as floats: exact for all sizes that plans have."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from accel.compiler.plans.plan_arrays import ceil_div, divide

DIVISORS = st.integers(1, 1 << 26)


@given(st.lists(st.tuples(st.integers(0, (1 << 52) - 1), DIVISORS), min_size=1))
def test_quotients_and_remainders_are_those_of_integers(pairs: list[tuple[int, int]]) -> None:
    dividend, divisor = np.array(pairs, dtype=np.int64).T
    quotient, remainder = divide(dividend, divisor)
    assert (quotient.dtype, remainder.dtype) == (np.int64, np.int64)
    assert quotient.tolist() == [a // b for a, b in pairs]
    assert remainder.tolist() == [a % b for a, b in pairs]
    assert ceil_div(dividend, divisor).tolist() == [-(-a // b) for a, b in pairs]


@given(st.integers(1, 1 << 26), DIVISORS)
def test_quotients_next_to_integers(factor: int, divisor: int) -> None:
    """Where rounding up would reach the next integer."""
    for dividend in (factor * divisor - 1, factor * divisor, factor * divisor + 1):
        if dividend < 1 << 52:
            quotient, remainder = divide(np.array([dividend]), np.array([divisor]))
            assert (int(quotient[0]), int(remainder[0])) == divmod(dividend, divisor)
            assert int(ceil_div(dividend, np.array([divisor]))[0]) == -(-dividend // divisor)
