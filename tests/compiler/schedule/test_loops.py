"""What is no thread."""

import pytest

from accel.base.errors import ScheduleError
from accel.compiler.schedule.loops import check_threads
from tests.expect import refused


@pytest.mark.parametrize("threads", [0, -1, True, 2.0, "2", None])
def test_what_is_no_number_of_threads(threads: object) -> None:
    with refused(
        ScheduleError, f"the number of virtual threads is {threads!r}; it must be a positive integer"
    ):
        check_threads(threads)
