"""The journal of a sweep avoids measuring a point twice.

A line is JSON with a task's ``key``, ``figures``, and ``check``: 16 hexadecimal digits of the SHA-256 of
both, which earlier releases lack. Damaged lines are reported and ignored.
"""

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from accel.base.errors import SweepError
from accel.base.json_types import shown
from accel.sweeps.task_figures import Figures, check_figures

_LINE_START = b'{"key": "'
_MAX_LINE_BYTES = 1 << 20
"""A hundred times a usual line."""
_MAX_JOURNAL_BYTES = 1 << 30
"""About half a million points in memory."""
_CHECK_DIGITS = 16
_ENTRIES = {"key", "figures"}


class _DamagedLine(Exception):
    pass


class Journal:
    """Figures by key, in a file for one sweep at a time.

    Args:
        path: None for memory.

    Attributes:
        damaged: damaged lines, from 1, and reasons.
    """

    def __init__(self, path: Path | None, *, fresh: bool = False) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._has_open_line = False
        self.known: dict[str, Figures] = {}
        self.dropped = False
        self.damaged: list[tuple[int, str]] = []
        if path is None:
            return
        try:
            self._check_regular(fresh)
            self._file = path.open("a+b", buffering=0)
            self._lock()
            if fresh:
                self._file.truncate(0)
            self._read()
        except OSError as error:
            self.close()
            raise self._unusable("used", error) from None
        except SweepError:
            self.close()
            raise

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def add(self, key: str, figures: Figures) -> None:
        self.known[key] = figures
        if self._path is None:
            return
        assert self._file is not None, "the journal is closed"
        line = {"key": key, "figures": figures, "check": _checksum(key, figures)}
        rest = b"\n" * self._has_open_line + json.dumps(line).encode() + b"\n"
        self._has_open_line = False
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._unusable("written", error) from None

    def _lock(self) -> None:
        try:
            import fcntl  # not on every platform
        except ImportError:
            return
        assert self._file is not None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SweepError(
                f"journal {str(self._path)!r} is being written by another sweep; wait for its end, "
                f"or give another folder"
            ) from None

    def _check_regular(self, fresh: bool) -> None:
        assert self._path is not None
        if not self._path.exists() or self._path.is_dir():  # created, or refused when opened
            return
        status = self._path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise SweepError(f"journal {str(self._path)!r} is a device or a pipe; a regular file is needed")
        if status.st_size > _MAX_JOURNAL_BYTES and not fresh:
            raise SweepError(
                f"journal {str(self._path)!r} has {status.st_size:,} bytes; at most {_MAX_JOURNAL_BYTES:,} "
                f"are read, so begin anew with --fresh or give another folder"
            )

    def _read(self) -> None:
        assert self._file is not None
        end = 0
        cut_off: int | None = None
        is_journal = has_checks = False
        for number, line in enumerate(self._lines(), 1):
            is_journal |= line.startswith(_LINE_START)
            if line.endswith(b"\n"):
                try:
                    has_checks |= self._take(line, needs_check=has_checks)
                except _DamagedLine as damage:
                    self.damaged.append((number, str(damage)))
                end += len(line)
            elif len(line) > _MAX_LINE_BYTES:
                raise self._refused(number, f"it is longer than {_MAX_LINE_BYTES:,} bytes")
            elif line[: len(_LINE_START)] == _LINE_START[: len(line)]:
                cut_off = end
            else:
                self.damaged.append((number, "it begins otherwise than a line of a journal"))
                self._has_open_line = True
        if self.damaged and not self.known and not is_journal:
            raise self._refused(*self.damaged[0])
        if cut_off is not None:
            self._file.truncate(cut_off)
            self.dropped = True

    def _lines(self) -> Iterator[bytes]:
        """Yield lines up to an unfinished or too long one."""
        assert self._file is not None
        with os.fdopen(os.dup(self._file.fileno()), "rb") as file:  # the lock lasts until both are closed
            file.seek(0)
            while line := file.readline(_MAX_LINE_BYTES + 1):
                yield line
                if not line.endswith(b"\n"):
                    return

    def _take(self, line: bytes, *, needs_check: bool) -> bool:
        try:
            entry: Any = json.loads(line)
        except (ValueError, RecursionError):
            raise _DamagedLine("it is not JSON") from None
        if not isinstance(entry, dict) or entry.keys() - {"check"} != _ENTRIES:
            raise _DamagedLine('it must be an object with "key" and "figures"')
        key = entry["key"]
        if not isinstance(key, str):
            raise _DamagedLine(f"key is {shown(key)}; it must be a text")
        if needs_check and "check" not in entry:
            raise _DamagedLine("it has no checksum, and an earlier line has one")
        if "check" in entry and entry["check"] != _checksum(key, entry["figures"]):
            raise _DamagedLine("its checksum is that of other figures")
        try:
            self.known[key] = check_figures(entry["figures"])
        except SweepError as error:
            raise _DamagedLine(str(error)) from None
        return "check" in entry

    def _refused(self, number: int, why: str) -> SweepError:
        return SweepError(
            f"journal {str(self._path)!r} is damaged in line {number}: {why}. No line of it can be used; "
            f"give another folder, or begin anew with --fresh"
        )

    def _unusable(self, how: str, error: OSError) -> SweepError:
        return SweepError(f"journal {str(self._path)!r} cannot be {how}: {error.strerror}")


def _checksum(key: str, figures: object) -> str:
    """Spaces and escapes do not matter."""
    return hashlib.sha256(json.dumps([key, figures]).encode()).hexdigest()[:_CHECK_DIGITS]
