"""Counters of memory accesses, for simulation only."""

from typing import Any

from amaranth.hdl import Array, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.access_names import access_names
from accel.core.config import Config

COUNT_BITS = 48
_INCREMENT_BITS = 16


def select_bits(config: Config) -> int:
    return (len(access_names(config)) - 1).bit_length()


class AccessProbes:
    """The accesses in a cycle, by ``access_names``. A synthesized core has none."""

    def __init__(self, config: Config) -> None:
        self.amounts = {name: Signal(_INCREMENT_BITS, name=f"access_{name}") for name in access_names(config)}

    def drive(self, m: Module, **amounts: Value) -> None:
        m.d.comb += [self.amounts[name].eq(amount) for name, amount in amounts.items()]


class AccessCounters(wiring.Component):
    """Sums up a run's accesses. ``count`` is counter ``select``."""

    def __init__(self, probes: AccessProbes, config: Config) -> None:
        self._probes = probes
        super().__init__(
            {"clear": In(1), "counted": In(1), "select": In(select_bits(config)), "count": Out(COUNT_BITS)}
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        counts = []
        for name, amount in self._probes.amounts.items():
            count = Signal(COUNT_BITS, name=f"count_{name}")
            with m.If(self.clear):
                m.d.sync += count.eq(0)
            with m.Elif(self.counted & (amount != 0)):
                m.d.sync += count.eq(count + amount)
            counts.append(count)
        m.d.comb += self.count.eq(Array(counts)[self.select])
        return m
