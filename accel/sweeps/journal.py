"""The journal of a sweep: what has been measured so far, a line each, so that nothing is done twice."""

import json
import os
from pathlib import Path
from typing import Any

from accel.errors import SweepError


class Journal:
    """Outcomes by key, in a file that only grows. A line that was cut off is dropped.

    Args:
        path: of the file; None: nothing is kept.
        fresh: begin anew.

    Raises:
        SweepError: it cannot be read or written.
    """

    def __init__(self, path: Path | None, *, fresh: bool = False) -> None:
        self._path = path
        self.known: dict[str, dict[str, Any]] = {}
        if path is None:
            return
        try:
            if fresh:
                path.unlink(missing_ok=True)
            elif path.exists():
                self._read(path)
        except OSError as error:
            raise SweepError(f"journal {str(path)!r} cannot be used: {error.strerror}") from None

    def _read(self, path: Path) -> None:
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                entry = json.loads(line)
                self.known[entry["key"]] = dict(entry["figures"])
            except (ValueError, KeyError, TypeError):
                raise SweepError(
                    f"journal {str(path)!r} is damaged in line {number}; --fresh begins anew"
                ) from None
        if len(whole) < len(content):
            os.truncate(path, len(whole))

    def add(self, key: str, figures: dict[str, Any]) -> None:
        """Keep an outcome; it is on disk when this returns.

        Raises:
            SweepError: it cannot be written.
        """
        self.known[key] = figures
        if self._path is None:
            return
        try:
            with self._path.open("ab") as file:
                file.write(json.dumps({"key": key, "figures": figures}).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise SweepError(f"journal {str(self._path)!r} cannot be written: {error.strerror}") from None
