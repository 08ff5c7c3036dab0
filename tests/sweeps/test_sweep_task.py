"""Tasks with mappings: a mapping is an axis of a sweep."""

import pytest

import accel
from accel.base.errors import SweepError


def test_mappings_are_compared() -> None:
    layer = accel.conv2d(1, 2, 6, 6, 8, 3, shift=5)
    table = accel.sweep(layer, config="tiny", mapping=["plain", "windows"])
    assert [row["mapping"] for row in table.rows] == ["plain", "windows"]
    assert [row["mismatches"] for row in table.rows] == [0, 0]
    assert table.rows[1]["cycles"] < table.rows[0]["cycles"]


def test_a_mapping_is_a_name() -> None:
    with pytest.raises(SweepError, match="it must be a name"):
        accel.sweep(accel.gemm(4, 4, 4), config="tiny", mapping=3)
