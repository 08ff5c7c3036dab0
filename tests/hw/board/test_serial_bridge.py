"""The bridge from a serial line to registers and memory."""

import zlib
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import NAMED
from accel.core.registers import ID, REGISTERS
from accel.hw.board.block_ram_memory import AxiMemory
from accel.hw.board.serial_bridge import RESET_CYCLES, Bridge
from accel.hw.board.serial_protocol import (
    END,
    ESCAPE,
    MAX_DATA,
    VERSION,
    Info,
    Operation,
    Reply,
    Request,
    Status,
    encode,
    framed,
)
from accel.hw.board.uart import Receiver, Transmitter
from accel.hw.bus.axi import SUBORDINATE, AxiLite, pins
from accel.hw.bus.control_registers import Control
from tests.hw.bench import run
from tests.hw.board.line import Line

CONFIG = NAMED["tiny"]
SIZE = 1024
WORD = CONFIG.bus_bytes


class Behind(wiring.Component):
    """A bridge with memory and registers."""

    rx: In(1, init=1)
    tx: Out(1, init=1)
    core_reset: Out(1)
    start: Out(1)

    def __init__(self, cycles: int) -> None:
        self._cycles = cycles
        super().__init__()

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.bridge = bridge = Bridge(CONFIG, SIZE, self._cycles)
        m.submodules.memory = memory = AxiMemory(CONFIG, SIZE)
        m.submodules.control = control = Control(CONFIG)
        m.d.comb += [
            bridge.rx.eq(self.rx),
            self.tx.eq(bridge.tx),
            self.core_reset.eq(bridge.core_reset),
            self.start.eq(control.start),
        ]
        registers = AxiLite()
        wiring.connect(m, bridge.service, memory.service)
        wiring.connect(m, pins(bridge, registers, SUBORDINATE), pins(control, registers.flip(), SUBORDINATE))
        return m


def on_line(bench: Callable[[Line, Behind], Awaitable[None]], cycles: int = 2) -> None:
    """Run a bench at the host's end of the line."""
    design = Behind(cycles)

    async def drive(context: Any) -> None:
        await bench(Line(context, design.rx, design.tx, cycles), design)

    run(design, drive)


def register(name: str, value: int | None = None, tag: int = 1) -> Request:
    address = REGISTERS[name].offset
    if value is None:
        return Request(operation=Operation.READ_REGISTER, tag=tag, address=address)
    data = value.to_bytes(4, "little")
    return Request(operation=Operation.WRITE_REGISTER, tag=tag, address=address, data=data)


