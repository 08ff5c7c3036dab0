"""Functions of arrays, against numpy's own."""

from typing import Any

import numpy as np
import pytest

from accel.base.fast_unique import distinct


@pytest.mark.parametrize("values", [[], [3], [2, 2], [5, -1, 5, 0, -1, 7], [[2, 1], [1, 3]]])
def test_distinct_values_are_those_of_numpy(values: list[Any]) -> None:
    array = np.array(values, dtype=np.int64)
    assert distinct(array).tolist() == np.unique(array).tolist()
    assert array.tolist() == values
