"""A missing tool is reported, and can be required."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import tools

ROOT = Path(__file__).parents[1]
SUBJECT = "tests/cocotb/test_planted.py"


@pytest.fixture
def without_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")


@pytest.mark.usefixtures("without_tools")
@pytest.mark.parametrize("name", tools.TOOLS)
def test_a_missing_tool_skips_or_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(tools.VARIABLE, "")
    with pytest.raises(pytest.skip.Exception, match=rf"{re.escape(name)} .*install"):
        tools.needs(name)
    monkeypatch.setenv(tools.VARIABLE, f" {name},")
    with pytest.raises(pytest.fail.Exception, match=rf"{re.escape(name)} .*install.*{tools.VARIABLE}"):
        tools.needs(name)


def test_a_tool_that_is_there_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tools.TOOLS, "there", tools.Tool(lambda: True, "nothing"))
    monkeypatch.setenv(tools.VARIABLE, "there")
    tools.needs("there")


def suite(**variables: str) -> tuple[int, list[str]]:
    """Exit code and last lines of the suite, of one file that needs a tool, where none is found."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", SUBJECT],
        cwd=ROOT,
        env=os.environ | {"PATH": ""} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_the_last_line_says_what_was_missed() -> None:
    code, lines = suite(**{tools.VARIABLE: ""})
    assert code == 0
    assert lines[-1] == "Tests were skipped for want of iverilog (apt-get install iverilog)."
    assert "1 skipped" in lines[-2]


def test_what_is_required_must_be_there() -> None:
    code, lines = suite(**{tools.VARIABLE: "verilator,iverilog"})
    assert code == 1
    assert "1 failed" in lines[-1]


def test_what_is_required_must_be_known() -> None:
    code, lines = suite(**{tools.VARIABLE: "icarus"})
    assert code == pytest.ExitCode.USAGE_ERROR
    assert any(
        "ACCEL_REQUIRE names 'icarus'; it may name chromium, g++, iverilog, verilator" in line
        for line in lines
    )


@pytest.mark.xdist_group("together")
def test_processes_keep_groups_together(request: pytest.FixtureRequest) -> None:
    """Where several run the suite: a model that many tests need is compiled by one, and no other waits."""
    if request.config.getoption("loadgroup", default=False):
        assert request.node.nodeid.endswith("@together")
