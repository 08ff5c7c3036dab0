"""No command overwrites a file that it reads, or writes one file twice, however the path is spelled."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from accel.core.config import NAMED
from tests.cli.conftest import Shell
from tests.vectors import write_vector

GEMM = ["compile", "gemm", "-m", 8, "-n", 8, "-k", 8]
TEXT = ".config tiny\nFINISH\n"
SWEEP = """
[workload]
name = "gemm"
M = 8
N = 8
K = 8
"""


@pytest.fixture
def files(accel: Shell, saved: Callable[..., Path]) -> None:
    """A program ``p.accel``, its input ``a.npy``, and a configuration, schedule, text, sweep and vector."""
    saved()
    np.save("a.npy", np.zeros((3, 5), np.int8))
    Path("m.json").write_text('{"read_latency": 9}')
    accel(*GEMM, "--config", "tiny", "--save-schedule", "s.toml")
    Path("t.s").write_text(TEXT)
    Path("sweep.csv").write_text(SWEEP)
    write_vector(Path("v"))


def _over(option: str, path: str, use: str) -> str:
    return f"{option} would overwrite {path!r}, which {use}; give another file"


@pytest.mark.parametrize(
    ("arguments", "option", "path", "use"),
    [
        (["run", "p.accel", "--input", "A=a.npy", "--output", "C=a.npy"], "--output C", "a.npy", "--input A"),
        (["run", "v", "--trace", "v/config.json"], "--trace", "v/config.json", "FILE (config.json)"),
        (["run", "p.accel", "--backend", "rtl", "--wave", "p.accel"], "--wave", "p.accel", "FILE"),
        (["asm", "t.s", "-o", "t.s"], "-o", "t.s", "FILE"),
        ([*GEMM, "--schedule", "s.toml", "-o", "s.toml"], "-o", "s.toml", "--schedule"),
        (
            [*GEMM, "--schedule", "s.toml", "--save-schedule", "s.toml"],
            "--save-schedule",
            "s.toml",
            "--schedule",
        ),
        ([*GEMM, "--config", "m.json", "-o", "m.json"], "-o", "m.json", "--config"),
        (["verilog", "--config", "m.json", "-o", "m.json"], "-o", "m.json", "--config"),
        (["bench", "gemm", "--config", "m.json", "-o", "m.json"], "-o", "m.json", "--config"),
        (["sweep", "sweep.csv", "-o", "."], "the table", "sweep.csv", "FILE"),
    ],
    ids=str,
)
@pytest.mark.usefixtures("files")
def test_files_that_are_read_are_never_overwritten(
    arguments: list[object], option: str, path: str, use: str, accel: Shell
) -> None:
    accel.refused(*arguments, message=_over(option, path, f"is read as {use}"))


@pytest.mark.parametrize(
    ("arguments", "option", "path", "use"),
    [
        ([*GEMM, "-o", "x.toml", "--save-schedule", "./x.toml"], "--save-schedule", "x.toml", "-o"),
        (
            ["run", "p.accel", "--report", "x.html", "--timeline", "x.html"],
            "--timeline",
            "x.html",
            "--report",
        ),
        (
            ["sweep", "--workload", "gemm", "--plot", "K,cycles", "--plot", "K,cycles"]
            + [part for size in "MNK" for part in ("--vary", f"{size}=8")],
            "plot 2",
            "sweep/sweep-K-cycles.svg",
            "plot 1",
        ),
    ],
    ids=str,
)
@pytest.mark.usefixtures("files")
def test_no_file_is_written_twice(
    arguments: list[object], option: str, path: str, use: str, accel: Shell
) -> None:
    accel.refused(*arguments, message=_over(option, path, f"{use} writes"))


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.usefixtures("files")
def test_links_are_seen_through(link: Callable[[str, str], None], accel: Shell) -> None:
    link("t.s", "link")
    accel.refused("asm", "t.s", "-o", "link", message=_over("-o", "link", "is read as FILE"))
    accel.refused("asm", "link", "-o", "t.s", message=_over("-o", "t.s", "is read as FILE"))


@pytest.mark.usefixtures("files")
def test_links_to_missing_files_are_resolved(accel: Shell) -> None:
    os.symlink("x.html", "link.html")
    message = _over("--timeline", "link.html", "--report writes")
    accel.refused("run", "p.accel", "--report", "x.html", "--timeline", "link.html", message=message)


@pytest.mark.usefixtures("files")
def test_other_files_and_devices_are_written(accel: Shell) -> None:
    """Files that exist may be replaced, also one with the name of a configuration that is not read."""
    Path("x.html").write_text("old")
    accel("run", "p.accel", "--report", "x.html", "--output", "C=/dev/null", "--trace", "t.json")
    assert Path("x.html").read_text() != "old"
    accel(*GEMM, "-o", "/dev/null", "--save-schedule", "/dev/null")
    assert "tiny" in NAMED
    accel(*GEMM, "--config", "tiny", "-o", "tiny")
    assert Path("tiny").stat().st_size
