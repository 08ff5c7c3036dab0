"""Names that nothing else has."""

import pytest

from accel.base.unique_names import Names


def test_a_name_is_given_once() -> None:
    names = Names(["conv"])
    names.reserve(["conv_3"])
    assert [names.fresh("conv") for _ in range(3)] == ["conv_2", "conv_4", "conv_5"]
    assert names.fresh("conv_2") == "conv_2_2"
    assert names.fresh("pool") == "pool"


@pytest.mark.parametrize("name", ["", "a"])
def test_many_of_one_name(name: str) -> None:
    names = Names()
    found = {names.fresh(name) for _ in range(50_000)}  # minutes, if every name was sought from the first on
    assert len(found) == 50_000
