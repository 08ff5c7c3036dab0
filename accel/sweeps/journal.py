"""The journal of a sweep: what has been measured so far, a line each, so that nothing is done twice."""

import json
import os
import reprlib
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from accel.base.errors import SweepError
from accel.sweeps.figures import Figures, check_figures

_BEGIN = b'{"key": "'
"""Of every line."""
_LONGEST_LINE = 1 << 20
"""Bytes; a hundred times what a point needs."""
_LARGEST = 1 << 30
"""Bytes of a whole journal, half a million points; all of them are kept in memory."""


class Journal:
    """Outcomes by key, in a file that only grows and that belongs to one sweep at a time.

    A last line that was cut off, as by a kill or a full disk, is dropped.

    Args:
        path: of the file; None: nothing is kept.
        fresh: begin anew.

    Raises:
        SweepError: it cannot be read or written, is no regular file or too large, is damaged, or another
            sweep is using it.

    Attributes:
        known: what has been measured, by key.
        dropped: whether a line was cut off.
    """

    def __init__(self, path: Path | None, *, fresh: bool = False) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self.known: dict[str, Figures] = {}
        self.dropped = False
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
        """Leave the file to others."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def add(self, key: str, figures: Figures) -> None:
        """Keep an outcome; it is on disk when this returns.

        Raises:
            SweepError: it cannot be written.
        """
        self.known[key] = figures
        if self._path is None:
            return
        assert self._file is not None, "it is closed"
        rest = json.dumps({"key": key, "figures": figures}).encode() + b"\n"
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._unusable("written", error) from None

    def _lock(self) -> None:
        """Keep others out for as long as the file is open, which is at most as long as this process lives."""
        try:
            import fcntl  # noqa: PLC0415  # not on every platform
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
        """Refuse what has no end, or whose end depends on others: devices and pipes."""
        assert self._path is not None
        if not self._path.exists() or self._path.is_dir():  # to be made, or refused when it is opened
            return
        status = self._path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise SweepError(f"journal {str(self._path)!r} is a device or a pipe; a regular file is needed")
        if status.st_size > _LARGEST and not fresh:
            raise SweepError(
                f"journal {str(self._path)!r} has {status.st_size:,} bytes; at most {_LARGEST:,} are read, "
                f"so begin anew with --fresh or give another folder"
            )

    def _read(self) -> None:
        whole = 0
        for number, line in enumerate(self._lines(), 1):
            if line.endswith(b"\n"):
                self._take(number, line)
                whole += len(line)
            elif len(line) > _LONGEST_LINE:
                raise self._damaged(number, f"it is longer than {_LONGEST_LINE:,} bytes")
            elif line[: len(_BEGIN)] == _BEGIN[: len(line)]:
                assert self._file is not None
                self._file.truncate(whole)
                self.dropped = True
            else:
                raise self._damaged(number, "it begins otherwise than a line of a journal")

    def _lines(self) -> Iterator[bytes]:
        """Each with its end; one that has none, or not soon enough, is the last."""
        assert self._file is not None
        with os.fdopen(os.dup(self._file.fileno()), "rb") as file:  # the lock lives as long as both
            file.seek(0)
            while line := file.readline(_LONGEST_LINE + 1):
                yield line
                if not line.endswith(b"\n"):
                    return

    def _take(self, number: int, line: bytes) -> None:
        """Know the outcome that a line tells of."""
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            raise self._damaged(number, "it is not JSON") from None
        if not isinstance(entry, dict) or entry.keys() != {"key", "figures"}:
            raise self._damaged(number, 'it must be an object with "key" and "figures"')
        if not isinstance(entry["key"], str):
            raise self._damaged(number, f"key is {reprlib.repr(entry['key'])}; it must be a text")
        try:
            self.known[entry["key"]] = check_figures(entry["figures"])
        except SweepError as error:
            raise self._damaged(number, str(error)) from None

    def _damaged(self, number: int, why: str) -> SweepError:
        return SweepError(
            f"journal {str(self._path)!r} is damaged in line {number}: {why}. Remove that line and its point "
            f"is measured again, or begin anew with --fresh"
        )

    def _unusable(self, how: str, error: OSError) -> SweepError:
        return SweepError(f"journal {str(self._path)!r} cannot be {how}: {error.strerror}")
