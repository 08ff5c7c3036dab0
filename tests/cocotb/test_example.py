"""The project that `accel new-project` writes: the steps of its workflow, except installation, run as
they are."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from accel.base.atomic_files import write_folder
from accel.cli.new_project import project_files
from accel.hw.export.verilog import MEMORY_MODEL
from tests.cocotb.object_cache import write_compiler_wrapper
from tests.cocotb.simulators import TOOLS
from tests.thorough import first_of_each
from tests.tools import needs

ROOT = Path(__file__).parents[2]
PROJECT = project_files("my-core")
JOB: Any = yaml.safe_load(PROJECT[".github/workflows/simulate.yml"])["jobs"]["simulate"]
SIMULATORS: list[str] = JOB["strategy"]["matrix"]["simulator"]
STEPS = {step["name"]: step["run"] for step in JOB["steps"] if "run" in step}


_QUICK_TO_BUILD = " OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O1 VM_PARALLEL_BUILDS=0"
"""Compiler options that GitHub does not use: the example is short, so a quick build is
better than fast code."""


class Runner:
    """Runs the script of a workflow step as GitHub's runner does."""

    def __init__(self, folder: Path, cache: Path, **variables: str) -> None:
        self.folder = folder
        self._quick = f"{_QUICK_TO_BUILD} OBJCACHE={write_compiler_wrapper(cache / 'objects')}"
        self._path, self._env = folder / "github_path", folder / "github_env"
        self._path.touch()
        self._env.touch()
        programs = folder / "programs"
        programs.mkdir()
        for name, module in {"accel": "-m accel", "pytest": "-m pytest", "python": ""}.items():
            (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
            (programs / name).chmod(0o755)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COCOTB_"))}
        self._variables = inherited | {"PYTHONPATH": str(ROOT)} | variables
        self._variables["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"

    def run(self, script: str) -> None:
        added = self._path.read_text().split()
        path = os.pathsep.join([*reversed(added), self._variables["PATH"]])
        added_variables = dict(line.split("=", 1) for line in self._env.read_text().splitlines())
        if "MAKEFLAGS" in added_variables:
            added_variables["MAKEFLAGS"] += self._quick
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=self.folder,
            env=self._variables
            | {"PATH": path, "GITHUB_PATH": str(self._path), "GITHUB_ENV": str(self._env)}
            | added_variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.parametrize("simulator", first_of_each(SIMULATORS, lambda _: None))
def test_the_workflow_simulates_the_core(simulator: str, tmp_path: Path, cache: Path) -> None:
    needs(TOOLS[simulator])
    write_folder(tmp_path / "my-core", PROJECT)
    assert JOB["env"] == {"SIM": "${{ matrix.simulator }}"}
    runner = Runner(tmp_path / "my-core", cache, SIM=simulator)
    for name, script in STEPS.items():
        if name != "Install":
            runner.run(script)
    assert list(tmp_path.glob(f"my-core/build_{simulator}/*.xml"))


@pytest.mark.thorough
def test_the_example_passes_with_black_box_memories(tmp_path: Path, cache: Path) -> None:
    """The example also passes with black boxes and their Verilog model instead of memory arrays."""
    needs(TOOLS["icarus"])
    folder = tmp_path / "my-core"
    write_folder(folder, PROJECT)
    shutil.copy(MEMORY_MODEL, folder)
    runner = Runner(folder, cache, SIM="icarus")
    runner.run("accel verilog --config tiny --memories blackbox -o core.v")
    runner.run("(echo '`define ACCEL_MEMORY'; cat accel_memory.v core.v) > accel.v")
    runner.run("pytest test_core.py")
    assert list(folder.glob("build_icarus/*.xml"))


def test_the_workflow_installs_the_imports_of_the_example() -> None:
    packages = set(re.findall(r"^pip install (.*)$", STEPS["Install"], re.M)[0].replace('"', "").split())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tested = {re.match(r"[\w-]+", text)[0] for text in project["optional-dependencies"]["test"]}  # type: ignore[index]
    assert packages - {"./third_party/accel[rtl]"} <= tested
    code = "".join(text.decode() for name, text in PROJECT.items() if name.endswith(".py"))
    imported = re.findall(r"^(?:import|from) (\w+)", code, re.M)
    third_party = {name for name in imported if name not in sys.stdlib_module_names}
    assert third_party == {"accel", "cocotb", "cocotb_tools", "cocotbext", "numpy", "schedule"}
    assert {"./third_party/accel[rtl]", "cocotb", "cocotbext-axi"} <= packages


def test_the_document_shows_the_workflow() -> None:
    document = (ROOT / "docs" / "how-to" / "simulate-the-core-in-ci.md").read_text(encoding="utf-8")
    assert STEPS["Export"].strip() in document
    for simulator in SIMULATORS:
        assert f"SIM={simulator} {STEPS['Simulate'].strip()}" in document


@pytest.mark.parametrize("command", [["check", "--select", "E,F,W"], ["format", "--check"]])
def test_the_project_is_well_formed(command: list[str], tmp_path: Path) -> None:
    write_folder(tmp_path / "my-core", PROJECT)
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *command, "--isolated", "--line-length", "110", "."],
        cwd=tmp_path / "my-core",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 or "No module named ruff" in done.stderr, done.stdout
    assert b"PROJECT_NAME" not in b"".join(PROJECT.values())