def memory(address: int, data: bytes | int, tag: int = 1) -> Request:
    """Write memory, or read a number of bytes."""
    if isinstance(data, int):
        return Request(operation=Operation.READ, tag=tag, address=address, count=data // WORD)
    return Request(operation=Operation.WRITE, tag=tag, address=address, count=len(data) // WORD, data=data)


@pytest.mark.parametrize("cycles", [2, 3, 5, 16])
def test_a_line_carries_all_bytes(cycles: int) -> None:
    """Bytes come without gaps. Spikes, and bytes without a stop bit, are ignored."""

    class Pair(wiring.Component):
        line: In(1, init=1)
        cut: In(1)
        data: In(8)
        valid: In(1)
        ready: Out(1)
        got: Out(8)
        there: Out(1)

        def elaborate(self, platform: Any) -> Module:
            m = Module()
            m.submodules.receiver = receiver = Receiver(cycles)
            m.submodules.transmitter = transmitter = Transmitter(cycles)
            m.d.comb += [
                receiver.line.eq(transmitter.line & self.line),
                transmitter.data.eq(self.data),
                transmitter.valid.eq(self.valid),
                self.ready.eq(transmitter.ready),
                self.got.eq(receiver.data),
                self.there.eq(receiver.valid),
            ]
            return m

    pair = Pair()
    sent = bytes([0, 255, 0x55, 0xAA, END, ESCAPE, *Random(1).randbytes(10)])
    got = bytearray()

    async def bench(context: Any) -> None:
        async def tick() -> None:
            if context.get(pair.there):
                got.append(context.get(pair.got))
            await context.tick()

        rest = list(sent)
        context.set(pair.valid, 1)
        while rest:
            context.set(pair.data, rest[0])
            if context.get(pair.ready):
                rest.pop(0)
            await tick()
        context.set(pair.valid, 0)
        for _ in range(12 * cycles):
            await tick()
        assert got == sent
        if cycles > 4:
            context.set(pair.line, 0)  # a spike
            await tick()
            context.set(pair.line, 1)
            for _ in range(12 * cycles):
                await tick()
            context.set(pair.line, 0)  # too long for a byte
            for _ in range(12 * cycles):
                await tick()
            context.set(pair.line, 1)
            assert got == sent

    run(pair, bench)


def test_registers_and_memory_are_read_and_written() -> None:
    async def bench(line: Line, design: Behind) -> None:
        info = await line.ask(Request(operation=Operation.INFO, tag=9))
        assert (info.operation, info.tag, info.status) == (Operation.INFO, 9, Status.OKAY)
        assert Info.decode(info.data) == Info(version=VERSION, word_bytes=WORD, memory_bytes=SIZE)
        assert (await line.ask(register("id"))).data == ID.to_bytes(4, "little")
        assert (await line.ask(register("program_length", 0x7E7D1234))).status == Status.OKAY
        assert (await line.ask(register("program_length"))).data == bytes.fromhex("34127d7e")
        assert (await line.ask(register("status", 1, tag=2))).status == Status.REFUSED
        data = bytes([END, ESCAPE]) * 4 + Random(2).randbytes(8)
        assert await line.ask(memory(128, data)) == Reply(
            operation=Operation.WRITE, tag=1, status=Status.OKAY
        )
        assert (await line.ask(memory(128, 16))).data == data
        assert (await line.ask(memory(136, 8))).data == data[8:16]
        whole = Request(operation=Operation.SUM, tag=3, address=64, count=80 // WORD)
        expected = zlib.crc32(bytes(64) + data)
        assert (await line.ask(whole)).data == expected.to_bytes(4, "little")

    on_line(bench)


def test_impossible_requests_are_refused() -> None:
    impossible = [
        Request(operation=0, tag=1),
        Request(operation=99, tag=1),
        Request(operation=Operation.INFO, tag=1, data=b"1"),
        Request(operation=Operation.READ_REGISTER, tag=1, address=2),
        Request(operation=Operation.READ_REGISTER, tag=1, address=1 << 12),
        Request(operation=Operation.WRITE_REGISTER, tag=1, address=0x100, data=b"12345678"),
        memory(4, 8),
        memory(0, 0),
        memory(0, MAX_DATA + WORD),
        memory(SIZE - WORD, 2 * WORD),
        memory(1 << 31, WORD),
        Request(operation=Operation.WRITE, tag=1, count=2, data=bytes(8)),
    ]

    async def bench(line: Line, design: Behind) -> None:
        for request in impossible:
            reply = await line.ask(request)
            assert (reply.operation, reply.status, reply.data) == (request.operation, Status.UNKNOWN, b"")
        assert (await line.ask(register("id"))).data == ID.to_bytes(4, "little")

    on_line(bench)


def test_damaged_requests_do_nothing() -> None:
    """Memory keeps its contents whichever part of the frame is damaged, and the next request
    succeeds."""
    rng = Random(7)
    good = encode(memory(0, rng.randbytes(8)))
    damaged = [
        good[:5] + bytes([good[5] ^ 4]) + good[6:],
        good[:-3] + bytes([END]),
        bytes([END, END, 1, 2, END]),
        framed(bytes([Operation.WRITE, 1, 2, 0, 0, 0, 0])),
        bytes([END, *range(8), ESCAPE, END]),
    ]

    async def bench(line: Line, design: Behind) -> None:
        for data in damaged:
            await line.send(data)
            reply = await line.reply()
            assert reply is not None
            assert reply.status == Status.DAMAGED
            assert (await line.ask(memory(0, 8))).data == bytes(8)

    on_line(bench)


def test_the_line_is_found_again_after_garbage() -> None:
    """After half a frame, noise, or bytes during a reply, the next request succeeds."""

    async def bench(line: Line, design: Behind) -> None:
        await line.send(b"garbage" + encode(register("id"))[:6])
        await line.send(encode(register("id", tag=77)))
        replies = [await line.reply(), await line.reply(400)]
        assert any(reply is not None and reply.tag == 77 for reply in replies)
        await line.send(encode(memory(0, 16)))
        await line.send(b"bytes that nobody listens to")
        await line.idle(500)
        await line.send(bytes([END]))
        await line.idle(500)
        line.received.clear()
        assert (await line.ask(register("id", tag=78))).tag == 78

    on_line(bench)


def test_a_repeated_request_starts_one_run() -> None:
    async def bench(line: Line, design: Behind) -> None:
        starts = [0]

        def look() -> None:
            starts[0] += line._context.get(design.start)

        line.each = look
        assert (await line.ask(register("mem_size", 4096, tag=1))).status == Status.OKAY
        assert (await line.ask(register("control", 1, tag=2))).status == Status.OKAY
        assert (await line.ask(register("control", 1, tag=2))).status == Status.OKAY
        assert starts == [1]
        assert (await line.ask(register("status", tag=3))).status == Status.OKAY
        assert (await line.ask(register("control", 1, tag=2))).status == Status.OKAY
        assert starts == [2]

    on_line(bench)


def test_a_reset_is_held() -> None:
    async def bench(line: Line, design: Behind) -> None:
        held = [0]

        def look() -> None:
            held[0] += line._context.get(design.core_reset)

        line.each = look
        assert (await line.ask(Request(operation=Operation.RESET, tag=4))).status == Status.OKAY
        assert held == [RESET_CYCLES]

    on_line(bench)
