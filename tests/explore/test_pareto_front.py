"""Fronts equal those of a comparison of all pairs."""

from hypothesis import given
from hypothesis import strategies as st

from accel.explore.pareto_front import dominates, pareto_front

VECTORS = st.integers(1, 3).flatmap(
    lambda size: st.lists(st.tuples(*[st.integers(0, 4)] * size), max_size=12)
)


@given(VECTORS)
def test_no_point_dominates_the_front(losses: list[tuple[int, ...]]) -> None:
    expected = [
        index
        for index, one in enumerate(losses)
        if not any(all(a <= b for a, b in zip(other, one, strict=True)) and other != one for other in losses)
    ]
    assert pareto_front(losses) == expected


def test_dominance() -> None:
    assert dominates((1, 2), (1, 3))
    assert not dominates((1, 2), (1, 2))
    assert not dominates((1, 3), (2, 2))
