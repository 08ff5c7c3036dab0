"""A sample of the robustness campaign, and that it would notice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import force_setattr

from accel.assembly import load_assembly
from accel.base.errors import MachineError
from accel.core.config import Config
from accel.core.fault_causes import Cause
from accel.run.backends.backend import Execution
from accel.run.program import Program
from tests import campaign as module
from tests.campaign import DAMAGE, Tally, campaign, trial
from tests.lockstep.builds import SECOND, TINY
from tests.programs import gemm_program
from tests.tools import needs

ON_HARDWARE = ("sim", "rtl")
COUNT = 500
"""One program in sixty races. The draws depend on the modules that the process has loaded."""


def test_damaged_programs_end_cleanly() -> None:
    found = campaign(COUNT)
    assert found["programs"] == COUNT
    assert found["damage"].keys() == DAMAGE.keys()
    for tally in found["outcomes"].values():
        assert sum(tally.values()) == COUNT
        assert len(tally) > 8
        assert 0.1 < tally["done"] / COUNT < 0.7
    assert {"proven", "refuted", "race"} <= found["token_check"].keys()


@pytest.mark.parametrize(
    "build", [pytest.param(TINY, id="first", marks=pytest.mark.thorough), pytest.param(SECOND, id="second")]
)
def test_damaged_programs_end_cleanly_on_hardware(build: Config) -> None:
    """And as on the simulator: of one small machine of each generation, so that little is to be built."""
    needs("verilator")
    found = campaign(150, backends=ON_HARDWARE, builds=[build])
    assert found["programs"] == 150
    assert found["compared"] >= 148
    assert len(found["outcomes"]["rtl"]) > 8
    assert {"proven", "refuted"} <= found["token_check"].keys()


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Let something happen after each run on a backend; gives where a failure is left."""
    execute = Program.execute

    def install(then: Callable[..., Any], backend: str = "sim") -> Path:
        def changed(self: Program, dram: Any, pads: Any, **options: Any) -> Execution:
            execution = execute(self, dram, pads, **options)
            if options["backend"] == backend:
                then(execution, pads)
            return execution

        monkeypatch.setattr(Program, "execute", changed)
        monkeypatch.setattr(module, "FAILURE", tmp_path / "failure.s")
        return tmp_path / "failure.s"

    return install


def crash(execution: Execution, _: Any) -> None:
    if execution.error is not None:
        raise ValueError("a bug")


def spill(_: Execution, pads: Any) -> None:
    pads.acc[0] ^= 1


def invent(execution: Execution, _: Any) -> None:
    force_setattr(execution, "error", MachineError("nothing", cause=Cause.OPCODE, index=0))


def move(execution: Execution, _: Any) -> None:
    """The reported error belongs to the previous instruction."""
    if execution.error is not None and execution.error.index:
        execution.error.index -= 1


@pytest.mark.parametrize("bug", [crash, spill, invent])
def test_bugs_are_noticed(bug: Callable[..., Any], failing: Callable[..., Path]) -> None:
    left = failing(bug)
    with pytest.raises((ValueError, AssertionError)):
        campaign(100)
    assert_left(left)


@pytest.mark.parametrize("bug", [spill, move])
def test_bugs_of_the_hardware_are_noticed(bug: Callable[..., Any], failing: Callable[..., Path]) -> None:
    needs("verilator")
    left = failing(bug, "rtl")
    with pytest.raises(AssertionError):
        campaign(100, backends=ON_HARDWARE, builds=[TINY])
    assert_left(left)


def assert_left(left: Path) -> None:
    """The program that shows the bug can be read."""
    text = left.read_text()
    assert " after " in text.splitlines()[0]
    assert load_assembly(left).config.name


def test_what_processes_have_found_is_added_up() -> None:
    result = trial(gemm_program())
    parts = [Tally(module.BACKENDS_TRIED), Tally(module.BACKENDS_TRIED)]
    for part in parts:
        part.note(["flip", "tokens"], result)
    whole = Tally.together(module.BACKENDS_TRIED, parts)
    assert (whole.done, whole.compared) == (2, 0)
    assert whole.outcomes == {backend: {"done": 2} for backend in module.BACKENDS_TRIED}
    assert (whole.verdicts, whole.damage) == ({"proven": 2}, {"flip": 2, "tokens": 2})
    assert whole.slowest == result.seconds


def test_what_is_told_of_a_trial() -> None:
    result = trial(gemm_program())
    assert result.verdict == "proven"
    assert set(result.causes.values()) == {"done"}
