"""Zip archives of a manifest and raw members, with limits.

Compressed members could expand to gigabytes, so unpacked sizes are limited. Larger members and those that
hardly shrink are stored uncompressed.
"""

import json
import os
import zipfile
import zlib
from collections.abc import Iterable
from typing import IO, Any

from accel.base.errors import ProgramError

MAGIC = b"PK\x03\x04"
MANIFEST = "program.json"
LARGEST_MANIFEST = 8 << 20
"""Bytes of a manifest. Parsed, it takes up to 25 times more memory."""
LARGEST_CONTENT = 256 << 20
"""Total bytes of other members."""
_END_BYTES = 22
_SAMPLE_BYTES = 1 << 16
"""First bytes of a member, which show whether compression is worth it."""
_MAX_SAMPLE_SHARE = 0.8
"""A member is compressed if its sample shrinks to at most this share. Weights shrink to 0.9, and compressing
them took most of the time to write a network."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_archive(file: IO[bytes], manifest: bytes, members: Iterable[tuple[str, bytes]]) -> None:
    """Write an archive. Equal contents give equal bytes."""
    content = list(members)
    large = sum(len(data) for _, data in content) > LARGEST_CONTENT
    with zipfile.ZipFile(file, "w") as archive:
        _add(archive, MANIFEST, manifest, stored=len(manifest) > LARGEST_MANIFEST)
        for name, data in content:
            _add(archive, name, data, stored=large)


def _add(archive: zipfile.ZipFile, name: str, content: bytes, *, stored: bool) -> None:
    info = zipfile.ZipInfo(name, date_time=_EPOCH)
    info.compress_type = zipfile.ZIP_STORED if stored or not _shrinks(content) else zipfile.ZIP_DEFLATED
    archive.writestr(info, content)


def _shrinks(content: bytes) -> bool:
    sample = content[:_SAMPLE_BYTES]
    is_all = len(sample) == len(content)
    return is_all or len(zlib.compress(sample, 1)) <= _MAX_SAMPLE_SHARE * len(sample)


class Archive:
    """An archive to read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._held = file.seek(0, os.SEEK_END)
        self._left = max(LARGEST_CONTENT, self._held)
        file.seek(max(0, self._held - _END_BYTES))
        if not _is_end(file.read()):
            raise zipfile.BadZipFile("it does not end as it must: it is cut short, or something follows it")
        try:
            self._zip = zipfile.ZipFile(file)
        except Exception:  # of many types
            raise zipfile.BadZipFile("the list of its members cannot be read") from None
        if min((info.header_offset for info in self._zip.infolist()), default=0):
            raise zipfile.BadZipFile("something stands before it")

    def manifest(self) -> Any:
        info, most = self._info(MANIFEST), max(LARGEST_MANIFEST, self._held)
        if info.file_size > most:
            raise ProgramError(f"its {MANIFEST} has {info.file_size} bytes; at most {most} are expected")
        raw = self._unpacked(info)
        try:
            data = json.loads(raw)
        except (ValueError, RecursionError):
            raise zipfile.BadZipFile(f"its {MANIFEST} cannot be read as JSON") from None
        if rb"\ud" in raw.lower():  # half a character cannot be printed or written
            _check_text(data)
        return data

    def member(self, name: str, size: int, most: int) -> bytes:
        most = min(max(size, 0), most)
        found = self._info(name).file_size
        if found > most:
            raise ProgramError(f"its {name} has {found} bytes; at most {most} are expected")
        content = self.content(name)
        if len(content) != size:
            raise ProgramError(f"its {name} has {len(content)} bytes; the manifest says {size}")
        return content

    def content(self, name: str) -> bytes:
        info = self._info(name)
        if info.file_size > self._left:
            raise ProgramError(
                f"it unpacks to more than {max(LARGEST_CONTENT, self._held)} bytes; the file has {self._held}"
            )
        self._left -= info.file_size
        return self._unpacked(info)

    def __contains__(self, name: str) -> bool:
        return name in self._zip.namelist()

    def _info(self, name: str) -> zipfile.ZipInfo:
        try:
            info = self._zip.getinfo(name)
        except KeyError:
            raise ProgramError(f"it has no {name}; it is not a program file") from None
        if info.compress_type not in _METHODS:
            raise ProgramError(f"its {name} is compressed by method {info.compress_type}; deflate is read")
        return info

    def _unpacked(self, info: zipfile.ZipInfo) -> bytes:
        try:
            with self._zip.open(info) as file:
                return file.read(info.file_size)  # limits compressed data, too
        except (OSError, zipfile.BadZipFile):
            raise
        except Exception:  # zipfile and zlib raise many types
            raise zipfile.BadZipFile(f"its {info.filename} cannot be unpacked") from None


def is_archive(file: IO[bytes]) -> bool:
    """Whether an archive begins at the file's position."""
    return file.read(len(MAGIC)) == MAGIC


def damage(error: Exception) -> str:
    reason = isinstance(error, zipfile.BadZipFile | ValueError) and str(error)
    return reason or "its parts do not fit together"


def _is_end(record: bytes) -> bool:
    """zipfile would accept more bytes as comment."""
    return len(record) == _END_BYTES and record[:4] == b"PK\x05\x06" and record[-2:] == b"\0\0"


def _check_text(data: Any) -> None:
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise ProgramError(f"its manifest holds {half!r}, half a character; text must be whole") from None
