"""Points of a space: their machines, their neighbours, and why some are infeasible."""

from itertools import product

import pytest

from accel.explore.search_space import Domain, Infeasible
from tests.explore.spaces import small


def test_points_are_all_combinations() -> None:
    space = small().space
    points = list(space.points())
    assert len(points) == len(set(points)) == space.size == 3 * 3 * 4
    assert points == list(product((4, 8, 16), (4, 8, 16), (1024, 2048, 4096, 8192)))


def test_a_point_is_a_machine_with_its_fields() -> None:
    space = small(derived={"inp_bytes": "64 * block_in"}).space
    config = space.config((4, 8, 2048))
    assert (config.block_in, config.block_out, config.wgt_bytes, config.inp_bytes) == (4, 8, 2048, 256)
    assert config.uop_bytes == space.base.uop_bytes
    assert space.settings((4, 8, 2048)) == {"wgt_bytes": 2048, "inp_bytes": 256}


@pytest.mark.parametrize(
    ("changes", "point", "message"),
    [
        ({}, (16, 16, 2048), "constraint 'block_in * block_out <= 64' does not hold"),
        ({}, (4, 16, 2048), "multipliers is 117; the limit is 100"),
        ({"limit": {"block_rams": 9}}, (4, 8, 4096), "block_rams is 30; the limit is 9"),
        (
            {"constraints": ["1 / (block_in - 4)"]},
            (4, 4, 2048),
            "the constraint '1 / (block_in - 4)' divides by zero",
        ),
        (
            {"derived": {"fetch_chunk": "128"}},
            (4, 4, 2048),
            "fetch_chunk is 128; fetch_buffer holds only 64 instructions",
        ),
        (
            {"derived": {"inp_bytes": "block_in / 3"}},
            (4, 4, 2048),
            "inp_bytes is 1.33333; the expression 'block_in / 3' must be an integer",
        ),
    ],
)
def test_an_infeasible_point_says_why(
    changes: dict[str, object], point: tuple[int, ...], message: str
) -> None:
    with pytest.raises(Infeasible) as reason:
        small(**changes).space.config(point)
    assert str(reason.value) == message


def test_neighbours_differ_in_one_field_by_one_step() -> None:
    space = small().space
    assert list(space.neighbours((8, 4, 8192))) == [(4, 4, 8192), (16, 4, 8192), (8, 8, 8192), (8, 4, 4096)]
    for point in space.points():
        for other in space.neighbours(point):
            assert sum(a != b for a, b in zip(point, other, strict=True)) == 1
            assert point in set(space.neighbours(other))


def test_an_exchange_halves_one_field_and_doubles_another() -> None:
    space = small().space
    assert list(space.exchanges((8, 4, 4096))) == [
        (4, 8, 4096),
        (4, 4, 8192),
        (16, 4, 2048),
        (8, 8, 2048),
    ]
    for point in space.points():
        for other in space.exchanges(point):
            ratios = sorted(b / a for a, b in zip(point, other, strict=True))
            assert ratios == [0.5, 1, 2]
            assert point in set(space.exchanges(other))


def test_fields_that_cannot_be_halved_are_not_exchanged() -> None:
    field = {
        "block_in": {"choices": [16, 4, 8]},  # without an order
        "tree_stages": {"integers": [1, 3]},
        "wgt_bytes": {"powers_of_two": ["1KiB", "8KiB"]},
    }
    space = small(field=field, constraints=[]).space
    assert list(space.exchanges((8, 2, 2048))) == [(8, 1, 4096)]
    assert list(space.exchanges((8, 3, 2048))) == []


def test_values_without_order_are_all_neighbours() -> None:
    assert Domain((64, 16, 32), is_ordered=False).neighbours(16) == (64, 32)
    assert Domain((16, 32, 64)).neighbours(16) == (32,)
