"""The bus timeout."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.registers import REGISTERS


class BusTimeout(wiring.Component):
    """Sets ``late`` in the cycle after ``limit`` consecutive cycles in which the bus ``owes`` something and
    nothing ``moved``, and counts again. A limit of 0 means no timeout."""

    def __init__(self) -> None:
        bits = REGISTERS["bus_timeout"].width
        super().__init__({"limit": In(bits), "owes": In(1), "moved": In(1), "late": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        quiet = Signal()
        left = Signal.like(self.limit)
        m.d.comb += quiet.eq(self.owes & ~self.moved & ~self.late)
        m.d.sync += [
            left.eq(Mux(quiet, left - (left != 0), self.limit)),
            self.late.eq(quiet & (left == 1)),
        ]
        return m
