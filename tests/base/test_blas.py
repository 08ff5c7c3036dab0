"""Exact products: threads, and what is no fault of theirs."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from accel.base.blas import exact, exact_products


def threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_few_are_made_by_one_thread() -> None:
    with exact_products():
        assert threads() == {1}


def test_many_are_made_by_as_many_threads_as_before() -> None:
    before = threads()
    with exact_products(few=False):
        assert threads() == before


def test_what_lies_beside_an_array_is_nobodys_error() -> None:
    """As a library computes with it."""
    infinite = np.float32(np.inf)

    @exact
    def difference() -> np.float32:
        return infinite - infinite

    with exact_products():
        assert np.isnan(infinite - infinite)
    assert np.isnan(difference())
    with pytest.warns(RuntimeWarning):
        assert np.isnan(infinite - infinite)
