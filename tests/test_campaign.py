"""A sample of the robustness campaign, and that it would notice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accel.assembly import load_assembly
from accel.errors import MachineError
from accel.faults import Cause
from accel.program import Program
from accel.sim.simulator import Simulation
from tests import campaign as module
from tests.campaign import DAMAGE, campaign, trial
from tests.programs import gemm_program


def test_damaged_programs_end_cleanly() -> None:
    found = campaign(300)
    assert found["programs"] == 300
    assert found["damage"].keys() == DAMAGE.keys()
    for tally in found["outcomes"].values():
        assert sum(tally.values()) == 300
        assert len(tally) > 8
        assert 0.1 < tally["done"] / 300 < 0.7
    assert {"proven", "refuted", "race"} <= found["token_check"].keys()


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Any]], Path]:
    """Let something happen after each run on the simulator; gives where a failure is left."""
    execute = Program.execute

    def install(then: Callable[..., Any]) -> Path:
        def changed(self: Program, dram: Any, pads: Any, **options: Any) -> Simulation:
            simulation = execute(self, dram, pads, **options)
            if options["backend"] == "sim":
                then(simulation, pads)
            return simulation

        monkeypatch.setattr(Program, "execute", changed)
        monkeypatch.setattr(module, "FAILURE", tmp_path / "failure.s")
        return tmp_path / "failure.s"

    return install


def crash(simulation: Simulation, _: Any) -> None:
    if simulation.functional.faults:
        raise ValueError("a bug")


def spill(_: Simulation, pads: Any) -> None:
    pads.acc[0] ^= 1


def invent(simulation: Simulation, _: Any) -> None:
    def fail() -> None:
        raise MachineError("nothing", cause=Cause.OPCODE, index=0)

    object.__setattr__(simulation, "raise_if_bad", fail)


@pytest.mark.parametrize("bug", [crash, spill, invent])
def test_bugs_are_noticed(bug: Callable[..., Any], failing: Callable[[Callable[..., Any]], Path]) -> None:
    left = failing(bug)
    with pytest.raises((ValueError, AssertionError)):
        campaign(100)
    text = left.read_text()
    assert " after " in text.splitlines()[0]
    assert load_assembly(left).config.name


def test_what_is_told_of_a_trial() -> None:
    result = trial(gemm_program())
    assert result.verdict == "proven"
    assert set(result.causes.values()) == {"done"}
