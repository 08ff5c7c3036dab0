"""The error for more virtual threads than fit."""

import pytest

import accel
from accel.base.errors import ScheduleError
from accel.compiler.plans.plan_candidate import check_threads_fit
from tests.expect import refused

VTA = accel.machine("vta").config


@pytest.mark.parametrize("most", [1, 2, 7, 255])
def test_the_largest_number_of_threads_is_found(most: int) -> None:
    asked: list[int] = []

    def fits(threads: int) -> bool:
        asked.append(threads)
        return threads <= most

    check_threads_fit("gemm", VTA, most, fits, dict)
    for threads in (most + 1, 10**9):
        asked.clear()
        message = f"{threads} virtual threads do not fit configuration 'vta'; at most {most} do"
        with refused(ScheduleError, message):
            check_threads_fit("gemm", VTA, threads, fits, dict)
        assert len(asked) < 14


def test_nothing_fits() -> None:
    for threads in (None, 1, 3):
        with refused(ScheduleError, "not even the smallest tiles of this gemm fit configuration 'vta'"):
            check_threads_fit("gemm", VTA, threads, lambda _: False, dict)
