"""The journal of a sweep: what has been measured so far, a line each, so that nothing is done twice."""

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from accel.base.errors import SweepError

_BEGIN = b'{"key": "'
"""Of every line."""


class Journal:
    """Outcomes by key, in a file that only grows and that belongs to one sweep at a time.

    A last line that was cut off, as by a kill or a full disk, is dropped.

    Args:
        path: of the file; None: nothing is kept.
        fresh: begin anew.

    Raises:
        SweepError: it cannot be read or written, is damaged, or another sweep is using it.

    Attributes:
        known: what has been measured, by key.
        dropped: whether a line was cut off.
    """

    def __init__(self, path: Path | None, *, fresh: bool = False) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self.known: dict[str, dict[str, Any]] = {}
        self.dropped = False
        if path is None:
            return
        try:
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

    def add(self, key: str, figures: dict[str, Any]) -> None:
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

    def _read(self) -> None:
        assert self._file is not None
        self._file.seek(0)
        content = self._file.read()
        whole, rest = content[: content.rfind(b"\n") + 1], content[content.rfind(b"\n") + 1 :]
        lines = whole.splitlines()
        for number, line in enumerate(lines, 1):
            try:
                entry = json.loads(line)
                self.known[entry["key"]] = dict(entry["figures"])
            except (ValueError, KeyError, TypeError):
                raise self._damaged(number) from None
        if not rest:
            return
        if rest[: len(_BEGIN)] != _BEGIN[: len(rest)]:
            raise self._damaged(len(lines) + 1)
        self._file.truncate(len(whole))
        self.dropped = True

    def _damaged(self, number: int) -> SweepError:
        return SweepError(
            f"journal {str(self._path)!r} is damaged in line {number}; remove that line and its point is "
            f"measured again, or begin anew with --fresh"
        )

    def _unusable(self, how: str, error: OSError) -> SweepError:
        return SweepError(f"journal {str(self._path)!r} cannot be {how}: {error.strerror}")
