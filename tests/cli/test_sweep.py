"""`accel sweep`: the table, the plots and the exit code for a grid."""

import csv
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from accel.base.optional_extras import not_installed
from accel.cli import sweep as command
from accel.sweeps.sweep_journal import Journal
from tests.cli.conftest import Shell

SMALL = ["--workload", "gemm", *(part for size in "MNK" for part in ("--vary", f"{size}=16"))]
FILE = """
title = "Small"
[workload]
name = "gemm"
M = 16
N = 16
K = 16
[[grid]]
vthreads = [1, 2]
[[plot]]
x = "vthreads"
y = "cycles"
"""


def test_a_file_becomes_a_folder(accel: Shell) -> None:
    (accel.folder / "small.toml").write_text(FILE)
    out = accel("sweep", "small.toml", "--jobs", 1, "--parquet").text
    assert {path.name for path in (accel.folder / "small").iterdir()} == {
        "small.csv",
        "small.parquet",
        "small.svg",
        "small.journal.jsonl",
    }
    assert "Small\n" in out
    assert "vthreads  cycles  utilization  traffic_bytes\n" in out
    assert "points" in out


def test_options_do_without_a_file(accel: Shell) -> None:
    out = accel(
        "sweep",
        *SMALL,
        "--vary",
        "vthreads=1,2",
        "--vary",
        "run.read_latency=4,8",
        "--jobs",
        1,
        "--plot",
        "read_latency,cycles,vthreads",
        "-o",
        "here",
        "--json",
    ).json
    assert (out["points"], out["refused"], out["failed"]) == (4, 0, 0)
    assert [(row["vthreads"], row["read_latency"]) for row in out["rows"]] == [(1, 4), (1, 8), (2, 4), (2, 8)]
    assert out["files"] == ["here/sweep.csv", "here/sweep-read_latency-cycles-vthreads.svg"]
    assert all((accel.folder / name).exists() for name in out["files"])


def test_two_processes_give_the_same_table_as_one(accel: Shell) -> None:
    rows = []
    for jobs in (1, 2):
        found = accel(
            "sweep", *SMALL, "--vary", "vthreads=1,2", "--jobs", jobs, "-o", str(jobs), "--json"
        ).json
        rows.append([{k: v for k, v in row.items() if "seconds" not in k} for row in found["rows"]])
    assert rows[0] == rows[1]


def test_points_that_do_not_fit_are_no_fault(accel: Shell) -> None:
    out = accel("sweep", *SMALL, "--vary", "vthreads=1,9999", "--jobs", 1).text
    assert "refused" in out
    assert "9999 virtual threads do not fit" in out
    with (accel.folder / "sweep" / "sweep.csv").open(encoding="utf-8") as file:
        assert [row["error"] for row in csv.DictReader(file)] == ["", "refused"]


def test_a_truncated_journal_line_is_reported(accel: Shell) -> None:
    accel("sweep", *SMALL, "--jobs", 1)
    journal = accel.folder / "sweep" / "sweep.journal.jsonl"
    whole = journal.read_bytes()
    note = "its last line had been cut off; that point is measured again"
    journal.write_bytes(whole[:-9])
    assert f"journal  {note}\n" in accel("sweep", *SMALL, "--jobs", 1).text
    journal.write_bytes(whole[:-9])
    assert accel("sweep", *SMALL, "--jobs", 1, "--json").json["notes"] == [f"journal: {note}"]
    assert accel("sweep", *SMALL, "--jobs", 1, "--json").json["notes"] == []


def test_a_second_sweep_into_a_folder_is_refused(accel: Shell) -> None:
    """The refusal lasts while the first sweep runs."""
    accel("sweep", *SMALL, "--jobs", 1)
    journal = "sweep/sweep.journal.jsonl"
    with Journal(accel.folder / journal):
        accel.refused(
            "sweep",
            *SMALL,
            message=f"journal '{journal}' is being written by another sweep; wait for its end, "
            f"or give another folder",
        )
    accel("sweep", *SMALL, "--jobs", 1)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX devices")
def test_a_journal_without_end_is_refused(accel: Shell) -> None:
    journal = accel.folder / "sweep" / "sweep.journal.jsonl"
    journal.parent.mkdir()
    journal.symlink_to("/dev/zero")
    message = f"journal '{journal.relative_to(accel.folder)}' is a device or a pipe; a regular file is needed"
    assert accel("sweep", *SMALL, "--jobs", 1, code=2).err == f"accel: {message}\n"


