"""Requests to a board, repeated if no reply comes."""

import time
import zlib
from random import randrange

from accel.base.errors import EngineError, HardwareError
from accel.hw.board.serial_line import Line
from accel.hw.board.serial_protocol import (
    MAX_DATA,
    VERSION,
    Decoder,
    Info,
    Operation,
    Reply,
    Request,
    Status,
    encode,
)

ATTEMPTS = 4
_LONGEST = 10.0
"""Seconds after which an attempt ends, even if bytes still arrive."""
_WORD = 4


class Link:
    """A board on a line, which the caller closes."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._tag = randrange(256)
        try:
            info = Info.decode(self._request(Operation.INFO))
        except ValueError:
            raise HardwareError(f"{line.name} answers as no board does") from None
        if info.version != VERSION:
            raise HardwareError(
                f"{line.name} speaks version {info.version} of the protocol; this accel speaks {VERSION}"
            )
        self.info = info

    def read_register(self, address: int) -> int | None:
        reply = self._ask(Operation.READ_REGISTER, address)
        if reply.status == Status.REFUSED:
            return None
        return int.from_bytes(self._check_reply(reply, _WORD).data, "little")

    def write_register(self, address: int, word: int) -> bool:
        reply = self._ask(Operation.WRITE_REGISTER, address, data=word.to_bytes(_WORD, "little"))
        if reply.status == Status.REFUSED:
            return False
        self._check_reply(reply, 0)
        return True

    def read(self, address: int, size: int) -> bytes:
        """Read whole words."""
        parts = []
        for start in range(address, address + size, MAX_DATA):
            length = min(MAX_DATA, address + size - start)
            count = length // self.info.word_bytes
            parts.append(self._request(Operation.READ, start, count, expected=length))
        return b"".join(parts)

    def write(self, address: int, data: bytes) -> None:
        """Write whole words."""
        for start in range(0, len(data), MAX_DATA):
            part = data[start : start + MAX_DATA]
            count = len(part) // self.info.word_bytes
            self._request(Operation.WRITE, address + start, count, data=part, expected=0)

    def holds(self, address: int, data: bytes) -> bool:
        """Compare memory with data, by its checksum."""
        count = len(data) // self.info.word_bytes
        found = self._request(Operation.SUM, address, count, expected=_WORD)
        return int.from_bytes(found, "little") == zlib.crc32(data)

    def reset(self) -> None:
        self._request(Operation.RESET, expected=0)

    def _request(
        self,
        operation: Operation,
        address: int = 0,
        count: int = 0,
        data: bytes = b"",
        expected: int | None = None,
    ) -> bytes:
        reply = self._ask(operation, address, count, data)
        return self._check_reply(reply, len(reply.data) if expected is None else expected).data

    def _check_reply(self, reply: Reply, expected: int) -> Reply:
        if reply.status != Status.OKAY or len(reply.data) != expected:
            raise HardwareError(
                f"{self._line.name} answers {Operation(reply.operation).name} with status {reply.status} "
                f"and {len(reply.data)} bytes; {Status.OKAY.value} and {expected} would be right"
            )
        return reply

    def _ask(self, operation: Operation, address: int = 0, count: int = 0, data: bytes = b"") -> Reply:
        self._tag = (self._tag + 1) % 256
        request = Request(operation=operation, tag=self._tag, address=address, count=count, data=data)
        heard = 0
        for _ in range(ATTEMPTS):
            decoder = Decoder()
            self._line.send(encode(request))
            end = time.monotonic() + _LONGEST
            again = False
            while not again and time.monotonic() < end:
                received = self._line.receive()
                heard += len(received)
                if not received:
                    break
                for reply in decoder.take(received):
                    if reply.status == Status.DAMAGED:
                        again = True
                    elif (reply.operation, reply.tag) == (operation, request.tag):
                        return reply
        if not heard:
            raise EngineError(
                f"{self._line.name} does not answer; is the board on, with accel's bitstream, at this rate?"
            )
        raise HardwareError(
            f"{self._line.name} sends {heard} bytes but no answer; its rate, or what is on it, is another"
        )
