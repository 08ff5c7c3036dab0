"""Backends by name, and the options that each of them takes."""

from pathlib import Path
from typing import Any

import pytest

from accel.base.errors import AccelError, EngineError
from accel.base.run_choices import BACKENDS, SIMULATORS
from accel.core.fault_causes import Cause
from accel.run.backends.backend import Backend
from accel.run.backends.open_backend import open_backend
from accel.run.backends.rtl_backend import Rtl
from accel.run.backends.simulator_backend import Simulator
from accel.run.run_options import RunOptions
from accel.sim.functional.scratchpads import Scratchpads
from tests.expect import refused
from tests.lockstep.builds import built
from tests.programs import TINY, gemm_program


def opened(name: str, options: RunOptions) -> Backend:
    return open_backend(name, TINY, options, hardware=built(TINY) if name == "rtl" else None)


def test_there_are_three() -> None:
    assert BACKENDS == ("sim", "functional", "rtl")
    assert SIMULATORS == ("sim", "functional")
    kinds = {name: type(opened(name, RunOptions())) for name in BACKENDS}
    assert kinds == {"sim": Simulator, "functional": Simulator, "rtl": Rtl}
    assert [opened(name, RunOptions()).name for name in BACKENDS] == list(BACKENDS)


@pytest.mark.parametrize("name", BACKENDS)
def test_all_run_the_same_program_to_the_same_memory(name: str) -> None:
    program, before = gemm_program(bias=True).prepared(seed=1)
    dram, expected = before.copy(), before.copy()
    program.simulate(expected, Scratchpads.random(TINY, 0))
    options = RunOptions(look=True)
    with opened(name, options) as backend:
        for _ in range(2):
            dram = before.copy()
            backend.reset()
            done = backend.execute(program, dram, Scratchpads.random(TINY, 0), options)
            assert done.error is None
            assert dram == expected
    assert (done.timing is None) is (name == "functional")


@pytest.mark.parametrize("name", BACKENDS)
def test_all_stop_at_limits(name: str) -> None:
    program, dram = gemm_program(bias=True).prepared(seed=1)
    options = RunOptions(max_cycles=50) if name != "functional" else RunOptions(max_uops=1)
    with opened(name, options) as backend:
        done = backend.execute(program, dram, Scratchpads.random(TINY, 0), options)
    assert done.error is not None
    assert done.error.cause is Cause.LIMIT


def test_hardware_that_is_given_stays_open() -> None:
    engine = built(TINY)
    with open_backend("rtl", TINY, RunOptions(), hardware=engine):
        pass
    engine.reset()  # closed engines cannot


@pytest.mark.parametrize("name", SIMULATORS)
@pytest.mark.parametrize(
    ("options", "what"), [({"engine": "pysim"}, "an engine"), ({"wave": Path("x.vcd")}, "a wave file")]
)
def test_options_of_the_hardware_are_refused(name: str, options: dict[str, Any], what: str) -> None:
    with refused(AccelError, f"{what} is given with the backend {name!r}; only 'rtl' takes it"):
        open_backend(name, TINY, RunOptions(**options))


def test_options_of_another_backend_are_refused() -> None:
    with refused(AccelError, "hardware is given with the backend 'sim'; only 'rtl' takes it"):
        open_backend("sim", TINY, RunOptions(), hardware=built(TINY))
    with refused(
        AccelError, "the order is 'random' with the backend 'rtl'; the hardware always runs in its own order"
    ):
        open_backend("rtl", TINY, RunOptions(order="random"))
    with refused(AccelError, "the backend is 'simm'; did you mean 'sim'?"):
        open_backend("simm", TINY, RunOptions())
    with refused(EngineError, "the engine is 'pysimm'; did you mean 'pysim'?"):
        open_backend("rtl", TINY, RunOptions(engine="pysimm"))
