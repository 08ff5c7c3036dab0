"""``accel run --trace --timeline``: the files they write, and options that are refused before the run."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from html import escape
from pathlib import Path

import pytest

from accel.assembly import load_assembly
from accel.run.replay import load_any
from accel.views import Timeline, Trace
from tests.cli.conftest import Shell
from tests.programs import gemm_program


def test_files_equal_those_of_the_python_functions(accel: Shell, saved: Callable[..., Path]) -> None:
    file = saved()
    plain = accel("run", file).text.splitlines()
    drawn = accel("run", file, "--trace", "t.json", "--timeline", "t.svg").text.splitlines()
    assert [line for line in drawn if "simulation" not in line] == [
        line for line in plain if "simulation" not in line
    ]
    result = gemm_program().run()
    Trace(result).save("python.json")
    Timeline(result).save("python.svg")
    for name in ("json", "svg"):
        assert Path(f"t.{name}").read_bytes() == Path(f"python.{name}").read_bytes()


def test_formats_by_name(accel: Shell, saved: Callable[..., Path]) -> None:
    found = accel("run", saved(), "--trace", "t.json.gz", "--timeline", "t.HTML", "--json").json
    trace = json.loads(gzip.decompress(Path("t.json.gz").read_bytes()))
    assert trace["otherData"]["cycles"] == found["cycles"]
    assert Path("t.HTML").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_hardware_draws_the_same(accel: Shell, saved: Callable[..., Path]) -> None:
    file = saved()
    for backend, engine in (("sim", ()), ("rtl", ("--engine", "pysim"))):
        accel("run", file, "--backend", backend, *engine, "--trace", f"{backend}.json")
    sim, rtl = (json.loads(Path(f"{b}.json").read_text(encoding="utf-8")) for b in ("sim", "rtl"))
    assert rtl["otherData"]["backend"] == "rtl"
    assert rtl["traceEvents"] == sim["traceEvents"]


def test_text_follows_the_figures(accel: Shell, saved: Callable[..., Path]) -> None:
    file = saved()
    text = accel("run", file, "--timeline", "-").text
    assert text.endswith("\n\n" + Timeline(gemm_program().run()).text())
    assert "where the cycles went" in text


def test_signs_that_the_terminal_has(saved: Callable[..., Path]) -> None:
    for encoding, sign in (("ascii", "# busy"), ("utf-8", "█ busy")):
        done = subprocess.run(
            [sys.executable, "-m", "accel", "run", str(saved()), "--timeline", "-"],
            env=os.environ | {"PYTHONIOENCODING": encoding},
            capture_output=True,
            check=True,
        )
        assert sign in done.stdout.decode(encoding)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--timeline", "t.png"],
            "the timeline is to be written to 't.png'; the name must end in .svg or .html",
        ),
        (["--trace", "t.txt"], "the trace is to be written to 't.txt'; the name must end in .json or .gz"),
        (["--trace", "x/t.json"], "'x/t.json' cannot be written: there is no folder 'x'"),
        (["--timeline", "d.svg"], "'d.svg' cannot be written: it is a folder"),
        (
            ["--timeline", "-", "--json"],
            "--timeline - and --json are given; both would be on standard output (see 'accel run --help')",
        ),
        (
            ["--timeline", "t.svg", "--backend", "functional"],
            "the backend of a timeline is 'functional', which does not simulate time; use 'sim' or 'rtl'",
        ),
        (
            ["--timeline", "-", "--backend", "functional"],
            "the backend of a timeline is 'functional', which does not simulate time; use 'sim' or 'rtl'",
        ),
        (
            ["--trace", "t.json", "--backend", "functional"],
            "the backend of a trace is 'functional', which does not simulate time; use 'sim' or 'rtl'",
        ),
        (
            ["--timeline", "t.svg", "--trace", "t.svg"],
            "the trace is to be written to 't.svg'; the name must end in .json or .gz",
        ),
    ],
)
def test_refused_before_the_run(
    arguments: list[str], message: str, accel: Shell, saved: Callable[..., Path]
) -> None:
    file = saved()
    Path("d.svg").mkdir()
    accel.refused("run", file, *arguments, message=message)


# --- programs at fault -----------------------------------------------------------------------------

TESTS = Path(__file__).parents[1] / "programs"
FAULTS = {
    "fault_deadlock.s": "deadlock at instruction 1",
    "fault_token_overflow.s": "token-overflow at instruction 1",
    "fault_limit_of_cycles.s": "limit at instruction 1",
    "fault_dst_index.s": "dst-index at instruction 0",
    "fault_dram_acc.s": "dram-range at instruction 0",
    "fault_no_program.s": "no-finish at instruction 0",
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_events_before_a_fault_are_drawn(name: str, accel: Shell) -> None:
    call = ("run", TESTS / name)
    plain = accel(*call, code=1)
    files = ("--report", "r.html", "--timeline", "t.svg", "--trace", "t.json")
    drawn = accel(*call, *files, code=1)
    written = "".join(f"wrote {path}\n" for path in files[1::2])
    assert (drawn.out, drawn.err) == (plain.out, written + plain.err)
    told = plain.err.removeprefix("accel: ").rstrip()
    title = f"{name.removesuffix('.s')} on {load_assembly(TESTS / name).config.label}: {FAULTS[name]}"
    report = Path("r.html").read_text(encoding="utf-8")
    assert f"<h1>{title}</h1>" in report
    assert escape(told) in report
    assert title in Path("t.svg").read_text(encoding="utf-8")
    trace = json.loads(Path("t.json").read_text(encoding="utf-8"))
    error = trace["otherData"]["error"]
    assert error["message"] == told
    (end,) = (event for event in trace["traceEvents"] if event["ph"] == "i")
    assert (end["name"], end["ts"]) == (FAULTS[name], error["cycle"])
    assert all(e["ts"] + e.get("dur", 0) <= error["cycle"] for e in trace["traceEvents"] if "ts" in e)


def test_the_hardware_draws_the_same_fault(accel: Shell) -> None:
    file = TESTS / "fault_deadlock.s"
    simulated = accel("run", file, "--trace", "sim.json", code=1)
    hardware = accel(
        "run",
        file,
        "--backend",
        "rtl",
        "--engine",
        "pysim",
        "--trace",
        "rtl.json",
        "--report",
        "r.html",
        code=1,
    )
    assert hardware.err == simulated.err.replace("wrote sim.json\n", "wrote r.html\nwrote rtl.json\n")
    sim, rtl = (json.loads(Path(f"{b}.json").read_text(encoding="utf-8")) for b in ("sim", "rtl"))
    assert rtl["traceEvents"] == sim["traceEvents"]
    assert rtl["otherData"]["error"] == sim["otherData"]["error"]
    assert "<h1>fault_deadlock on tiny: deadlock at instruction 1</h1>" in Path("r.html").read_text("utf-8")


def test_a_fault_as_json_and_as_text(accel: Shell) -> None:
    file = TESTS / "fault_deadlock.s"
    found = accel("run", file, "--json", "--report", "r.html", code=1)
    assert found.json["error"]["cause"] == "deadlock"
    assert Path("r.html").exists()
    text = accel("run", file, "--timeline", "-", code=1).text
    assert "the run stops here: deadlock: compute waits" in text


def test_a_run_without_cycles_says_that_it_has_no_picture(accel: Shell) -> None:
    file = TESTS / "fault_limit_of_micro_ops.s"
    plain = accel("run", file, code=1)
    found = accel("run", file, "--trace", "t.json", "--timeline", "-", code=1)
    note = "accel: not drawn: t.json, the timeline; the run ended before its time was known\n"
    assert found.err == note + plain.err
    assert not Path("t.json").exists()


def test_the_file_names_a_program_of_others(accel: Shell) -> None:
    file = TESTS / "order_race.s"
    accel("run", file, "--report", "r.html")
    assert "<h1>order_race on tiny</h1>" in Path("r.html").read_text(encoding="utf-8")
    result = load_any(file).run()
    assert "program on tiny" in Timeline(result)._content(".svg").decode()
