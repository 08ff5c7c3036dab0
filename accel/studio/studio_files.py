"""Networks, programs and explorations of the studio: given at the start, or uploaded."""

import hashlib
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from accel.base.errors import AccelError, nearest
from accel.explore.exploration_snapshot import SNAPSHOT_SUFFIX, find_snapshot, read_snapshot
from accel.image.image import MODEL_SUFFIXES
from accel.run.replay import PROGRAM_SUFFIX, TEXT_SUFFIX

SUFFIXES = (*MODEL_SUFFIXES, PROGRAM_SUFFIX, TEXT_SUFFIX)
MAX_FILE_BYTES = 64 << 20
_MAX_UPLOADS = 16
"""A further upload removes the oldest one."""
_MAX_NAME_CHARACTERS = 80


class StudioFiles:
    """Files by the page's names."""

    def __init__(self, paths: tuple[Path, ...] = ()) -> None:
        self._paths: dict[str, Path] = {}
        self._uploads: list[str] = []
        self._explorations: dict[str, Path] = {}
        for path in paths:
            if path.is_dir() or path.name.endswith(SNAPSHOT_SUFFIX):
                self._add_exploration(find_snapshot(path) if path.is_dir() else path)
                continue
            if not path.is_file():
                raise AccelError(
                    f"{str(path)!r} is not a file; give a network, a program, or the folder of an exploration"
                )
            _check_suffix(path.name)
            name = path.name
            while name in self._paths:
                name = f"{path.parent.name}/{name}"
            self._paths[name] = path.resolve()
        self._folder = tempfile.TemporaryDirectory(prefix="accel-studio-")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def _add_exploration(self, path: Path) -> None:
        read_snapshot(path)  # a wrong file is reported now
        name = path.name.removesuffix(SNAPSHOT_SUFFIX)
        while name in self._explorations:
            name = f"{path.parent.name}/{name}"
        self._explorations[name] = path.resolve()

    @property
    def explorations(self) -> list[str]:
        return list(self._explorations)

    def exploration(self, name: str) -> bytes:
        """Return the points of an exploration as JSON. The file may still grow.

        Raises:
            AccelError: unknown name, or unreadable file.
        """
        if name not in self._explorations:
            raise AccelError(
                f"{name!r} is not an exploration of the studio; {nearest(name, self._explorations)}"
            )
        return read_snapshot(self._explorations[name])

    @property
    def names(self) -> list[str]:
        return list(self._paths)

    def paths(self) -> dict[str, str]:
        return {name: str(path) for name, path in self._paths.items()}

    def add(self, name: str, content: bytes) -> str:
        """Store an upload under a name with its hash, and return the name."""
        _check_suffix(name)
        if len(content) > MAX_FILE_BYTES:
            raise AccelError(
                f"{name!r} has {len(content):,} bytes; the studio takes up to {MAX_FILE_BYTES:,}"
            )
        digest = hashlib.sha256(content).hexdigest()[:8]
        shown = "".join(
            c if c.isprintable() and c not in "/\\" else "_" for c in name[-_MAX_NAME_CHARACTERS:]
        )
        stem, suffix = Path(shown).stem, Path(name).suffix.lower()
        unique = f"{stem} {digest}{suffix}"
        if unique not in self._paths:
            path = Path(self._folder.name, f"{digest}{suffix}")
            path.write_bytes(content)
            self._paths[unique] = path
            self._uploads.append(unique)
        if len(self._uploads) > _MAX_UPLOADS:
            self._paths.pop(self._uploads.pop(0))
        return unique


def is_model(name: str) -> bool:
    return Path(name).suffix.lower() in MODEL_SUFFIXES


def _check_suffix(name: str) -> None:
    if Path(name).suffix.lower() not in SUFFIXES:
        raise AccelError(
            f"{name!r} is neither a network nor a program; its name must end in {', '.join(SUFFIXES)}"
        )