def test_a_fault_is_exit_code_1(accel: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    real = command.run_sweep

    def faulty(*arguments: object, **options: object) -> object:
        table = real(*arguments, **options)  # type: ignore[arg-type]
        table.rows[0].update(error="mismatch", message="1 of 256 output elements differ")
        return table

    monkeypatch.setattr(command, "run_sweep", faulty)
    done = accel("sweep", *SMALL, "--jobs", 1, code=1)
    assert "AT FAULT" in done.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give a file or --workload, one of them. (see 'accel sweep --help')"),
        (
            ["f.toml", "--workload", "gemm"],
            "Give a file or --workload, one of them. (see 'accel sweep --help')",
        ),
        (
            [*SMALL, "--vary", "vthreads"],
            "--vary is given 'vthreads'; it takes KEY=VALUE,..., as vthreads=1,2,4",
        ),
        (
            [*SMALL, "--vary", "vthreads=1,"],
            "--vary is given 'vthreads=1,'; it takes KEY=VALUE,..., as vthreads=1,2,4",
        ),
        ([*SMALL, "--vary", "K=32"], "--vary is given K twice, as '16' and as '32'"),
        ([*SMALL, "--plot", "cycles"], "--plot is given 'cycles'; it takes X,Y or X,Y,BY, which are columns"),
        ([*SMALL, "--executor", "das"], "the executor is 'das'; did you mean 'dask'?"),
        (
            [*SMALL, "--vary", "shift=2,40"],
            "gemm M=16 N=16 K=16 shift=40: shift is 40; it must be in 0..31",
        ),
        (
            [*SMALL, "--vary", "vthreads=1,2", "--vary", "read_latency=5,0"],
            "gemm M=16 N=16 K=16 vthreads=1 read_latency=0: read_latency is 0 in configuration 'gemm8x8'; "
            "it must be in 2..65535 cycles",
        ),
        ([*SMALL, "-o", "no/folder"], "'no/folder' cannot be written: there is no folder 'no'"),
        ([*SMALL, "-o", os.devnull], f"{os.devnull!r} cannot be written: it is not a folder"),
        (["--workload", "gem"], "'gem' is not a workload; did you mean 'gemm'?"),
        (["no.toml"], "sweep 'no.toml' cannot be read: No such file or directory"),
    ],
    ids=str,
)
def test_bad_input_is_said(arguments: list[str], message: str, accel: Shell) -> None:
    accel.refused("sweep", *arguments, message=message)


def test_a_missing_dask_is_reported_before_the_sweep_starts(
    accel: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    message = not_installed("the executor dask needs distributed", "cluster")
    accel.refused("sweep", *SMALL, "--executor", "dask", message=message)


def interrupted(arguments: list[str], folder: Path, lines: int) -> str:
    """Interrupt a sweep with two processes after some lines of its journal, and return the printed command.

    As Ctrl-C in a terminal does, the signal reaches all processes. They must print nothing else.
    """
    start = [sys.executable, "-m", "accel", *arguments, "--jobs", "2"]
    process = subprocess.Popen(
        start, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    journal = folder / "sweep" / "sweep.journal.jsonl"
    while not (journal.exists() and len(journal.read_bytes().splitlines()) >= lines):
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, b"")
    begin = (
        "accel: interrupted; the measured points are in 'sweep/sweep.journal.jsonl', and this continues from "
        "there: accel "
    )
    (line,) = err.decode().splitlines()
    assert line.startswith(begin)
    return line.removeprefix(begin)


def test_an_interrupted_sweep_prints_the_command_that_continues_it(tmp_path: Path) -> None:
    """The printed command continues the sweep, although the first one had ``--fresh``."""
    latencies = f"read_latency={','.join(map(str, range(2, 80)))}"
    told = interrupted(["sweep", *SMALL, "--vary", latencies, "--fresh"], tmp_path, 6)
    journal = tmp_path / "sweep" / "sweep.journal.jsonl"
    before = journal.read_bytes().splitlines()
    assert 5 < len(before) < 78
    command = [sys.executable, "-m", "accel", *shlex.split(told), "--json"]
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert again.stderr == b""
    after = journal.read_bytes().splitlines()
    assert len(after) == 78
    assert after[: len(before)] == before


def test_starting_processes_print_nothing_when_interrupted(tmp_path: Path) -> None:
    told = interrupted(["sweep", *SMALL, "--vary", "read_latency=4,8,16,32"], tmp_path, 0)
    assert told.startswith("sweep --workload gemm ")
