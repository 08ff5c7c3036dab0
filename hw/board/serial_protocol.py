"""The protocol between host and board, described in docs/how-to/put-it-on-an-fpga.md.

``END`` never occurs inside a frame, so a receiver that lost track finds the next one.
"""

import binascii
import struct
from enum import IntEnum

from msgspec import Struct

END = 0x7E
ESCAPE = 0x7D
INVERTED = 0x20
CRC_START = 0xFFFF
VERSION = 1
MAX_DATA = 256
REPLY = 0x80
_REQUEST = struct.Struct("<BBHI")
_REPLY = struct.Struct("<BBB")
_CRC = struct.Struct(">H")
_INFO = struct.Struct("<HHI")
REQUEST_BYTES, REPLY_BYTES, CRC_BYTES, INFO_BYTES = _REQUEST.size, _REPLY.size, _CRC.size, _INFO.size


class Operation(IntEnum):
    """The host's requests."""

    INFO = 1
    READ_REGISTER = 2
    WRITE_REGISTER = 3
    READ = 4
    WRITE = 5
    SUM = 6
    RESET = 7


class Status(IntEnum):
    OKAY = 0
    REFUSED = 1
    DAMAGED = 2
    UNKNOWN = 3


class Request(Struct, frozen=True, kw_only=True):
    operation: int
    tag: int
    address: int = 0
    count: int = 0
    data: bytes = b""


class Reply(Struct, frozen=True, kw_only=True):
    operation: int
    tag: int
    status: int
    data: bytes = b""


class Info(Struct, frozen=True, kw_only=True):
    version: int
    word_bytes: int
    memory_bytes: int

    @classmethod
    def decode(cls, data: bytes) -> "Info":
        if len(data) != INFO_BYTES:
            raise ValueError
        version, word, memory = _INFO.unpack(data)
        return cls(version=version, word_bytes=word, memory_bytes=memory)


def crc(data: bytes) -> int:
    return binascii.crc_hqx(data, CRC_START)


def framed(content: bytes) -> bytes:
    escaped = bytearray([END])
    for byte in content + _CRC.pack(crc(content)):
        escaped += bytes([ESCAPE, byte ^ INVERTED]) if byte in (END, ESCAPE) else bytes([byte])
    escaped.append(END)
    return bytes(escaped)


def encode(request: Request) -> bytes:
    """Return the frame of a request."""
    head = _REQUEST.pack(request.operation, request.tag, request.count, request.address)
    return framed(head + request.data)


class Decoder:
    """Extracts replies from received bytes, and skips all else."""

    def __init__(self) -> None:
        self._frame = bytearray()
        self._escaped = False
        self.damaged = 0
        """Frames with a wrong checksum or too few bytes."""

    def take(self, data: bytes) -> list[Reply]:
        replies = []
        for byte in data:
            if byte == END:
                if self._frame:
                    replies += self._finish()
                self._frame.clear()
                self._escaped = False
            elif byte == ESCAPE:
                self._escaped = True
            else:
                self._frame.append(byte ^ INVERTED if self._escaped else byte)
                self._escaped = False
        return replies

    def _finish(self) -> list[Reply]:
        content = bytes(self._frame[:-CRC_BYTES])
        if len(content) < REPLY_BYTES or self._frame[-CRC_BYTES:] != _CRC.pack(crc(content)):
            self.damaged += 1
            return []
        operation, tag, status = _REPLY.unpack_from(content)
        if not operation & REPLY:
            self.damaged += 1
            return []
        data = content[REPLY_BYTES:]
        return [Reply(operation=operation & ~REPLY, tag=tag, status=status, data=data)]
