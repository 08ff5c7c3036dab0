"""Engines that the other tests do not use simulate the same machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from accel.base.errors import EngineError
from accel.core.fault_causes import Cause
from accel.hw.engines.engine_driver import Engine
from accel.hw.engines.open_engine import DEFAULT_ENGINE, ENGINES, open_engine
from accel.run.lockstep import lockstep
from accel.run.replay import load_test
from tests.programs import TINY, gemm_program
from tests.thorough import also

PROGRAMS = Path(__file__).parents[1] / "programs"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.xdist_group(f"engine {name}"))
        for name in ENGINES
        if name != DEFAULT_ENGINE
    ],
)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with open_engine(TINY, request.param) as found:
        yield found


@pytest.mark.parametrize("hostile", [False, also(True)])
def test_programs(engine: Engine, hostile: bool) -> None:
    engine.reset()
    found = lockstep(gemm_program(), engine, hostile=hostile)
    assert (found.cause, found.difference) == (Cause.NONE, None)


@pytest.mark.parametrize(
    "name",
    [
        "gemm_loops",
        also("load_pads_inp"),
        also("tokens_on_every_kind"),
        also("fault_deadlock"),
        "fault_dst_index",
    ],
)
def test_directed(engine: Engine, name: str) -> None:
    engine.reset()
    program = load_test(PROGRAMS / f"{name}.s")
    program = program.with_timing(TINY)
    assert lockstep(program, engine).difference is None


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_that_is_closed_says_so(name: str) -> None:
    with open_engine(TINY, name) as engine:
        pass
    with pytest.raises(EngineError, match="the engine is closed"):
        engine.reset()
