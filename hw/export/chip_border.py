"""The core with register slices and an AXI-style reset."""

from typing import Any

from amaranth.hdl import ClockDomain, Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from accel.hw.bus.axi import MANAGER, SUBORDINATE, Axi4, AxiLite, pins
from accel.hw.bus.register_slices import slice_channel

SLICE_CYCLES = 2
"""Cycles that slices add to memory latency: one in each direction."""


class Bordered(wiring.Component):
    """A core, or a top around it, with the same ports.

    Args:
        slices: adds a register slice to each channel of both buses.
        aresetn: names the clock ``aclk`` and the reset ``aresetn``, active low and synchronous.
    """

    def __init__(self, core: Any, *, slices: bool = False, aresetn: bool = False) -> None:
        self._core = core
        self._slices = slices
        self._aresetn = aresetn
        self.config = core.config
        clock = {"aclk": In(1), "aresetn": In(1)} if aresetn else {}
        super().__init__({**core.signature.members, **clock})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.core = core = self._core
        if self._aresetn:
            m.domains.sync = domain = ClockDomain("sync", local=True)
            m.d.comb += [domain.clk.eq(self.aclk), domain.rst.eq(~self.aresetn)]
        sliced = []
        if self._slices:
            for prefix, bus in ((MANAGER, Axi4(self.config)), (SUBORDINATE, AxiLite().flip())):
                inside, outside = pins(core, bus, prefix), pins(self, bus, prefix)
                for channel, member in bus.members.items():
                    ours, theirs = getattr(inside, channel), getattr(outside, channel)
                    outward = member.flow is not In
                    source, target = (ours, theirs) if outward else (theirs, ours)
                    slice_channel(m, f"{prefix}{channel}", source, target)
                    sliced += [f"{prefix}{channel}{field}" for field in member.signature.members]
        for name, member in core.signature.members.items():
            if name not in sliced:
                within, without = Value.cast(getattr(core, name)), Value.cast(getattr(self, name))
                m.d.comb += within.eq(without) if member.flow is In else without.eq(within)
        return m
