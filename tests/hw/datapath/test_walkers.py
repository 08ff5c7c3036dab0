"""Walkers over bursts and beats compared with the definition of a transfer."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from accel.base.records import replace
from accel.core.config import NAMED, Config
from accel.core.instruction_access import DramRows, dram_rows
from accel.core.isa import Load, Unit
from accel.core.timing_rules import Burst, transfer_bursts
from accel.hw.datapath.beat_walker import BeatWalker
from accel.hw.datapath.burst_walker import BurstWalker
from accel.hw.datapath.transfer_memories import kind_of
from accel.hw.datapath.word_layouts import sram_bits
from tests.hw.bench import drive, run
from tests.thorough import diagonal

ROUTES = [route for route in Load.ROUTES.values() if route.unit is Unit.COMPUTE]
BUSES = [64, 128, 512]


def machine(bus: int, longest: int = 8) -> Config:
    return replace(NAMED["tiny"], bus_bits=bus, max_burst_beats=longest, mem_base=8192, mem_size=1 << 20)


def any_load(rng: Random, memory: int) -> Load:
    """A random LOAD with rows of any length and address, sometimes longer than a page."""
    return Load(
        memory=memory,
        sram_base=rng.randint(0, 40),
        dram_base=rng.randint(0, 3000),
        x_size=rng.choice([1, 2, 3, rng.randint(1, 40), rng.randint(1, 1200)]),
        y_size=rng.randint(1, 4),
        x_stride=rng.randint(0, 50),
        x_pad_0=rng.choice([0, 0, 1, 3]),
        x_pad_1=rng.choice([0, 0, 2]),
        y_pad_0=rng.choice([0, 0, 1]),
        y_pad_1=rng.choice([0, 0, 2]),
    )


@pytest.mark.parametrize(("longest", "bus"), diagonal([2, 8, 256], BUSES))
def test_bursts_are_those_of_the_contract(bus: int, longest: int) -> None:
    config = machine(bus, longest)
    walker = BurstWalker([kind_of(route, config) for route in ROUTES], config)

    async def bench(context: Any) -> None:
        rng = Random(bus + longest)
        context.set(walker.mem_base, config.mem_base)
        for _ in range(25):
            kind = rng.randrange(3)
            load = any_load(rng, ROUTES[kind].memory)
            assert not context.get(walker.valid)
            for name in ("dram_base", "x_size", "y_size", "x_stride"):
                context.set(getattr(walker.rows, name), getattr(load, name))
            context.set(walker.rows.kind, kind)
            context.set(walker.start, 1)
            await context.tick()
            context.set(walker.start, 0)
            rows = dram_rows(load, config)
            assert rows is not None
            expected = transfer_bursts(rows, config)
            for number, burst in enumerate(expected):
                for _ in range(rng.choice([0, 0, 1])):
                    await context.tick()
                found = Burst(context.get(walker.address), context.get(walker.beats))
                assert (context.get(walker.valid), found) == (1, burst)
                assert context.get(walker.last) == (number == len(expected) - 1)
                context.set(walker.accept, 1)
                await context.tick()
                context.set(walker.accept, 0)

    run(walker, bench)


def beats_of(load: Load, config: Config) -> Iterator[dict[int, int]]:
    """For each beat and byte lane, the data byte that it carries. Bytes are numbered from
    scratchpad element 0 on."""
    rows = dram_rows(load, config)
    assert isinstance(rows, DramRows)
    bus, element = config.bus_bytes, kind_of(Load.ROUTES[load.memory], config).element_bytes
    for y in range(rows.rows):
        start = rows.start + y * rows.stride
        first = (load.sram_base + (y + load.y_pad_0) * load.width + load.x_pad_0) * element
        for word in range(start // bus, (start + rows.row_bytes - 1) // bus + 1):
            inside = range(max(start, word * bus), min(start + rows.row_bytes, (word + 1) * bus))
            yield {address % bus: first + address - start for address in inside}


@pytest.mark.parametrize("bus", BUSES)
def test_beats_hold_the_elements_of_the_box(bus: int) -> None:
    config = machine(bus)
    kinds = [kind_of(route, config) for route in ROUTES]
    walker = BeatWalker(kinds, config)

    async def bench(context: Any) -> None:
        rng = Random(bus)
        for _ in range(25):
            number = rng.randrange(3)
            kind = kinds[number]
            load = any_load(rng, ROUTES[number].memory)
            if load.sram_base + load.sram_elements >= 1 << sram_bits(config):
                continue
            assert context.get(walker.idle)
            drive(
                context,
                walker.places,
                kind=number,
                sram=load.sram_base + load.y_pad_0 * load.width + load.x_pad_0,
                gap=load.x_pad_0 + load.x_pad_1,
                lane=load.dram_base % kind.lanes,
                stride=load.x_stride % kind.lanes,
                x_size=load.x_size,
                y_size=load.y_size,
            )
            context.set(walker.start, 1)
            await context.tick()
            context.set(walker.start, 0)
            expected = list(beats_of(load, config))
            for position, beat in enumerate(expected):
                found = context.get(walker.beat)
                size = kind.element_bytes
                part = min(size, config.bus_bytes)
                taken = {
                    (found.lane + n) * part + byte: (found.index + n) * size + found.chunk * part + byte
                    for n in range(found.take)
                    for byte in range(part)
                }
                assert taken == beat
                assert context.get(walker.last) == (position == len(expected) - 1)
                context.set(walker.step, 1)
                await context.tick()
                context.set(walker.step, 0)

    run(walker, bench)
