"""The host's end of a serial line, in Amaranth's simulator."""

from collections.abc import Callable
from typing import Any

from accel.hw.board.serial_protocol import END, Decoder, Reply, Request, encode


class Line:
    """Sends bytes to a design's ``rx`` and receives them from its ``tx``. A bit takes ``cycles``."""

    def __init__(self, context: Any, rx: Any, tx: Any, cycles: int) -> None:
        self._context, self._rx, self._tx, self._cycles = context, rx, tx, cycles
        self.received = bytearray()
        self._sampled: list[int] = []
        self.each: Callable[[], None] = lambda: None
        """Called in every cycle."""

    async def tick(self) -> None:
        """Advance by one cycle, in which the design may send."""
        self.each()
        self._sampled.append(self._context.get(self._tx))
        middle = self._cycles // 2
        if self._sampled[0]:
            self._sampled.clear()
        elif len(self._sampled) == 10 * self._cycles:
            bits = self._sampled[middle :: self._cycles]
            assert bits[9] == 1, "a byte has no stop bit"
            self.received.append(sum(bit << place for place, bit in enumerate(bits[1:9])))
            self._sampled.clear()
        await self._context.tick()

    async def idle(self, cycles: int) -> None:
        for _ in range(cycles):
            await self.tick()

    async def send(self, data: bytes) -> None:
        """Send these bytes without a gap."""
        for byte in data:
            for bit in (0, *(byte >> place & 1 for place in range(8)), 1):
                self._context.set(self._rx, bit)
                await self.idle(self._cycles)

    async def reply(self, patience: int = 4000) -> Reply | None:
        """Return the next reply, or None after a timeout in cycles."""
        decoder = Decoder()
        for _ in range(patience):
            if self.received.count(END) >= 2:
                replies = decoder.take(bytes(self.received))
                if replies:
                    self.received.clear()
                    return replies[0]
            await self.tick()
        return None

    async def ask(self, request: Request) -> Reply:
        await self.send(encode(request))
        reply = await self.reply()
        assert reply is not None
        return reply
