"""Work in another process, killed for a newer question or at the time limit."""

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from accel.base.errors import AccelError

GRACE_SECONDS = 0.4
"""Time for work to end after a newer question. A new process takes longer to start."""
DEFAULT_SECONDS = 60.0
"""Time limit of an answer. A whole ResNet-18 takes a third of it."""
MEMORY_BYTES = 4 << 30
_POLL_SECONDS = 0.05


class Superseded(AccelError):
    """A newer question arrived before the answer."""


class _Process:
    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603  # our own program
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self._is_ready = False

    def _read(self) -> None:
        """Only this thread may close the pipe that it reads."""
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put(b"")

    @property
    def is_dead(self) -> bool:
        return self._process.poll() is not None

    def send(self, line: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()
        except OSError:
            return

    def receive(self, seconds: float) -> bytes | None:
        """Return an answer: empty if the process has ended, None for a timeout."""
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            return None
        if line and not self._is_ready:
            self._is_ready = True
            return self.receive(seconds)
        return line

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()


class WorkerSupervisor:
    """Answers one question at a time, the newest first.

    A spare process replaces a killed one at once.

    Args:
        command: in place of :mod:`accel.studio.view_worker`. It prints ``ready``, then a line per question.
    """

    def __init__(
        self,
        *,
        seconds: float = DEFAULT_SECONDS,
        memory: int = MEMORY_BYTES,
        command: Sequence[str] | None = None,
    ) -> None:
        worker = (sys.executable, "-m", "accel.studio.view_worker", str(memory))
        self._seconds, self._command = seconds, command or worker
        self._worker_lock = threading.Lock()
        self._newest_lock = threading.Lock()
        self._newest = 0
        self._current = _Process(self._command)
        self._spare = _Process(self._command)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        with self._newest_lock:
            self._newest += 1
        with self._worker_lock:
            self._current.kill()
            self._spare.kill()

    def ask(self, question: bytes) -> bytes:
        with self._newest_lock:
            self._newest += 1
            number = self._newest
        with self._worker_lock:
            self._check_newest(number)
            for _ in range(2):  # a user may have killed both processes
                if self._current.is_dead:
                    self._replace()
            self._current.send(question)
            line = self._wait(number)
            if not line:
                self._replace()
                raise AccelError("the worker process of the studio died; there may be too little memory")
            self._check_newest(number)
            return line

    def _wait(self, number: int) -> bytes:
        begin = time.monotonic()
        superseded_at: float | None = None
        while (line := self._current.receive(_POLL_SECONDS)) is None:
            now = time.monotonic()
            if number != self._newest and superseded_at is None:
                superseded_at = now
            if superseded_at is not None and now - superseded_at > GRACE_SECONDS:
                self._replace()
                self._check_newest(number)
            if now - begin > self._seconds:
                self._replace()
                raise AccelError(
                    f"this state takes longer than {self._seconds:g} seconds and was abandoned; "
                    f"'accel studio --seconds' allows more, and other commands have no limit"
                )
        return line

    def _check_newest(self, number: int) -> None:
        if number != self._newest:
            raise Superseded("a newer state has arrived")

    def _replace(self) -> None:
        self._current.kill()
        self._current, self._spare = self._spare, _Process(self._command)
