"""Block RAM with an AXI4 port and a port for the bridge."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import DRAM_ADDRESS_BITS, Config
from accel.hw.bus.axi import MANAGER, OKAY, SLVERR, Axi4, ports
from accel.hw.datapath.queue import Queue
from accel.hw.datapath.word_layouts import log2

READ_LATENCY, WRITE_LATENCY = 4, 2
"""Latencies of ``AxiMemory`` for whole words."""
FIXED, INCREMENTING, WRAPPING = range(3)
"""Values of AxBURST."""


class Service(wiring.Signature):
    """A port to existing words of memory. All signals stay constant from ``valid`` until ``ready``. Read data
    arrives in the next cycle, with ``done``."""

    def __init__(self, bits: int, depth: int) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "ready": In(1),
                "write": Out(1),
                "index": Out(range(depth)),
                "data": Out(bits),
                "done": In(1),
                "word": In(bits),
            }
        )


class BurstWalk(wiring.Component):
    """Walks through the words of bursts.

    ``begin`` takes a burst, also while another ends. From the next cycle until ``step`` coincides with
    ``last``, ``active`` is set, ``index`` is the current beat's word if it is ``inside`` the memory, and
    ``its`` is the burst's ``identity``.
    """

    def __init__(self, word_bytes: int, depth: int) -> None:
        self._word_bytes = word_bytes
        self._depth = depth
        super().__init__(
            {
                "begin": In(1),
                "address": In(DRAM_ADDRESS_BITS),
                "length": In(8),
                "size": In(3),
                "burst": In(2),
                "identity": In(1),
                "step": In(1),
                "active": Out(1),
                "last": Out(1),
                "inside": Out(1),
                "index": Out(range(depth)),
                "its": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        address, onward = Signal(DRAM_ADDRESS_BITS), Signal(DRAM_ADDRESS_BITS)
        inside_beat, inside_wrap = Signal(DRAM_ADDRESS_BITS), Signal(DRAM_ADDRESS_BITS)
        """Masks: address bits within a beat, and those that change in a wrapping burst."""
        wraps, stays = Signal(), Signal()
        rest = Signal(8)
        word = address >> log2(self._word_bytes)
        m.d.comb += [
            self.last.eq(rest == 0),
            self.index.eq(word),
            self.inside.eq(word < self._depth),
            onward.eq((address | inside_beat) + 1),
        ]
        with m.If(self.step):
            m.d.sync += rest.eq(rest - 1)
            with m.If(wraps):
                m.d.sync += address.eq((address & ~inside_wrap) | (onward & inside_wrap))
            with m.Elif(~stays):
                m.d.sync += address.eq(onward)
            with m.If(self.last):
                m.d.sync += self.active.eq(0)
        with m.If(self.begin):
            m.d.sync += [
                self.active.eq(1),
                self.its.eq(self.identity),
                address.eq(self.address),
                rest.eq(self.length),
                inside_beat.eq((1 << self.size) - 1),
                inside_wrap.eq(((self.length + 1) << self.size) - 1),
                wraps.eq(self.burst == WRAPPING),
                stays.eq(self.burst == FIXED),
            ]
        return m


class AxiMemory(wiring.Component):
    """An AXI4 subordinate with bytes from address 0 on, little-endian.

    It supports all bursts, one at a time in each direction, with one beat per cycle, and queues up to
    ``outstanding``. A read's first beat comes three cycles after its address. Beats beyond the memory are
    answered with SLVERR and change nothing.

    ``service`` reads and writes words while no burst needs the same direction. ``size`` is in bytes, a
    multiple of the bus width.
    """

    def __init__(self, config: Config, size: int) -> None:
        self._bytes = config.bus_bytes
        self._depth = size // config.bus_bytes
        self._outstanding = config.outstanding
        members: dict[str, Any] = {"service": In(Service(config.bus_bits, self._depth))}
        super().__init__(members | ports(Axi4(config).flip(), MANAGER))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.words = words = memory.Memory(shape=8 * self._bytes, depth=self._depth, init=[])
        m.submodules.reads = reads = BurstWalk(self._bytes, self._depth)
        m.submodules.writes = writes = BurstWalk(self._bytes, self._depth)
        for channel, walk in (("ar", reads), ("aw", writes)):
            self._queue(m, channel, walk)
        read_free = self._read(m, reads, words.read_port())
        write_free = self._write(m, writes, words.write_port(granularity=8))
        m.d.comb += self.service.ready.eq(Mux(self.service.write, write_free, read_free))
        return m

    def _queue(self, m: Module, channel: str, walk: BurstWalk) -> None:
        names = {"address": "addr", "length": "len", "size": "size", "burst": "burst", "identity": "id"}
        asked = {name: getattr(self, f"m_axi_{channel}{short}") for name, short in names.items()}
        layout = data.StructLayout({name: len(signal) for name, signal in asked.items()})
        m.submodules[f"{channel}_queue"] = queue = Queue(layout, self._outstanding)
        valid, ready = (getattr(self, f"m_axi_{channel}{name}") for name in ("valid", "ready"))
        come = valid & ready
        m.d.comb += [
            ready.eq(queue.room),
            walk.begin.eq((queue.valid | come) & (~walk.active | (walk.step & walk.last))),
            queue.push.eq(come & ~(walk.begin & ~queue.valid)),
            queue.pop.eq(walk.begin & queue.valid),
        ]
        for name, signal in asked.items():
            m.d.comb += [
                getattr(queue.data, name).eq(signal),
                getattr(walk, name).eq(Mux(queue.valid, getattr(queue.head, name), signal)),
            ]

    def _read(self, m: Module, walk: BurstWalk, port: Any) -> Any:
        """Read in two stages: memory and bus. Return whether the service port may read."""
        there, last, okay = Signal(), Signal(), Signal()
        """A word has been read, with its RLAST and response."""
        its = Signal.like(walk.its)
        onward, room = Signal(), Signal()
        served = Signal()
        m.d.comb += [
            onward.eq(~self.m_axi_rvalid | self.m_axi_rready),
            room.eq(~there | onward),
            walk.step.eq(walk.active & room),
            served.eq(self.service.valid & ~self.service.write & self.service.ready),
            port.en.eq(walk.step | served),
            port.addr.eq(Mux(walk.step, walk.index, self.service.index)),
            self.service.word.eq(port.data),
        ]
        m.d.sync += self.service.done.eq(served)
        with m.If(room):
            m.d.sync += [there.eq(walk.step), last.eq(walk.last), okay.eq(walk.inside), its.eq(walk.its)]
        with m.If(onward):
            m.d.sync += [
                self.m_axi_rvalid.eq(there),
                self.m_axi_rdata.eq(port.data),
                self.m_axi_rlast.eq(last),
                self.m_axi_rresp.eq(Mux(okay, OKAY, SLVERR)),
                self.m_axi_rid.eq(its),
            ]
        return room & ~walk.step

    def _write(self, m: Module, walk: BurstWalk, port: Any) -> Any:
        """A register holds a beat that precedes its address. Return whether the service port may write."""
        held, beat, strobes = Signal(), Signal.like(self.m_axi_wdata), Signal.like(self.m_axi_wstrb)
        bad = Signal()
        m.d.comb += [
            self.m_axi_wready.eq(~held | walk.step),
            walk.step.eq(held & walk.active & ~(walk.last & self.m_axi_bvalid & ~self.m_axi_bready)),
        ]
        with m.If(self.m_axi_wready):
            m.d.sync += [held.eq(self.m_axi_wvalid), beat.eq(self.m_axi_wdata), strobes.eq(self.m_axi_wstrb)]
        with m.If(self.m_axi_bready):
            m.d.sync += self.m_axi_bvalid.eq(0)
        with m.If(walk.step):
            m.d.comb += [
                port.en.eq(Mux(walk.inside, strobes, 0)),
                port.addr.eq(walk.index),
                port.data.eq(beat),
            ]
            m.d.sync += bad.eq(bad | ~walk.inside)
            with m.If(walk.last):
                m.d.sync += [
                    self.m_axi_bvalid.eq(1),
                    self.m_axi_bid.eq(walk.its),
                    self.m_axi_bresp.eq(Mux(bad | ~walk.inside, SLVERR, OKAY)),
                ]
        with m.Elif(self.service.valid & self.service.write):
            m.d.comb += [
                port.en.eq((1 << self._bytes) - 1),
                port.addr.eq(self.service.index),
                port.data.eq(self.service.data),
            ]
        with m.If(walk.begin):
            m.d.sync += bad.eq(0)
        return ~walk.step
