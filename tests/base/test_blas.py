"""Threads of numpy's matrix products."""

from threadpoolctl import threadpool_info

from accel.base.blas import one_blas_thread


def test_one_thread_within() -> None:
    with one_blas_thread():
        found = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    assert found
    assert set(found) == {1}
