"""Child processes, such as compilers, which do not outlive this one."""

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

EXIT_TERMINATED = 128 + signal.SIGTERM
"""As shells report SIGTERM."""
_WATCH_SECONDS = 1.0

_lock = threading.Lock()
_groups: set[int] = set()
"""Process groups of running programs."""
_terminated = threading.Event()
"""This process ends: no further program starts."""


def run_program(
    command: Sequence[str],
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    given: str | None = None,
    timeout: float | None = None,
    output: IO[bytes] | None = None,
    watch: Callable[[], None] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run a program, and end it and its children if an exception arises.

    Standard input is ``given`` or this process's. Both streams are captured, or written to ``output``.
    """
    with _lock:
        if _terminated.is_set():
            raise SystemExit(EXIT_TERMINATED)
        process = subprocess.Popen(  # noqa: S603
            command,
            cwd=folder,
            env=environment,
            stdin=None if given is None else subprocess.PIPE,
            stdout=output or subprocess.PIPE,
            stderr=output or subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        _groups.add(process.pid)
    try:
        return _finish(process, given, timeout, watch)
    finally:
        if process.poll() is None:
            _kill(process.pid)
            process.communicate()
        with _lock:
            _groups.discard(process.pid)


def _finish(
    process: "subprocess.Popen[str]",
    given: str | None,
    timeout: float | None,
    watch: Callable[[], None] | None,
) -> "subprocess.CompletedProcess[str]":
    end = math.inf if timeout is None else time.monotonic() + timeout
    while True:
        seconds = min(end - time.monotonic(), math.inf if watch is None else _WATCH_SECONDS)
        limit = None if math.isinf(seconds) else max(seconds, 0)
        try:
            output, errors = process.communicate(given, timeout=limit)
        except subprocess.TimeoutExpired:
            if watch is None or time.monotonic() >= end:
                raise
            given = None
            watch()
        else:
            return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def kill_programs() -> None:
    with _lock:
        for group in _groups:
            _kill(group)


def end_programs() -> None:
    """Kill all programs. No further one starts."""
    _terminated.set()
    kill_programs()


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def end_programs_on_termination(end: Callable[[int], object] = sys.exit) -> None:
    """Let SIGTERM end this process with exit code 143, after its programs.

    Call it in the main thread. It changes nothing if SIGTERM is ignored or handled already.

    Args:
        end: ends the process with an exit code. Worker processes need ``os._exit``, because their pool
            catches the exception of ``sys.exit`` and runs the next task.
    """
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return

    def terminate(*_: object) -> None:
        _terminated.set()
        for group in tuple(_groups):  # the interrupted thread may hold the lock
            _kill(group)
        end(EXIT_TERMINATED)

    signal.signal(signal.SIGTERM, terminate)
