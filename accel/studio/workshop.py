"""Work that is done in another process, which is killed where a newer question comes or it takes too long."""

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from accel.base.errors import AccelError

GRACE = 0.4
"""Seconds that work may go on after a newer question has come: less than a new process takes to start."""
SECONDS = 60.0
"""An answer may take if nothing else is said: a whole ResNet-18 is compiled and run in a third of it."""
MEMORY = 4 << 30


class Superseded(AccelError):
    """A newer question has come before this one was answered."""


class _Process:
    """One process, and a thread that reads what it says."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603  # ourselves
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self._ready = False

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    @property
    def dead(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def send(self, line: bytes) -> None:
        """Ask; nothing happens if the process is dead, which :meth:`receive` finds out."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()
        except OSError:
            return

    def receive(self, seconds: float) -> bytes | None:
        """What it says next; nothing if it is dead, None if it has said nothing yet."""
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            return None
        if line and not self._ready:
            self._ready = True
            return self.receive(seconds)
        return line

    def kill(self) -> None:
        """End it now."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue


class Workshop:
    """Answers one question at a time, the newest first.

    Args:
        seconds: that an answer may take.
        memory: bytes that the process may use.
        command: what to start instead of :mod:`accel.studio.worker`; it says ``ready``, and then answers a
            line by a line.
    """

    def __init__(
        self, *, seconds: float = SECONDS, memory: int = MEMORY, command: Sequence[str] | None = None
    ) -> None:
        worker = (sys.executable, "-m", "accel.studio.worker", str(memory))
        self._seconds, self._command = seconds, command or worker
        self._turn = threading.Lock()
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
        """End the processes."""
        with self._newest_lock:
            self._newest += 1
        with self._turn:
            self._current.kill()
            self._spare.kill()

    def ask(self, question: bytes) -> bytes:
        """The answer to a question.

        Args:
            question: a line of JSON, without its end.

        Returns:
            A line of JSON.

        Raises:
            Superseded: a newer question has come.
            AccelError: it took too long or too much memory.
        """
        with self._newest_lock:
            self._newest += 1
            mine = self._newest
        with self._turn:
            self._check(mine)
            for _ in range(2):  # somebody may have ended them
                if self._current.dead:
                    self._replace()
            self._current.send(question)
            begin = time.monotonic()
            overtaken: float | None = None
            while (line := self._current.receive(0.05)) is None:
                now = time.monotonic()
                if mine != self._newest and overtaken is None:
                    overtaken = now
                if overtaken is not None and now - overtaken > GRACE:
                    self._replace()
                    self._check(mine)
                if now - begin > self._seconds:
                    self._replace()
                    raise AccelError(
                        f"this state takes longer than {self._seconds:g} seconds, and was given up; 'accel "
                        f"studio --seconds' allows more, and other commands wait for as long as you do"
                    )
            if not line:
                self._replace()
                raise AccelError("the process that works for the studio died, perhaps of too little memory")
            self._check(mine)
            return line

    def _check(self, mine: int) -> None:
        if mine != self._newest:
            raise Superseded("a newer state has come")

    def _replace(self) -> None:
        """Go on with the process that waits, and have another one wait."""
        self._current.kill()
        self._current, self._spare = self._spare, _Process(self._command)
