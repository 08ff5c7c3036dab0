"""From an execution to a result: comparison, figures and errors."""

from typing import Any

import numpy as np
import pytest

from accel.base.errors import LimitExceeded, MismatchError
from accel.run.backends.open_backend import open_backend
from accel.run.execute_program import Launch, launch
from accel.run.result import Result, TimedResult
from accel.run.run_options import RunOptions
from accel.sim.functional.scratchpads import Scratchpads
from tests.programs import TINY, gemm_program


def launched(backend: str = "sim", **options: Any) -> Launch:
    program, dram = gemm_program().prepared()
    chosen = RunOptions(**options)
    with open_backend(backend, TINY, chosen) as opened:
        return launch(program, dram, Scratchpads.random(TINY, 0), opened, chosen)


@pytest.mark.parametrize(("backend", "kind"), [("sim", TimedResult), ("functional", Result)])
def test_a_run_with_cycles_has_a_result_with_cycles(backend: str, kind: type[Result]) -> None:
    done = launched(backend)
    assert done.error is None
    result = done.result({}, pack_seconds=2.0)
    assert type(result) is kind
    assert (result.backend, result.image, result.mismatches) == (backend, done.image, None)
    assert (result.pack_seconds, result.simulate_seconds) == (2.0, done.seconds)


def test_elements_that_differ_are_counted() -> None:
    outputs = {"C": np.array([[1, 2, 3]], np.int8), "D": np.array([4], np.int8)}
    expected = {"C": np.array([[1, 0, 0]], np.int8), "D": np.array([4], np.int8)}
    done = launched()
    assert done.result(outputs, reference=lambda: outputs, pack_seconds=0.0).mismatches == 0
    wrong = done.result(outputs, reference=lambda: expected, pack_seconds=0.0)
    assert wrong.mismatches == 2
    with pytest.raises(MismatchError, match="2 of 4 output elements differ"):
        wrong.raise_if_wrong()


def test_an_error_has_the_result() -> None:
    """The outputs of a run that did not end are not compared."""
    done = launched(max_cycles=20)
    result = done.result({}, reference=lambda: pytest.fail("it is compared"), pack_seconds=0.0)
    assert isinstance(result, TimedResult)
    assert (result.cycles, result.mismatches, result.compulsory) == (20, None, None)
    with pytest.raises(LimitExceeded) as caught:
        result.raise_if_stopped()
    assert caught.value.result is result


def test_an_error_before_the_first_cycle_has_no_cycles() -> None:
    result = launched(max_uops=1).result({}, pack_seconds=0.0)
    assert type(result) is Result
    assert (result.cycles, result.stalls, result.events) == (None, None, None)
    assert isinstance(result.error, LimitExceeded)
