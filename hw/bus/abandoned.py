"""Bursts in flight whose run was given up."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Abandoned(wiring.Component):
    """How many of the bursts in flight, the oldest ones, are of runs that were given up.

    AXI has every burst be answered, and answers come in the bursts' order. So a run that is given up leaves
    only their number behind, and answers are dropped until they are through.

    ``count`` is how many bursts are in flight, ``answered`` ends the oldest; ``abandon`` gives up all of
    them, in a cycle in which none begins. ``oldest``: that one was given up; ``others``: not all were.
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
