"""What goes over the serial line between host and board; docs/board.md is its description.

Requests and replies are frames: a header, data, a checksum. ``END`` stands before and behind each, and in it
``END`` and ``ESCAPE`` are written as ``ESCAPE`` and the byte with bit 5 inverted. So whoever has lost track
finds the next frame behind the next ``END``.
"""

import binascii
import struct
from dataclasses import dataclass
from enum import IntEnum

END = 0x7E
ESCAPE = 0x7D
INVERTED = 0x20
CRC_START = 0xFFFF
VERSION = 1
"""Of this protocol; the request ``INFO`` tells it."""
MAX_DATA = 256
"""Bytes of data in a frame."""
REPLY = 0x80
"""The bit of a reply's first byte that a request does not have."""
_REQUEST = struct.Struct("<BBHI")
_REPLY = struct.Struct("<BBB")
_CRC = struct.Struct(">H")
_INFO = struct.Struct("<HHI")
REQUEST_BYTES, REPLY_BYTES, CRC_BYTES, INFO_BYTES = _REQUEST.size, _REPLY.size, _CRC.size, _INFO.size


class Operation(IntEnum):
    """What is asked for; of memory, ``count`` words of the bus from ``address`` on."""

    INFO = 1
    """Reply: protocol's version and bytes of a word of memory (16 bits each), bytes of memory (32 bits)."""
    READ_REGISTER = 2
    """Reply: the register at ``address``, 32 bits."""
    WRITE_REGISTER = 3
    """Data: what is written to the register at ``address``, 32 bits."""
    READ = 4
    """Reply: memory."""
    WRITE = 5
    """Data: memory."""
    SUM = 6
    """Reply: CRC-32 of memory, 32 bits."""
    RESET = 7
    """The core is reset, whatever it does; memory stays."""


class Status(IntEnum):
    """What became of a request."""

    OKAY = 0
    REFUSED = 1
    """The register answers with an error."""
    DAMAGED = 2
    """The checksum is wrong, or the frame too long or too short: nothing was done."""
    UNKNOWN = 3
    """There is no such request, or not with this length or address: nothing was done."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request.

    Attributes:
        operation: what is asked for.
        tag: the reply has the same.
        address: in bytes.
        count: words of memory.
        data: to write.
    """

    operation: int
    tag: int
    address: int = 0
    count: int = 0
    data: bytes = b""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A reply; attributes as of :class:`Request`."""

    operation: int
    tag: int
    status: int
    data: bytes = b""


@dataclass(frozen=True, kw_only=True)
class Info:
    """What a board says of itself.

    Attributes:
        version: of the protocol.
        word_bytes: of a word of memory, which is as wide as the core's bus.
        memory_bytes: of memory, from address 0 on.
    """

    version: int
    word_bytes: int
    memory_bytes: int

    @classmethod
    def decode(cls, data: bytes) -> "Info":
        """From a reply's data.

        Raises:
            ValueError: it has another length.
        """
        if len(data) != INFO_BYTES:
            raise ValueError
        version, word, memory = _INFO.unpack(data)
        return cls(version=version, word_bytes=word, memory_bytes=memory)


def crc(data: bytes) -> int:
    """The checksum of a frame: CRC-16 with polynomial 0x1021 from :data:`CRC_START` on, high byte first."""
    return binascii.crc_hqx(data, CRC_START)


def framed(content: bytes) -> bytes:
    """Content with its checksum, as it goes over the line."""
    escaped = bytearray([END])
    for byte in content + _CRC.pack(crc(content)):
        escaped += bytes([ESCAPE, byte ^ INVERTED]) if byte in (END, ESCAPE) else bytes([byte])
    escaped.append(END)
    return bytes(escaped)


def encode(request: Request) -> bytes:
    """A request as it goes over the line."""
    head = _REQUEST.pack(request.operation, request.tag, request.count, request.address)
    return framed(head + request.data)


class Decoder:
    """Finds the replies in what comes over the line; what is none is passed over."""

    def __init__(self) -> None:
        self._frame = bytearray()
        self._escaped = False
        self.damaged = 0
        """Frames that were none: with a wrong checksum, or too short."""

    def take(self, data: bytes) -> list[Reply]:
        """The replies that some more bytes complete."""
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
