"""A cache of the compiler's results on disk.

An entry's key covers everything that its result depends on. For compilations that includes the package's
source files (:func:`cache_key`). Several processes may share a folder: an entry is complete or absent, and a
damaged one counts as absent.
"""

import hashlib
import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from accel.base.version import __version__

VARIABLE = "ACCEL_CACHE"
"""The environment variable with the folder, or :data:`OFF`."""
OFF = "off"
MAX_BYTES = 256 << 20
"""Of all entries. The least recently used ones are deleted first."""
_SHARE_AFTER_PRUNING = 0.75
_MAX_ENTRY_SHARE = 0.25
"""Larger entries would displace too many others."""
_WRITES_PER_PRUNING = 64
"""A process looks at the folder's size this often."""
_TEMPORARY = ".tmp-"
_ABANDONED_SECONDS = 3600
"""Older temporary files belong to killed processes."""
PLAN_KIND, NETWORK_KIND, MODEL_KIND, PLACEMENT_KIND = "plans", "network", "model", "placement"
"""Plans of a layer, a compiled network, output about a model's file, and a placed and routed core."""
_LIBRARIES = ("numpy", "onnx", "onnxruntime")
_DIGEST_BYTES = hashlib.sha256().digest_size


@dataclass(frozen=True, kw_only=True)
class CacheEntry:
    """A file of the cache, ``used`` (read or written) at this time in seconds since the epoch."""

    kind: str
    path: Path
    nbytes: int
    used: float


class ResultCache:
    """Entries in one folder, which the first write creates."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self._writes = 0

    def read(self, kind: str, key: str) -> bytes | None:
        path = self._path(kind, key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        digest, content = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if hashlib.sha256(content).digest() != digest:
            _delete(path)
            return None
        with suppress(OSError):
            os.utime(path)
        return content

    def write(self, kind: str, key: str, content: bytes) -> None:
        """Write an entry, if the folder can be written."""
        if len(content) > self.max_bytes * _MAX_ENTRY_SHARE:
            return
        temporary = self.folder / f"{_TEMPORARY}{secrets.token_hex(8)}"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.write_bytes(hashlib.sha256(content).digest() + content)
            os.replace(temporary, self._path(kind, key))
        except OSError:
            _delete(temporary)
            return
        if self._writes % _WRITES_PER_PRUNING == 0:
            self._prune()
        self._writes += 1

    def entries(self) -> list[CacheEntry]:
        """Return all entries, the least recently used first."""
        return sorted(self._files(temporary=False), key=lambda entry: entry.used)

    def clear(self) -> int:
        deleted = self.entries()
        for entry in (*deleted, *self._files(temporary=True)):
            _delete(entry.path)
        return len(deleted)

    def _path(self, kind: str, key: str) -> Path:
        return self.folder / f"{kind}-{key}"

    def _files(self, *, temporary: bool) -> Iterator[CacheEntry]:
        try:
            names = os.listdir(self.folder)
        except OSError:
            return
        for name in names:
            path = self.folder / name
            if name.startswith(_TEMPORARY) is temporary:
                with suppress(OSError):  # another process deleted it
                    status = path.stat()
                    yield CacheEntry(
                        kind=name.partition("-")[0], path=path, nbytes=status.st_size, used=status.st_mtime
                    )

    def _prune(self) -> None:
        for entry in self._files(temporary=True):
            if time.time() - entry.used > _ABANDONED_SECONDS:
                _delete(entry.path)
        entries = self.entries()
        total = sum(entry.nbytes for entry in entries)
        if total <= self.max_bytes:
            return
        for entry in entries:
            if total <= self.max_bytes * _SHARE_AFTER_PRUNING:
                break
            _delete(entry.path)
            total -= entry.nbytes


def _delete(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def cache_folder() -> Path:
    """Return ``$ACCEL_CACHE``, or ``accel/results`` in ``$XDG_CACHE_HOME`` or ``~/.cache``."""
    given = os.environ.get(VARIABLE, "")
    if given and given != OFF:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "accel" / "results"


def result_cache() -> ResultCache | None:
    """Return None if the cache is off."""
    return None if os.environ.get(VARIABLE) == OFF else _opened(cache_folder())


@cache
def _opened(folder: Path) -> ResultCache:
    return ResultCache(folder)


def cache_key(*parts: str | bytes) -> str:
    """``parts`` are all inputs of a result, in a fixed order. The key also covers this installation."""
    digest = hashlib.sha256(_source_digest())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


@cache
def _source_digest() -> bytes:
    """Cover the version, the source files' names, sizes and times, and the libraries."""
    digest = hashlib.sha256(f"{__version__} {sys.version}".encode())
    for library in _LIBRARIES:
        digest.update(_installed(library).encode())
    for name, size, changed in sorted(_source_files(Path(__file__).parents[1])):
        digest.update(f"{name} {size} {changed}\n".encode())
    return digest.digest()


def _installed(library: str) -> str:
    """Return a library's folder, version and time of change without importing it, or empty."""
    found = find_spec(library)
    if found is None or found.origin is None:
        return ""
    package = Path(found.origin).parent
    versions = sorted(name for name in os.listdir(package.parent) if name.startswith(f"{library}-"))
    return f"{package} {versions} {os.stat(found.origin).st_mtime_ns}"


def _source_files(folder: Path) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as found:
        for entry in found:
            if entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _source_files(Path(entry.path))
