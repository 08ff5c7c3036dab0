"""Engines use the designs of closed ones."""

from pathlib import Path

import pytest

from accel.base.errors import EngineError
from accel.core.token_rules import Counter
from accel.hw.engines import pysim
from accel.hw.engines.open_engine import open_engine
from accel.hw.engines.pysim import PysimEngine
from accel.run.lockstep import lockstep
from accel.run.replay import load_test
from tests.programs import TINY

PROGRAM = Path(__file__).parents[2] / "programs" / "fault_deadlock.s"
NO_TOKENS = (0,) * len(Counter)


def opened() -> PysimEngine:
    engine = open_engine(TINY, "pysim")
    assert isinstance(engine, PysimEngine)
    return engine


def test_a_design_is_used_again_after_its_engine_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a run that ended with an error and left tokens."""
    monkeypatch.setattr(pysim, "_unused", {})
    first = opened()
    program = load_test(PROGRAM).with_timing(TINY)
    assert lockstep(program, first).difference is None
    assert first.tokens() != NO_TOKENS
    second = opened()
    assert second._design is not first._design
    first.close()
    again = opened()
    assert again._design is first._design
    assert again.tokens() == NO_TOKENS
    assert lockstep(program, again).difference is None
    first.close()  # leaves the design to its new engine
    with pytest.raises(EngineError, match="the engine is closed"):
        first.tokens()
    assert opened()._design is not again._design
