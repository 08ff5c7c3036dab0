"""The memory in block RAM: all kinds of bursts with random stalls, in parallel with the
service port."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from accel.base.records import replace
from accel.core.config import NAMED
from accel.hw.board.block_ram_memory import FIXED, INCREMENTING, WRAPPING, AxiMemory
from accel.hw.bus.axi import OKAY, SLVERR
from tests.hw.bench import run

CONFIG = NAMED["tiny"]
BUS = CONFIG.bus_bytes
SIZE = 512
SERVED = 384
"""In these tests, memory from here on belongs to the service port."""


@dataclass(frozen=True)
class Burst:
    address: int
    length: int
    size: int
    kind: int
    identity: int

    def beats(self) -> Iterator[range]:
        """The byte addresses of each beat, as the AXI specification defines them."""
        step = 1 << self.size
        address = self.address
        lowest = self.address // (step * (self.length + 1)) * step * (self.length + 1)
        for _ in range(self.length + 1):
            aligned = address // step * step
            yield range(address, aligned + step)
            if self.kind != FIXED:
                address = aligned + step
            if self.kind == WRAPPING and address == lowest + step * (self.length + 1):
                address = lowest


def draw(rng: Random, end: int) -> Burst:
    """Draw a burst that begins before ``end`` and may reach beyond the memory."""
    kind = rng.choice((FIXED, INCREMENTING, INCREMENTING, WRAPPING))
    size = rng.choice((3, 3, 3, 2, 1, 0))
    length = rng.choice((1, 3, 7, 15)) if kind == WRAPPING else rng.choice((0, 1, 2, 5, 15))
    address = rng.randrange(end)
    if kind == WRAPPING:
        address = address >> size << size
    return Burst(address, length, size, kind, rng.randrange(2))


class Manager:
    """Drives one memory; in each cycle, each channel stalls with probability ``stall``."""

    def __init__(self, context: Any, memory: AxiMemory, rng: Random, stall: float) -> None:
        self.context, self.memory, self.rng, self.stall = context, memory, rng, stall
        self.cycles = 0

    def get(self, name: str) -> int:
        return int(self.context.get(getattr(self.memory, name)))

    def set(self, **values: int) -> None:
        for name, value in values.items():
            self.context.set(getattr(self.memory, name), value)

    def go(self) -> bool:
        """Whether a channel proceeds in this cycle."""
        return self.rng.random() >= self.stall

    async def exchange(
        self, channels: dict[str, list[dict[str, int]]], answers: str, count: int, names: tuple[str, ...]
    ) -> list[dict[str, int]]:
        """Send offers on some channels until ``count`` answers have come on another one. An answer must stay
        the same while it waits."""
        waiting = {channel: list(offers) for channel, offers in channels.items()}
        taken: list[dict[str, int]] = []
        held: dict[str, int] | None = None
        offered: set[str] = set()
        for _ in range(20_000):
            for channel, offers in waiting.items():
                if offers and (channel in offered or self.go()):
                    offered.add(channel)
                    self.set(**{f"m_axi_{channel}{name}": value for name, value in offers[0].items()})
                self.set(**{f"m_axi_{channel}valid": channel in offered})
            self.set(**{f"m_axi_{answers}ready": self.go()})
            if self.get(f"m_axi_{answers}valid"):
                seen = {name: self.get(f"m_axi_{answers}{name}") for name in names}
                assert held in (None, seen), "an answer changed while it waited"
                held = seen
                if self.get(f"m_axi_{answers}ready"):
                    taken.append(seen)
                    held = None
            else:
                assert held is None, "an answer went away while it waited"
            for channel in list(offered):
                if self.get(f"m_axi_{channel}ready"):
                    waiting[channel].pop(0)
                    offered.discard(channel)
            await self.context.tick()
            self.cycles += 1
            if len(taken) == count:
                break
        assert len(taken) == count
        self.set(**{f"m_axi_{channel}valid": 0 for channel in channels})
        return taken

    async def write(self, bursts: list[Burst], model: bytearray) -> None:
        """Write random bytes with random strobes."""
        data = []
        wanted = []
        for burst in bursts:
            bad = False
            for number, lanes in enumerate(burst.beats()):
                strobes = 0
                raw = bytearray(self.rng.randbytes(BUS))
                for address in lanes:
                    if self.rng.random() < 0.8:
                        strobes |= 1 << address % BUS
                        if address < len(model):
                            model[address] = raw[address % BUS]
                bad |= lanes.start >= len(model)
                last = number == burst.length
                data.append({"data": int.from_bytes(raw, "little"), "strb": strobes, "last": last})
            wanted.append({"id": burst.identity, "resp": SLVERR if bad else OKAY})
        channels = {"aw": [asked(burst) for burst in bursts], "w": data}
        assert await self.exchange(channels, "b", len(bursts), ("id", "resp")) == wanted

    async def read(self, bursts: list[Burst], model: bytearray) -> None:
        """Read, and compare all bytes of the bursts."""
        count = sum(burst.length + 1 for burst in bursts)
        channels = {"ar": [asked(burst) for burst in bursts]}
        beats = iter(await self.exchange(channels, "r", count, ("id", "data", "resp", "last")))
        for burst in bursts:
            for number, lanes in enumerate(burst.beats()):
                beat = next(beats)
                assert (beat["id"], beat["last"]) == (burst.identity, number == burst.length)
                if lanes.start >= len(model):
                    assert beat["resp"] == SLVERR
                    continue
                assert beat["resp"] == OKAY
                raw = beat["data"].to_bytes(BUS, "little")
                assert all(raw[address % BUS] == model[address] for address in lanes)


def asked(burst: Burst) -> dict[str, int]:
    """The address channel's fields for a burst."""
    return {
        "addr": burst.address,
        "len": burst.length,
        "size": burst.size,
        "burst": burst.kind,
        "id": burst.identity,
    }


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_any_burst_reads_written_data_under_stalls(stall: float) -> None:
    memory = AxiMemory(CONFIG, SIZE)
    model = bytearray(SIZE)

    async def bench(context: Any) -> None:
        rng = Random(int(stall * 10))
        manager = Manager(context, memory, rng, stall)
        for _ in range(6):
            await manager.write([draw(rng, SIZE) for _ in range(8)], model)
            await manager.read([draw(rng, SIZE + 64) for _ in range(8)], model)

    run(memory, bench)
    assert any(model)


