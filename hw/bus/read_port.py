"""The read half of the bus."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import DRAM_ADDRESS_BITS, Config
from accel.core.isa import Unit
from accel.hw.bus.abandoned_bursts import AbandonedBursts
from accel.hw.bus.axi import Axi4Read, every_burst, pins
from accel.hw.bus.axi import ports as axi_ports
from accel.hw.datapath.queue import Queue
from accel.hw.datapath.unit_ports import port_of
from accel.hw.datapath.word_layouts import BEATS_BITS, INDEX_BITS, UNIT_BITS


def readers_of(config: Config) -> tuple[Unit, ...]:
    """Return the reading units by priority. The store unit reads only with ``post=1``."""
    store = (Unit.STORE,) if config.post else ()
    return (Unit.COMPUTE, *store, Unit.LOAD, Unit.FETCH)


class RequestLayout(data.StructLayout):
    def __init__(self) -> None:
        super().__init__({"address": DRAM_ADDRESS_BITS, "beats": BEATS_BITS, "index": INDEX_BITS})


class ReadChannel(wiring.Signature):
    """A reader's interface to the read port.

    ``valid`` requests the burst ``request``. Both may change until ``granted``, in the cycle in which the
    port accepts the burst. Beats arrive later, in the order of grants: the reader must take ``beat_data`` in
    each cycle with ``beat_valid``.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "request": Out(RequestLayout()),
                "granted": In(1),
                "beat_valid": In(1),
                "beat_data": In(config.bus_bits),
            }
        )


class BurstLayout(data.StructLayout):
    def __init__(self) -> None:
        super().__init__({"unit": UNIT_BITS, "index": INDEX_BITS, "beats": BEATS_BITS})


class ReadPort(wiring.Component):
    """The AXI4 read channels, with a :class:`ReadChannel` under each reading unit's name.

    Unless ``stop`` is set, one burst is granted per cycle. Its address then enters the AR register. Every
    beat is taken at once. RLAST ends a burst. ``bad`` shows an error response, or RLAST in the wrong beat.
    Surplus beats are dropped. ``stray`` shows a beat without a burst.

    ``abandon`` abandons the bursts in flight. Their beats are dropped, and ``stale`` is set until all have
    come. ``busy`` shows other bursts in flight.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._readers = readers_of(config)
        ports: dict[str, Any] = {
            "stop": In(1),
            "abandon": In(1),
            **axi_ports(Axi4Read(config)),
            "busy": Out(1),
            "stale": Out(1),
            "stray": Out(1),
            "grant": Out(1),
            "granted": Out(BurstLayout()),
            "last": Out(1),
            "bad": Out(1),
            "burst": Out(BurstLayout()),
            **{unit.label: In(ReadChannel(config)) for unit in self._readers},
        }
        super().__init__(ports)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        bus = self._config.bus_bytes
        m.submodules.flight = flight = Queue(BurstLayout(), self._config.outstanding)
        free = Signal()
        m.d.comb += free.eq(flight.room & (~self.arvalid | self.arready) & ~self.stop)
        m.d.comb += [self.rready.eq(1), *every_burst(pins(self, Axi4Read(self._config)).ar, self._config)]
        with m.If(self.arready):
            m.d.sync += self.arvalid.eq(0)
        for position, unit in enumerate(self._readers):
            channel = port_of(self, unit)
            request, valid = channel.request, channel.valid
            with m.If(free & valid) if position == 0 else m.Elif(free & valid):
                m.d.comb += [
                    channel.granted.eq(1),
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

        # Beats of the oldest burst that have arrived, and whether this is the last.
        come = Signal(BEATS_BITS)
        surplus = Signal()
        due, ends, own = Signal(), Signal(), Signal()
        m.submodules.abandoned = abandoned = AbandonedBursts(self._config.outstanding)
        m.d.comb += [
            due.eq(come + 1 == flight.head.beats),
            ends.eq(self.rvalid & self.rlast & flight.valid),
            flight.push.eq(self.grant),
            flight.data.eq(self.granted),
            flight.pop.eq(ends),
            abandoned.abandon.eq(self.abandon),
            abandoned.count.eq(flight.count),
            abandoned.answered.eq(ends),
            self.busy.eq(abandoned.others),
            self.stale.eq(abandoned.oldest),
            self.stray.eq(self.rvalid & ~flight.valid),
            self.burst.eq(flight.head),
            self.last.eq(ends & ~self.stale),
            own.eq(self.rvalid & flight.valid & ~self.stale),
            self.bad.eq(own & (self.rresp[1] | (self.rlast != due))),
        ]
        with m.If(ends):
            m.d.sync += [come.eq(0), surplus.eq(0)]
        with m.Elif(self.rvalid & flight.valid & ~surplus):
            m.d.sync += [come.eq(come + 1), surplus.eq(due)]
        for unit in self._readers:
            channel, its = port_of(self, unit), flight.head.unit == unit
            m.d.comb += [channel.beat_valid.eq(own & ~surplus & its), channel.beat_data.eq(self.rdata)]
        return m
