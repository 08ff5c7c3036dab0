"""The options of a run: their valid values, and the limits of a program."""

from typing import Any

import numpy as np
import pytest

from accel.base.errors import AccelError
from accel.image.test_scenario import Start
from accel.run.run_options import RunOptions
from tests.expect import refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "the seed is -1; it must be an integer from 0 on"),
        ({"seed": True}, "the seed is True; it must be an integer from 0 on"),
        ({"max_cycles": 0}, "max_cycles is 0; it must be a positive integer"),
        ({"max_uops": 1.5}, "max_uops is 1.5; it must be a positive integer"),
        ({"order": "randon"}, "the order is 'randon'; did you mean 'random'?"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], message: str) -> None:
    with refused(AccelError, message):
        RunOptions(**options)


def test_numbers_become_python_integers() -> None:
    seed: Any = np.int64(3)
    assert type(RunOptions(seed=seed).seed) is int


def test_the_lower_limit_holds() -> None:
    options = RunOptions(max_cycles=100, max_uops=10)
    assert options.within(Start()) == options
    assert options.within(Start(max_cycles=7)) == RunOptions(max_cycles=7, max_uops=10)
    assert options.within(Start(max_cycles=700, max_uops=3)) == RunOptions(max_cycles=100, max_uops=3)
