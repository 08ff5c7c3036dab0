from itertools import pairwise

import pytest

from accel.compiler.plans.part_sizes import all_part_sizes, spread_part_sizes


@pytest.mark.parametrize("size", [1, 2, 7, 56, 1000])
def test_sizes_are_spread_over_numbers_of_parts(size: int) -> None:
    found = spread_part_sizes(size, 8)
    assert (found[0], found[-1]) == (1, size)
    assert len(found) <= 8
    counts = [-(-size // part) for part in found]
    assert all(a > b for a, b in pairwise(counts))


def test_each_size_is_the_smallest_for_its_number_of_parts() -> None:
    assert all_part_sizes(10) == (1, 2, 3, 4, 5, 10)
