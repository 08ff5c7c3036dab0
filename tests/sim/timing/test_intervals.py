"""Covered cycles against sets."""

from hypothesis import given
from hypothesis import strategies as st

from accel.sim.timing.intervals import covered

interval = st.tuples(st.integers(-3, 20), st.integers(-3, 20))


@given(st.lists(st.lists(interval, max_size=5), max_size=3), st.integers(0, 15))
def test_covered_cycles(groups: list[list[tuple[int, int]]], end: int) -> None:
    cycles = {cycle for group in groups for interval in group for cycle in range(*interval)}
    assert covered(groups, end) == len(cycles & set(range(end)))
