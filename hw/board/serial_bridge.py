"""The bridge between a serial line, registers and memory."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.wiring import In, Out
from msgspec import Struct

from accel.core.config import Config
from accel.core.registers import ADDRESS_BITS, WORD_BYTES
from accel.hw.board.block_ram_memory import Service
from accel.hw.board.serial_frames import FrameReceiver, FrameSender
from accel.hw.board.serial_protocol import (
    CRC_BYTES,
    INFO_BYTES,
    MAX_DATA,
    REPLY,
    REPLY_BYTES,
    REQUEST_BYTES,
    VERSION,
    Operation,
    Status,
)
from accel.hw.bus.axi import SUBORDINATE, AxiLite, ports
from accel.hw.datapath.word_layouts import log2

RESET_CYCLES = 8


class _Work(Struct, frozen=True):
    head: Any
    status: Signal
    word: Signal
    """Reply data, lowest byte first."""
    word_bytes: Signal
    """Its remaining bytes."""
    words: Signal
    """Remaining memory words."""
    index: Signal
    """Next memory word."""
    place: Signal
    """Next buffer word."""
    total: Any


class Bridge(wiring.Component):
    """Executes requests of ``serial_protocol``, one at a time.

    ``s_axi_*`` connects to the core's registers, ``service`` to ``AxiMemory``. A reset request sets
    ``core_reset`` for :data:`RESET_CYCLES` cycles. A register write with the previous one's tag is answered
    but not repeated. Arguments are those of ``BoardTop``.
    """

    def __init__(self, config: Config, size: int, cycles: int) -> None:
        self._config = config
        self._size = size
        self._cycles = cycles
        members: dict[str, Any] = {
            "rx": In(1, init=1),
            "tx": Out(1, init=1),
            "core_reset": Out(1),
            "service": Out(Service(config.bus_bits, size // config.bus_bytes)),
        }
        super().__init__(members | ports(AxiLite(), SUBORDINATE))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        bus = self._config.bus_bytes
        m.submodules.receiver = receiver = FrameReceiver(bus, self._cycles)
        m.submodules.sender = sender = FrameSender(self._cycles)
        m.submodules.buffer = buffer = memory.Memory(shape=8 * bus, depth=MAX_DATA // bus, init=[])
        m.submodules.sum = total = CRC32_ISO_HDLC(data_width=8).create()
        m.d.comb += [receiver.line.eq(self.rx), self.tx.eq(sender.line)]
        filled, kept = buffer.write_port(granularity=8), buffer.read_port()
        word = Signal(max(8 * bus, 8 * INFO_BYTES))
        work = _Work(
            head=receiver.head,
            status=Signal(Status),
            word=word,
            word_bytes=Signal(range(len(word) // 8 + 1)),
            words=Signal(16),
            index=Signal.like(self.service.index),
            place=Signal(range(MAX_DATA // bus)),
            total=total,
        )
        m.d.comb += [
            filled.en.eq(receiver.enable),
            filled.addr.eq(receiver.place),
            filled.data.eq(receiver.byte.replicate(bus)),
            kept.addr.eq(work.place),
            total.data.eq(word[:8]),
            self.service.index.eq(work.index),
            self.service.data.eq(kept.data),
            self.s_axi_awaddr.eq(work.head.address),
            self.s_axi_araddr.eq(work.head.address),
            self.s_axi_wdata.eq(kept.data),
            self.s_axi_wstrb.eq((1 << WORD_BYTES) - 1),
        ]
        written_tag, written_status, written = Signal(8), Signal(Status), Signal()
        """The previous request's tag and status, if it wrote a register."""
        with m.FSM():
            with m.State("listen"):
                m.d.comb += receiver.listening.eq(1)
                m.d.sync += [work.place.eq(0), work.word_bytes.eq(0), work.words.eq(0)]
                with m.If(receiver.frame):
                    m.d.sync += work.status.eq(Mux(receiver.good, Status.OKAY, Status.DAMAGED))
                    m.next = "reply"
                    with m.If(receiver.good):
                        m.next = "decide"
            with m.State("decide"):
                m.d.comb += total.start.eq(1)
                m.d.sync += [work.index.eq(work.head.address >> log2(bus)), written.eq(0)]
                self._decide(m, work, receiver.length)
                again = written & (written_tag == work.head.tag)
                with m.If((work.head.operation == Operation.WRITE_REGISTER) & again):
                    m.d.sync += [work.status.eq(written_status), written.eq(1)]
                    m.next = "reply"
            self._registers(m, work)
            self._memory(m, work, kept)
            with m.State("written"):
                m.d.sync += [written.eq(1), written_tag.eq(work.head.tag), written_status.eq(work.status)]
                m.next = "reply"
            held = Signal(range(RESET_CYCLES))
            with m.State("reset"):
                m.d.comb += self.core_reset.eq(1)
                m.d.sync += held.eq(held + 1)
                with m.If(held == RESET_CYCLES - 1):
                    m.d.sync += held.eq(0)
                    m.next = "reply"
            self._reply(m, work, sender)
        return m

    def _decide(self, m: Module, work: _Work, length: Value) -> None:
        head, bus = work.head, self._config.bus_bytes
        bare = REQUEST_BYTES + CRC_BYTES
        stop, inside, fits, register = Signal(33), Signal(), Signal(), Signal()
        m.d.comb += [
            stop.eq(head.address + (head.count << log2(bus))),
            inside.eq((head.address & (bus - 1) == 0) & (head.count != 0) & (stop <= self._size)),
            fits.eq(head.count <= MAX_DATA // bus),
            register.eq((head.address & (WORD_BYTES - 1) == 0) & (head.address < 1 << ADDRESS_BITS)),
        ]
        info = VERSION | bus << 16 | self._size << 32
        written = bare + (head.count << log2(bus))
        m.d.sync += work.status.eq(Status.UNKNOWN)
        m.next = "reply"
        for operation, possible, wanted, state, changes in (
            (Operation.INFO, 1, bare, "reply", [work.word.eq(info), work.word_bytes.eq(INFO_BYTES)]),
            (Operation.READ_REGISTER, register, bare, "ask register", []),
            (Operation.WRITE_REGISTER, register, bare + WORD_BYTES, "write register", []),
            (Operation.READ, inside & fits, bare, "reply", [work.words.eq(head.count)]),
            (Operation.WRITE, inside & fits, written, "write memory", [work.words.eq(head.count)]),
            (Operation.SUM, inside, bare, "read memory", [work.words.eq(head.count)]),
            (Operation.RESET, 1, bare, "reset", []),
        ):
            with m.If((head.operation == operation) & possible & (length == wanted)):
                m.d.sync += [work.status.eq(Status.OKAY), *changes]
                m.next = state

    def _registers(self, m: Module, work: _Work) -> None:
        with m.State("ask register"):
            m.d.comb += self.s_axi_arvalid.eq(1)
            with m.If(self.s_axi_arready):
                m.next = "read register"
        with m.State("read register"):
            m.d.comb += self.s_axi_rready.eq(1)
            with m.If(self.s_axi_rvalid):
                m.d.sync += [work.word.eq(self.s_axi_rdata), work.word_bytes.eq(WORD_BYTES)]
                with m.If(self.s_axi_rresp[1]):
                    m.d.sync += [work.status.eq(Status.REFUSED), work.word_bytes.eq(0)]
                m.next = "reply"
        address_taken, data_taken = Signal(), Signal()
        with m.State("write register"):
            m.d.comb += [
                self.s_axi_awvalid.eq(~address_taken),
                self.s_axi_wvalid.eq(~data_taken),
                self.s_axi_bready.eq(1),
            ]
            m.d.sync += [
                address_taken.eq(address_taken | self.s_axi_awready),
                data_taken.eq(data_taken | self.s_axi_wready),
            ]
            with m.If(self.s_axi_bvalid):
                m.d.sync += [address_taken.eq(0), data_taken.eq(0)]
                m.d.sync += work.status.eq(Mux(self.s_axi_bresp[1], Status.REFUSED, Status.OKAY))
                m.next = "written"

    def _memory(self, m: Module, work: _Work, kept: Any) -> None:
        with m.State("write memory"):  # the word arrives one cycle after its address
            m.d.sync += work.place.eq(work.place + 1)
            m.next = "hand over"
        with m.State("hand over"):
            m.d.comb += [
                self.service.valid.eq(1),
                self.service.write.eq(1),
                kept.en.eq(self.service.ready),
            ]
            with m.If(self.service.ready):
                m.d.sync += [
                    work.index.eq(work.index + 1),
                    work.place.eq(work.place + 1),
                    work.words.eq(work.words - 1),
                ]
                with m.If(work.words == 1):
                    m.next = "reply"
        with m.State("read memory"):
            m.d.comb += self.service.valid.eq(1)
            with m.If(self.service.ready):
                m.next = "take word"
        with m.State("take word"):
            m.d.sync += [
                work.word.eq(self.service.word),
                work.word_bytes.eq(self._config.bus_bytes),
                work.index.eq(work.index + 1),
                work.words.eq(work.words - 1),
            ]
            m.next = "data"
            with m.If(work.head.operation == Operation.SUM):
                m.next = "sum"
        with m.State("sum"):
            m.d.comb += work.total.valid.eq(1)
            m.d.sync += [work.word.eq(work.word >> 8), work.word_bytes.eq(work.word_bytes - 1)]
            with m.If(work.word_bytes == 1):
                m.next = "read memory"
                with m.If(work.words == 0):
                    m.next = "summed"
        with m.State("summed"):
            m.d.sync += [work.word.eq(work.total.crc), work.word_bytes.eq(len(work.total.crc) // 8)]
            m.next = "reply"

    def _reply(self, m: Module, work: _Work, sender: FrameSender) -> None:
        fields = Cat(work.head.operation | REPLY, work.head.tag, Value.cast(work.status), Const(0, 6))
        number = Signal(range(REPLY_BYTES))
        with m.State("reply"):
            m.d.comb += sender.begin.eq(1)
            with m.If(sender.idle):
                m.next = "head"
        with m.State("head"):
            m.d.comb += [sender.valid.eq(1), sender.data.eq(fields.word_select(number, 8))]
            with m.If(sender.ready):
                m.d.sync += number.eq(number + 1)
                with m.If(number == REPLY_BYTES - 1):
                    m.d.sync += number.eq(0)
                    m.next = "data"
        with m.State("data"):
            m.d.comb += [sender.valid.eq(work.word_bytes != 0), sender.data.eq(work.word[:8])]
            with m.If(sender.ready):
                m.d.sync += [work.word.eq(work.word >> 8), work.word_bytes.eq(work.word_bytes - 1)]
            with m.Elif((work.word_bytes == 0) & (work.words != 0)):
                m.next = "read memory"
            with m.Elif(work.word_bytes == 0):
                m.d.comb += sender.end.eq(1)
                m.next = "close"
        with m.State("close"), m.If(sender.idle):
            m.next = "listen"
