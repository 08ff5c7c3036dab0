"""Every executor runs every task once, in any order, and survives the death of a worker."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import accel
from accel.base.errors import SweepError
from accel.sweeps import sweep_runner
from accel.sweeps.executors import in_processes, in_this_process, on_dask
from tests.sweeps import worker_functions


def test_in_this_process() -> None:
    assert list(in_this_process(worker_functions.double, [("", 1), ("", 2)])) == [(0, 2), (1, 4)]


def test_a_dead_worker_process_is_replaced(tmp_path: Path) -> None:
    tasks = [(str(tmp_path), number) for number in range(8)]
    assert sorted(in_processes(worker_functions.die_once, tasks, 2)) == [(n, 2 * n) for n in range(8)]
    assert (tmp_path / "seen").exists()


def test_processes_that_die_repeatedly_end_the_sweep() -> None:
    with pytest.raises(SweepError, match="died 3 times in a row with 2 points to go"):
        list(in_processes(worker_functions.die, [("", 1), ("", 2)], 2))


def test_dask_survives_a_dead_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep on a cluster of three processes, one of which is killed, has all points."""
    pytest.importorskip("distributed")
    monkeypatch.setenv("ACCEL_TEST_FOLDER", str(tmp_path))
    workload, grid = accel.gemm(16, 16, 16), {"vthreads": [1, 2], "read_latency": [4, 8, 16, 32]}
    alone = accel.sweep(workload, **grid)
    monkeypatch.setattr(sweep_runner, "measure", worker_functions.measure_and_die_once)
    journal = tmp_path / "journal.jsonl"
    table = accel.sweep(workload, executor="dask", jobs=3, journal=journal, **grid)
    assert (tmp_path / "seen").exists()
    assert len(table) == 8
    assert table.column("cycles") == alone.column("cycles")
    assert len(journal.read_text().splitlines()) == 8


def test_several_clusters_run_on_one_machine() -> None:
    """Dask's default port is the same for all clusters."""
    pytest.importorskip("distributed")
    with socket.socket() as another:
        with suppress(OSError):  # there is one already
            another.bind(("", 8787))
            another.listen()
        assert list(on_dask(worker_functions.double, [("", 1)], 1)) == [(0, 2)]


def test_a_missing_cluster_is_reported() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(SweepError, match=r"the cluster at 'tcp://127\.0\.0\.1:1' cannot be reached"):
        list(on_dask(worker_functions.double, [("", 1)], 1, "tcp://127.0.0.1:1", timeout=1))


_SLOW = """
import sys, time
from pathlib import Path
from typing import Any
from accel.sweeps.executors import in_processes

def work(folder):
    import os
    Path(folder, str(os.getpid())).touch()
    time.sleep(60)

if __name__ == "__main__":
    list(in_processes(work, [sys.argv[1]] * 4, 2))
"""


_SLOW_PROGRAM = """
import sys
from accel.base.child_processes import end_programs_on_termination, run_program
from accel.sweeps.executors import in_processes

def work(folder):
    run_program(["sh", "-c", 'touch "$0/$$"; sleep 60; true', folder])

if __name__ == "__main__":
    end_programs_on_termination()
    list(in_processes(work, [sys.argv[1]] * 4, 2))
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_their_parent(how: signal.Signals, tmp_path: Path) -> None:
    _end_with_their_parent(_SLOW, how, tmp_path)


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="POSIX process groups")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_programs_of_workers_end_with_their_parent(how: signal.Signals, tmp_path: Path) -> None:
    """As a placement of an exploration that is interrupted."""
    _end_with_their_parent(_SLOW_PROGRAM, how, tmp_path)


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="POSIX process groups")
def test_programs_of_an_own_cluster_end_with_an_interrupt(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    seen = _end_with_their_parent(_SLOW_PROGRAM.replace("in_processes", "on_dask"), signal.SIGINT, tmp_path)
    assert len(list(seen.iterdir())) == 2, "no further program started"


def _end_with_their_parent(text: str, how: signal.Signals, folder: Path) -> Path:
    """Check that two processes end after a script that has started them and gets a signal.

    Returns:
        The folder in which each started process writes a file with its number as the name.
    """
    script, seen = folder / "slow.py", folder / "seen"
    script.write_text(text)
    seen.mkdir()
    process = subprocess.Popen([sys.executable, script, seen], stderr=subprocess.DEVNULL)
    _until(lambda: len(list(seen.iterdir())) == 2)
    process.send_signal(how)
    process.wait(timeout=120)
    started = [int(path.name) for path in seen.iterdir()]
    _until(lambda: not any(_alive(pid) for pid in started))
    return seen


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def _until(condition: "object") -> None:
    assert callable(condition)
    for _ in range(300):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("the condition was false for 30 s")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_workers_never_get_an_interrupt() -> None:
    """This process gets its handler and its mask back."""
    handler, mask = signal.getsignal(signal.SIGINT), signal.pthread_sigmask(signal.SIG_BLOCK, ())
    blocked = [answer for _, answer in in_processes(worker_functions.blocks_interrupts, [1, 2, 3], 2)]
    assert blocked == [True] * 3
    assert signal.getsignal(signal.SIGINT) is handler
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_an_interrupt_is_delayed_until_processes_have_started(monkeypatch: pytest.MonkeyPatch) -> None:
    real, started = ProcessPoolExecutor.submit, []

    def interrupted(pool: ProcessPoolExecutor, *arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        started.append(real(pool, *arguments))
        return started[-1]

    monkeypatch.setattr(ProcessPoolExecutor, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(in_processes(worker_functions.blocks_interrupts, [1, 2], 2))
    assert len(started) == 2
