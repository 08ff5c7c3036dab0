"""``accel run --trace --timeline``: what is written where, and what is refused before the run."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from accel.views import Timeline, Trace
from tests.cli.conftest import Shell
from tests.programs import gemm_program


def test_files_hold_what_python_gives(accel: Shell, saved: Callable[..., Path]) -> None:
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
            "a timeline is wanted of the backend 'functional', which has no time; take 'sim' or 'rtl'",
        ),
        (
            ["--timeline", "-", "--backend", "functional"],
            "a timeline is wanted of the backend 'functional', which has no time; take 'sim' or 'rtl'",
        ),
        (
            ["--trace", "t.json", "--backend", "functional"],
            "a trace is wanted of the backend 'functional', which has no time; take 'sim' or 'rtl'",
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
