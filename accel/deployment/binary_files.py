"""The binary files of a package, and their memory segments."""

import zlib
from collections.abc import Iterator
from hashlib import sha256

from msgspec import Struct

from accel.deployment.deployment_steps import Deployment

CONSTANTS = "constants.bin"
"""Micro-ops, weights and parameters of all streams, each distinct content once."""
ALIGNMENT = 16
"""Alignment of contents in their file, in bytes."""


class Segment(Struct, frozen=True, kw_only=True):
    """Constant content of a range of memory.

    Attributes:
        offset: bytes from the package's base.
    """

    stream: int
    offset: int
    file: int
    file_offset: int
    content: bytes

    @property
    def crc(self) -> int:
        return zlib.crc32(self.content)


class Content(Struct, frozen=True, kw_only=True):
    """Files by name, in the order of their numbers, and segments in the order of memory."""

    files: dict[str, bytes]
    segments: tuple[Segment, ...]


def stream_file(number: int) -> str:
    return f"stream{number}.bin"


def content_of(deployment: Deployment) -> Content:
    """Return the contents of memory before a run."""
    constants = bytearray()
    known: dict[bytes, int] = {}
    segments = list(_segments(deployment, constants, known))
    names = [*map(stream_file, range(len(deployment.streams))), CONSTANTS]
    files = [stream.image.code for stream in deployment.streams]
    files.append(bytes(constants))
    return Content(
        files={name: data for name, data in zip(names, files, strict=True) if data},
        segments=tuple(sorted(segments, key=lambda one: one.offset)),
    )


def _segments(deployment: Deployment, constants: bytearray, known: dict[bytes, int]) -> Iterator[Segment]:
    last = len(deployment.streams)
    for number, stream in enumerate(deployment.streams):
        image = stream.image
        yield Segment(
            stream=number,
            offset=stream.offset + image.code_offset,
            file=number,
            file_offset=0,
            content=image.code,
        )
        for offset, content in image.segments:
            if not content:
                continue
            digest = sha256(content).digest()
            if digest not in known:
                constants.extend(bytes(-len(constants) % ALIGNMENT))
                known[digest] = len(constants)
                constants.extend(content)
            yield Segment(
                stream=number,
                offset=stream.offset + offset,
                file=last,
                file_offset=known[digest],
                content=content,
            )
