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
"""Exit code of a process that SIGTERM ended, as shells report it."""
_WATCH_SECONDS = 1.0
"""Time between two calls of a watcher."""

_lock = threading.Lock()
_groups: set[int] = set()
"""Process groups of the programs that are running."""
_terminated = threading.Event()
"""Set when this process is about to end: no further program starts."""


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
    """Run a program. An exception ends it and its children.

    Args:
        given: standard input, by default that of this process.
        output: file for both streams, which are captured by default.
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
    """Wait for a program, calling the watcher."""
    end = math.inf if timeout is None else time.monotonic() + timeout
    while True:
        seconds = min(end - time.monotonic(), math.inf if watch is None else _WATCH_SECONDS)
        limit = None if math.isinf(seconds) else max(seconds, 0)
        try:
            output, errors = process.communicate(given, timeout=limit)
        except subprocess.TimeoutExpired:
            if watch is None or time.monotonic() >= end:
                raise
            given = None  # it has been taken
            watch()
        else:
            return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def kill_programs() -> None:
    """End all programs of :func:`run_program`."""
    with _lock:
        for group in _groups:
            _kill(group)


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def end_programs_on_termination() -> None:
    """Let SIGTERM end this process with exit code 143, after its programs.

    For the main thread, unless SIGTERM is ignored or handled already.
    """
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return

    def terminate(*_: object) -> None:
        _terminated.set()
        for group in tuple(_groups):  # without the lock, which the interrupted thread may hold
            _kill(group)
        sys.exit(EXIT_TERMINATED)

    signal.signal(signal.SIGTERM, terminate)