def test_the_service_port_works_in_parallel_with_bursts() -> None:
    """It reads and writes its own words, and bursts stay correct."""
    memory = AxiMemory(CONFIG, SIZE)
    model = bytearray(SIZE)
    stop: list[bool] = []

    async def bench(context: Any) -> None:
        rng = Random(3)
        manager = Manager(context, memory, rng, 0.2)
        for _ in range(4):
            long = [replace(draw(rng, 128), length=15, size=3, kind=INCREMENTING) for _ in range(4)]
            await manager.write(long, model)
            await manager.read(long, model)
        stop.append(True)

    served = {"read": 0, "write": 0}

    async def service(context: Any) -> None:
        rng = Random(4)
        words: dict[int, int] = {}
        while not stop:
            index = rng.randrange(SERVED // BUS, SIZE // BUS)
            write = rng.random() < 0.5 or index not in words
            data = rng.getrandbits(64)
            context.set(memory.service.valid, 1)
            context.set(memory.service.write, write)
            context.set(memory.service.index, index)
            context.set(memory.service.data, data)
            while not context.get(memory.service.ready):
                await context.tick()
            await context.tick()
            context.set(memory.service.valid, 0)
            assert context.get(memory.service.done) == (not write)
            if write:
                words[index] = data
            else:
                assert context.get(memory.service.word) == words[index]
            served["write" if write else "read"] += 1
            await context.tick().repeat(rng.randrange(3) + 1)

    from amaranth.sim import Simulator

    simulator = Simulator(memory)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.add_testbench(service)
    simulator.run()
    assert min(served.values()) > 20


def test_a_beat_a_cycle() -> None:
    """Bursts follow one another without a gap if neither side stalls."""
    memory = AxiMemory(CONFIG, SIZE)

    async def bench(context: Any) -> None:
        manager = Manager(context, memory, Random(0), 0.0)
        bursts = [Burst(64 * number, 7, 3, INCREMENTING, 0) for number in range(4)]
        await manager.read(bursts, bytearray(SIZE))
        assert manager.cycles == 4 * 8 + 3

    run(memory, bench)
