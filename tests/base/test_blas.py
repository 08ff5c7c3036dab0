"""Threads of numpy's matrix products, and warnings that are suppressed."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from accel.base.blas import exact, one_blas_thread


def test_one_thread_within() -> None:
    with one_blas_thread():
        found = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    assert found
    assert set(found) == {1}


def test_what_lies_beside_an_array_is_nobodys_error() -> None:
    """As a library computes with it."""

    def difference() -> np.float32:
        return np.float32(np.inf) - np.float32(np.inf)

    assert np.isnan(exact(difference)())
    with pytest.warns(RuntimeWarning):
        assert np.isnan(difference())
