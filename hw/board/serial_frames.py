"""Receiver and sender of the frames of ``serial_protocol``."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.crc.catalog import CRC16_IBM_3740
from amaranth.lib.wiring import In, Out

from accel.hw.board.serial_protocol import CRC_BYTES, END, ESCAPE, INVERTED, MAX_DATA, REQUEST_BYTES
from accel.hw.board.uart import Receiver, Transmitter
from accel.hw.datapath.word_layouts import log2

MOST = REQUEST_BYTES + MAX_DATA + CRC_BYTES


class RequestLayout(data.StructLayout):
    def __init__(self) -> None:
        super().__init__({"operation": 8, "tag": 8, "count": 16, "address": 32})


class FrameReceiver(wiring.Component):
    """Receives requests while ``listening``: the header in ``head``, data in a buffer of words.

    ``frame`` is set in the cycle in which a frame ends, ``good`` if it is valid. ``length`` is in bytes.
    ``head`` and the buffer hold until it listens again. ``cycles`` are those of a bit.
    """

    def __init__(self, word_bytes: int, cycles: int) -> None:
        self._word_bytes = word_bytes
        self._cycles = cycles
        super().__init__(
            {
                "line": In(1, init=1),
                "listening": In(1),
                "frame": Out(1),
                "good": Out(1),
                "length": Out(range(MOST + 2)),
                "head": Out(RequestLayout()),
                "enable": Out(word_bytes),
                "place": Out(range(MAX_DATA // word_bytes)),
                "byte": Out(8),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.receiver = receiver = Receiver(self._cycles)
        m.submodules.crc = crc = CRC16_IBM_3740(data_width=8).create()
        escaped, taken = Signal(), Signal()
        offset = Signal(range(MOST + 2))
        m.d.comb += [
            receiver.line.eq(self.line),
            self.byte.eq(Mux(escaped, receiver.data ^ INVERTED, receiver.data)),
            crc.data.eq(self.byte),
            crc.valid.eq(taken),
            self.good.eq((crc.crc == 0) & (self.length >= REQUEST_BYTES + CRC_BYTES) & (self.length <= MOST)),
            offset.eq(self.length - REQUEST_BYTES),
            self.place.eq(offset >> log2(self._word_bytes)),
        ]
        with m.If(taken & (self.length >= REQUEST_BYTES) & (offset < MAX_DATA)):
            m.d.comb += self.enable.eq(1 << (offset & (self._word_bytes - 1)))
        with m.If(~self.listening):
            m.d.comb += crc.start.eq(1)
            m.d.sync += [self.length.eq(0), escaped.eq(0)]
        with m.Elif(receiver.valid):
            with m.If(receiver.data == END):
                m.d.comb += self.frame.eq(self.length != 0)
                m.d.sync += escaped.eq(0)
            with m.Elif((receiver.data == ESCAPE) & ~escaped):
                m.d.sync += escaped.eq(1)
            with m.Else():
                m.d.comb += taken.eq(1)
                m.d.sync += escaped.eq(0)
                with m.If(self.length <= MOST):  # one count for all longer frames
                    m.d.sync += self.length.eq(self.length + 1)
                with m.If(self.length < REQUEST_BYTES):
                    m.d.sync += self.head.eq(Cat(self.head.as_value()[8:], self.byte))
        return m


class FrameSender(wiring.Component):
    """Sends frames. ``begin`` opens one while ``idle``. Bytes are taken with ``valid`` and ``ready``.
    ``end``, without ``valid``, closes it."""

    def __init__(self, cycles: int) -> None:
        self._cycles = cycles
        super().__init__(
            {
                "line": Out(1, init=1),
                "idle": Out(1),
                "begin": In(1),
                "data": In(8),
                "valid": In(1),
                "ready": Out(1),
                "end": In(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.transmitter = transmitter = Transmitter(self._cycles)
        m.submodules.crc = crc = CRC16_IBM_3740(data_width=8).create()
        byte, send, sent, special, second = Signal(8), Signal(), Signal(), Signal(), Signal()
        """The current byte, whether it needs an escape, and whether that has been sent."""
        m.d.comb += [
            self.line.eq(transmitter.line),
            crc.data.eq(self.data),
            transmitter.valid.eq(send),
            transmitter.data.eq(Mux(special, Mux(second, byte ^ INVERTED, ESCAPE), byte)),
            sent.eq(send & transmitter.ready & (~special | second)),
        ]
        with m.If(send & transmitter.ready):
            m.d.sync += second.eq(special & ~second)
        last = Signal()
        with m.FSM():
            with m.State("idle"):
                m.d.comb += [self.idle.eq(1), crc.start.eq(1)]
                with m.If(self.begin):
                    m.d.sync += last.eq(0)
                    m.next = "mark"
            with m.State("mark"):
                m.d.comb += [send.eq(1), byte.eq(END)]
                with m.If(sent):
                    m.next = "bytes"
                    with m.If(last):
                        m.next = "idle"
            with m.State("bytes"):
                m.d.comb += [
                    send.eq(self.valid),
                    byte.eq(self.data),
                    special.eq((byte == END) | (byte == ESCAPE)),
                    self.ready.eq(sent),
                    crc.valid.eq(sent),
                ]
                with m.If(self.end):
                    m.next = "high"
            for name, part, following in (("high", crc.crc[8:], "low"), ("low", crc.crc[:8], "mark")):
                with m.State(name):
                    m.d.comb += [send.eq(1), byte.eq(part), special.eq((byte == END) | (byte == ESCAPE))]
                    with m.If(sent):
                        m.d.sync += last.eq(1)
                        m.next = following
        return m
