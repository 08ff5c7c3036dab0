"""Bursts of abandoned runs."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class AbandonedBursts(wiring.Component):
    """Counts the bursts in flight of abandoned runs. AXI answers in order, so their answers, which are
    dropped, come first.

    Of ``count`` bursts in flight, ``answered`` completes the oldest. ``abandon`` abandons all, in a cycle in
    which none begins. ``oldest`` shows that the oldest is abandoned, ``others`` that some are not.
    """

    def __init__(self, outstanding: int) -> None:
        self._outstanding = outstanding
        super().__init__(
            {
                "abandon": In(1),
                "count": In(range(outstanding + 1)),
                "answered": In(1),
                "oldest": Out(1),
                "others": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        left = Signal(range(self._outstanding + 1))
        m.d.comb += [self.oldest.eq(left != 0), self.others.eq(self.count != left)]
        with m.If(self.abandon):
            m.d.sync += left.eq(self.count - self.answered)
        with m.Elif(self.answered & self.oldest):
            m.d.sync += left.eq(left - 1)
        return m
