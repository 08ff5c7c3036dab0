import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from accel.sim.timing.cycle_intervals import IntervalArray, covered_cycles

interval = st.tuples(st.integers(-3, 20), st.integers(-3, 20))


@given(st.lists(st.lists(interval, max_size=5), max_size=3), st.integers(0, 15))
def test_covered_cycles(groups: list[list[tuple[int, int]]], end: int) -> None:
    arrays: list[IntervalArray] = [np.array(group, dtype=np.int64).reshape(-1, 2) for group in groups]
    cycles = {cycle for group in groups for interval in group for cycle in range(*interval)}
    assert covered_cycles(arrays, end) == len(cycles & set(range(end)))
