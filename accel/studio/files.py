"""Networks and programs that the studio looks at: named when it is started, or uploaded by the page.

The page knows them by names only; no path is ever taken from it.
"""

import hashlib
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from accel.base.errors import AccelError
from accel.image.image import MODEL_SUFFIXES
from accel.run.replay import PROGRAM_SUFFIX, TEXT_SUFFIX

SUFFIXES = (*MODEL_SUFFIXES, PROGRAM_SUFFIX, TEXT_SUFFIX)
MOST_BYTES = 64 << 20
"""Of an uploaded file."""
_MOST_FILES = 16
"""Uploaded ones; the oldest is forgotten."""
_LONGEST_NAME = 80


class Files:
    """Files by the names under which the page knows them.

    Args:
        paths: those that are named at the start.

    Raises:
        AccelError: one of them does not exist, or is of no kind that can be looked at.
    """

    def __init__(self, paths: tuple[Path, ...] = ()) -> None:
        self._known: dict[str, Path] = {}
        self._uploaded: list[str] = []
        for path in paths:
            if not path.is_file():
                raise AccelError(f"{str(path)!r} is no file; give a network or a program")
            _check_suffix(path.name)
            name = path.name
            while name in self._known:
                name = f"{path.parent.name}/{name}"
            self._known[name] = path.resolve()
        self._folder = tempfile.TemporaryDirectory(prefix="accel-studio-")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    @property
    def names(self) -> list[str]:
        """What the page may ask for."""
        return list(self._known)

    def paths(self) -> dict[str, str]:
        """Where the files are, by name."""
        return {name: str(path) for name, path in self._known.items()}

    def add(self, name: str, content: bytes) -> str:
        """Keep a file that is uploaded.

        Args:
            name: what the user calls it; only its end says what it is.
            content: of the file.

        Returns:
            The name under which it is known from now on.

        Raises:
            AccelError: it is of no kind that can be looked at, or too large.
        """
        _check_suffix(name)
        if len(content) > MOST_BYTES:
            raise AccelError(f"{name!r} has {len(content):,} bytes; the studio takes up to {MOST_BYTES:,}")
        digest = hashlib.sha256(content).hexdigest()[:8]
        shown = "".join(
            one if one.isprintable() and one not in "/\\" else "_" for one in name[-_LONGEST_NAME:]
        )
        stem, suffix = Path(shown).stem, Path(name).suffix.lower()
        known = f"{stem} {digest}{suffix}"
        if known not in self._known:
            path = Path(self._folder.name, f"{digest}{suffix}")
            path.write_bytes(content)
            self._known[known] = path
            self._uploaded.append(known)
        if len(self._uploaded) > _MOST_FILES:
            self._known.pop(self._uploaded.pop(0))
        return known


def is_model(name: str) -> bool:
    """Whether a name is that of a network as others write it."""
    return Path(name).suffix.lower() in MODEL_SUFFIXES


def _check_suffix(name: str) -> None:
    if Path(name).suffix.lower() not in SUFFIXES:
        raise AccelError(f"{name!r} is nothing to look at; it must end in {', '.join(SUFFIXES)}")
