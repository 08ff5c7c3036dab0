"""A UART: eight data bits, lowest first, no parity, one stop bit."""

from typing import Any

from amaranth.hdl import C, Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

SHORTEST_BIT = 2
"""Shortest bit, in cycles."""
_BITS = 10
"""Bits of a byte with start and stop bit."""


class Receiver(wiring.Component):
    """Receives bytes. ``valid`` is set for one cycle, in which ``data`` has arrived.

    A start bit that has vanished at its middle is ignored, a byte without stop bit dropped.
    """

    def __init__(self, cycles: int) -> None:
        self._cycles = cycles
        super().__init__({"line": In(1, init=1), "data": Out(8), "valid": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        line = Signal(init=1)
        m.submodules.synchronizer = FFSynchronizer(self.line, line, init=1)
        rest = Signal(range(self._cycles))
        """Cycles until the line is sampled."""
        left = Signal(range(_BITS + 1))
        """Bits left to sample, or 0 on an idle line."""
        shifted = Signal(_BITS)
        m.d.comb += self.data.eq(shifted[1:-1])
        m.d.sync += self.valid.eq(0)
        with m.If(left == 0), m.If(~line):
            # the start bit is seen a cycle late
            m.d.sync += [left.eq(_BITS), rest.eq(max(self._cycles // 2 - 1, 0))]
        with m.Elif(rest != 0):
            m.d.sync += rest.eq(rest - 1)
        with m.Else():
            m.d.sync += [shifted.eq(Cat(shifted[1:], line)), left.eq(left - 1), rest.eq(self._cycles - 1)]
            with m.If((left == _BITS) & line):
                m.d.sync += left.eq(0)
            with m.If(left == 1):
                m.d.sync += self.valid.eq(line)
        return m


class Transmitter(wiring.Component):
    """Sends bytes, taken with ``valid`` and ``ready``."""

    def __init__(self, cycles: int) -> None:
        self._cycles = cycles
        super().__init__({"line": Out(1, init=1), "data": In(8), "valid": In(1), "ready": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        rest = Signal(range(self._cycles))
        left = Signal(range(_BITS + 1))
        shifted = Signal(_BITS, init=(1 << _BITS) - 1)
        m.d.comb += [self.ready.eq(left == 0), self.line.eq(shifted[0])]
        with m.If(left == 0), m.If(self.valid):
            m.d.sync += [
                shifted.eq(Cat(C(0, 1), self.data, C(1, 1))),
                left.eq(_BITS),
                rest.eq(self._cycles - 1),
            ]
        with m.Elif(rest != 0):
            m.d.sync += rest.eq(rest - 1)
        with m.Else():
            m.d.sync += [shifted.eq(Cat(shifted[1:], C(1, 1))), left.eq(left - 1), rest.eq(self._cycles - 1)]
        return m
