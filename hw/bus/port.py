"""The read half of the bus: one burst granted a cycle, several in flight, beats given to who asked."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import DRAM_ADDRESS_BITS, Config
from accel.core.isa import Unit
from accel.hw.datapath.layouts import BEATS_BITS, INDEX_BITS, UNIT_BITS
from accel.hw.datapath.queue import Queue


def readers_of(config: Config) -> tuple[Unit, ...]:
    """Who reads, the first goes before the others; the store unit does on machines with ``post=1``."""
    store = (Unit.STORE,) if config.post else ()
    return (Unit.COMPUTE, *store, Unit.LOAD, Unit.FETCH)


class RequestLayout(data.StructLayout):
    """A burst that a unit asks for."""

    def __init__(self) -> None:
        super().__init__({"address": DRAM_ADDRESS_BITS, "beats": BEATS_BITS, "index": INDEX_BITS})


class BurstLayout(data.StructLayout):
    """A granted burst."""

    def __init__(self) -> None:
        super().__init__({"unit": UNIT_BITS, "index": INDEX_BITS, "beats": BEATS_BITS})


class ReadPort(wiring.Component):
    """AXI4 read channels for the units that read.

    ``request_*`` may change or go until it is granted; ``grant_*`` says so in the same cycle, in which the
    address enters the AR register. Every beat is taken at once.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._readers = readers_of(config)
        ports: dict[str, Any] = {
            "stop": In(1),
            "arvalid": Out(1),
            "arready": In(1),
            "araddr": Out(DRAM_ADDRESS_BITS),
            "arlen": Out(8),
            "rvalid": In(1),
            "rlast": In(1),
            "busy": Out(1),
            "grant": Out(1),
            "granted": Out(BurstLayout()),
            "last": Out(1),
            "burst": Out(BurstLayout()),
        }
        for unit in self._readers:
            ports[f"request_{unit.label}_valid"] = In(1)
            ports[f"request_{unit.label}"] = In(RequestLayout())
            ports[f"grant_{unit.label}"] = Out(1)
            ports[f"beat_{unit.label}"] = Out(1)
        super().__init__(ports)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        bus = self._config.bus_bytes
        m.submodules.flight = flight = Queue(BurstLayout(), self._config.outstanding)
        free = Signal()
        m.d.comb += free.eq(flight.room & (~self.arvalid | self.arready) & ~self.stop)
        with m.If(self.arready):
            m.d.sync += self.arvalid.eq(0)
        for position, unit in enumerate(self._readers):
            request = getattr(self, f"request_{unit.label}")
            valid = getattr(self, f"request_{unit.label}_valid")
            with m.If(free & valid) if position == 0 else m.Elif(free & valid):
                m.d.comb += [
                    getattr(self, f"grant_{unit.label}").eq(1),
                    self.grant.eq(1),
                    self.granted.unit.eq(unit),
                    self.granted.index.eq(request.index),
                    self.granted.beats.eq(request.beats),
                ]
                m.d.sync += [
                    self.arvalid.eq(1),
                    self.araddr.eq(request.address & ~(bus - 1)),
                    self.arlen.eq(request.beats - 1),
                ]
        m.d.comb += [
            flight.push.eq(self.grant),
            flight.data.eq(self.granted),
            flight.pop.eq(self.last),
            self.busy.eq(flight.valid),
            self.burst.eq(flight.head),
            self.last.eq(self.rvalid & self.rlast),
        ]
        for unit in self._readers:
            m.d.comb += getattr(self, f"beat_{unit.label}").eq(self.rvalid & (flight.head.unit == unit))
        return m
