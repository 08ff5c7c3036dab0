"""Scratchpads after LOADs, and beats of STOREs, compared with functional execution."""

from random import Random
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from accel.base.records import replace
from accel.core.config import NAMED, Config
from accel.core.isa import Load, Memory, SetAcc, Store, Unit, encode
from accel.core.scratchpad_specs import UOP
from accel.hw.datapath.accumulators import Accumulators
from accel.hw.datapath.beat_walker import BeatWalker
from accel.hw.datapath.scratchpads import Scratchpad
from accel.hw.datapath.transfer_memories import kind_number, kinds_of
from accel.hw.datapath.word_layouts import EntryLayout, add_up, multiply_out, place, sram_bits, view
from accel.hw.units.load_executor import LoadExecutor
from accel.image.dram import Dram
from accel.sim.functional.load_store import ControlState, execute_load
from accel.sim.functional.scratchpads import Scratchpads
from tests.hw.bench import as_array, as_integer, drive, run
from tests.thorough import also

KINDS = [memory for memory, route in Load.ROUTES.items() if route.unit is Unit.COMPUTE]


class LoadPath(wiring.Component):
    """A loader with the compute unit's memories. The test controls when the bus answers a
    granted burst."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.kinds = kinds_of(Load, Unit.COMPUTE, config)
        self.loader = LoadExecutor(self.kinds, 3, config)
        self.uops = Scratchpad(UOP, self.kinds, config)
        self.accumulators = Accumulators(self.kinds, kinds_of(Store, Unit.STORE, config), config)
        super().__init__({"word": In(128), "start": In(1), "following": In(128)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.loader = loader = self.loader
        m.submodules.uops = uops = self.uops
        m.submodules.accumulators = accumulators = self.accumulators
        m.d.comb += [loader.start.eq(self.start), loader.taking.eq(1)]
        for entry, word in ((loader.entry, self.word), (loader.following, self.following)):
            load = view(Load, self._config, word)
            box = add_up(m, load, multiply_out(m, load))
            moves = load.x_size != 0
            gaps = ((load.x_pad_0 | load.x_pad_1) != 0) & (load.y_size > 1)
            m.d.comb += [
                entry.word.eq(word),
                entry.box.eq(place(m, load, box, self._config)),
                entry.moves.kind.eq(kind_number(load.memory, self.kinds, self._config)),
                entry.moves.data.eq(moves & (load.y_size != 0)),
                entry.moves.pads.eq(moves & ((box.head != 0) | (box.tail != 0) | gaps)),
                entry.moves.some.eq(moves & (box.elements != 0)),
            ]
        for pad, numbers in ((uops, (0,)), (accumulators, (1, 2))):
            here = loader.data_beat.kind == numbers[0]
            padded = loader.pad_kind == numbers[0]
            for number in numbers[1:]:
                here = here | (loader.data_beat.kind == number)
                padded = padded | (loader.pad_kind == number)
            m.d.comb += [
                pad.beat_valid.eq(loader.data_valid & here),
                pad.beat.eq(loader.data_beat),
                pad.data.eq(loader.data),
                pad.word_valid.eq(loader.pad_valid & padded),
                pad.word_index.eq(loader.pad_index),
            ]
            if pad.is_set:
                m.d.comb += pad.unsigned.eq(1)
        return m


def any_load(rng: Random, config: Config) -> Load:
    """A random LOAD that fits the scratchpad."""
    memory = rng.choice(KINDS)
    load = Load(
        memory=memory,
        dram_base=rng.randint(0, 200),
        x_size=rng.randint(0, 12),
        y_size=rng.randint(0, 3),
        x_stride=rng.randint(0, 20),
        x_pad_0=rng.choice([0, 0, 1, 3]),
        x_pad_1=rng.choice([0, 0, 2]),
        y_pad_0=rng.choice([0, 0, 1]),
        y_pad_1=rng.choice([0, 0, 2]),
    )
    depth = config.uop_depth if memory == Memory.UOP else config.acc_depth
    return replace(load, sram_base=rng.randint(0, depth - load.sram_elements))


@pytest.mark.parametrize(
    ("bus", "block_out", "post"),
    [
        also(64, 4, 0),
        also(512, 4, 0),
        (128, 8, 0),
        also(256, 8, 0),
        (64, 4, 1),
        also(128, 4, 1),
        also(256, 4, 1),
    ],
)
def test_loads_write_the_same_elements_as_the_simulator(bus: int, block_out: int, post: int) -> None:
    """With ``post`` there are also LOADs of uint8."""
    geometry = {"bus_bits": bus, "block_out": block_out, "acc_bytes": 4 * block_out * 128, "post": post}
    config = replace(NAMED["tiny"], **geometry, mem_size=1 << 20)
    path = LoadPath(config)
    dram = Dram.of(config)
    dram.write(0, np.random.default_rng(bus).integers(0, 256, 1 << 15, dtype=np.uint8))
    pads, state = Scratchpads.zeros(config), ControlState(config)
    if post:
        state.apply_setting(SetAcc(unsigned=True))

    async def bench(context: Any) -> None:
        rng = Random(bus)
        loader = path.loader
        pending: list[int] = []
        started = retired = 0
        load: Load | None = None
        fresh = False
        """The LOAD is ``following`` first and moves to ``entry`` in the next cycle."""
        before = Memory.UOP
        for _ in range(3000):
            if load is None and started < 60:
                load = any_load(rng, config)
                context.set(path.following, int.from_bytes(encode([load], config), "little"))
                fresh = True
            free = not fresh and context.get(loader.room) and not context.get(loader.read.valid)
            start = load is not None and free and not context.get(loader.conflict) and rng.random() < 0.7
            if (
                load is not None and load.memory != before
            ):  # hazards are detected among LOADs of one kind only
                start = start and not context.get(loader.retirement.occupied)
            context.set(path.start, start)
            if start:
                assert load is not None
                execute_load(load, config, dram, pads, state)
                before = Memory(load.memory)
                started, load = started + 1, None
            granted = context.get(loader.read.valid) and rng.random() < 0.6
            context.set(loader.read.granted, granted)
            if granted:
                request = context.get(loader.read.request)
                first = request.address // config.bus_bytes * config.bus_bytes
                pending += [first + n * config.bus_bytes for n in range(request.beats)]
            beat = bool(pending) and not granted and rng.random() < 0.7
            context.set(loader.read.beat_valid, beat)
            if beat:
                context.set(loader.read.beat_data, as_integer(dram.read(pending.pop(0), config.bus_bytes)))
            retired += context.get(loader.retirement.valid)
            await context.tick()
            context.set(path.word, context.get(path.following))
            fresh = False
            if started == retired == 60:
                break
        assert started == retired == 60
        for n in range(config.uop_depth):
            context.set(path.uops.read_0.index, n)
            await context.tick()
            assert context.get(path.uops.read_0.element) == pads.uop[n]
        for n in range(config.acc_depth):
            for copy in (0, 1):
                context.set(getattr(path.accumulators, f"read_{copy}").index, n)
            await context.tick()
            for copy in (0, 1):
                element = context.get(getattr(path.accumulators, f"read_{copy}").element)
                np.testing.assert_array_equal(as_array(element, "<i4", pads.acc[n].shape), pads.acc[n])

    run(path, bench)


class StorePath(wiring.Component):
    """Accumulators and a walker over a STORE's beats."""

    def __init__(self, config: Config) -> None:
        kinds = kinds_of(Load, Unit.COMPUTE, config)
        self.out = kinds_of(Store, Unit.STORE, config)
        self.accumulators = Accumulators(kinds, self.out, config)
        self.walker = BeatWalker(self.out, config)
        super().__init__({})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.accumulators = self.accumulators
        m.submodules.walker = self.walker
        m.d.comb += [
            self.accumulators.out.beat.eq(self.walker.beat),
            self.accumulators.out.advance.eq(self.walker.step),
        ]
        return m


@pytest.mark.parametrize(
    ("bus", "block_out", "post"),
    [
        *((bus, block_out, 1) for bus, block_out in ((64, 8), (128, 32))),
        *(also(bus, block_out, 1) for bus, block_out in ((64, 32), (128, 8), (512, 8), (512, 32))),
        (64, 4, 1),
        (128, 4, 0),
        also(512, 4, 0),
        (64, 8, 0),
        (64, 32, 0),
    ],
)
def test_beats_hold_the_low_bytes_of_the_accumulators(bus: int, block_out: int, post: int) -> None:
    """With ``post``, some STOREs store whole accumulators, in any order with the others."""
    geometry = {"bus_bits": bus, "block_out": block_out, "acc_bytes": 4 * block_out * 64, "post": post}
    config = replace(NAMED["tiny"], **geometry)
    path = StorePath(config)
    acc = np.random.default_rng(bus).integers(-(2**31), 2**31, (64, 1, block_out)).astype(np.int32)
    ordinary = [number for number, kind in enumerate(path.out) if not kind.is_requantized]
    assert len(ordinary) == 1 + post
    held = [acc.astype(kind.route.dtype).view(np.uint8).reshape(-1) for kind in path.out]

    async def bench(context: Any) -> None:
        rng = Random(bus)
        for n, element in enumerate(acc):
            drive(context, path.accumulators, word_valid=1, word_index=n, word=as_integer(element))
            await context.tick()
        context.set(path.accumulators.word_valid, 0)
        for _ in range(20):
            number = rng.choice(ordinary)
            lanes, size = path.out[number].lanes, path.out[number].element_bytes
            sram, lane, x_size = rng.randint(0, 40), rng.randrange(lanes), rng.randint(1, 20)
            drive(context, path.walker.places, kind=number, sram=sram, lane=lane, x_size=x_size, y_size=1)
            context.set(path.walker.start, 1)
            await context.tick()
            context.set(path.walker.start, 0)
            expected = held[number][sram * size : (sram + x_size) * size].tolist()
            found: list[int] = []
            while not context.get(path.walker.idle):
                context.set(path.walker.step, 1)
                await context.tick()
                context.set(path.walker.step, 0)
                data = as_array(context.get(path.accumulators.out.data), "u1", (config.bus_bytes,))
                strobe = context.get(path.accumulators.out.strobe)
                found += [int(byte) for n, byte in enumerate(data) if strobe >> n & 1]
            assert found == expected

    run(path, bench)


@pytest.mark.parametrize(
    ("bus", "block_out", "post_lanes"),
    [(64, 4, 4), (64, 4, 1), also(512, 8, 2), (64, 32, 8), also(128, 32, 4)],
)
def test_slots_hold_the_accumulators_of_a_beat(bus: int, block_out: int, post_lanes: int) -> None:
    """A slot has the accumulators that are requantized together. They stay the same without ``advance``."""
    geometry = {"bus_bits": bus, "block_out": block_out, "acc_bytes": 4 * block_out * 64, "post": 1}
    config = replace(NAMED["tiny"], **geometry, post_lanes=post_lanes)
    path = StorePath(config)
    acc = np.random.default_rng(bus).integers(-(2**31), 2**31, (64, 1, block_out)).astype(np.int32)
    requantized = [number for number, kind in enumerate(path.out) if kind.is_requantized]
    lanes, parts = path.out[requantized[0]].lanes, block_out // post_lanes

    async def bench(context: Any) -> None:
        rng = Random(bus)
        pads = path.accumulators
        for n, element in enumerate(acc):
            drive(context, pads, word_valid=1, word_index=n, word=as_integer(element))
            await context.tick()
        context.set(pads.word_valid, 0)
        for _ in range(60):
            sram, lane = rng.randint(0, 50), rng.randrange(lanes)
            number, x_size = rng.choice(requantized), rng.randint(1, 9)
            drive(context, path.walker.places, kind=number, sram=sram, lane=lane, x_size=x_size, y_size=1)
            drive(context, path.walker, flush=1, start=0)
            await context.tick()
            drive(context, path.walker, flush=0, start=1)
            await context.tick()
            context.set(path.walker.start, 0)
            distance, part = rng.randrange(min(lanes - lane, x_size)), rng.randrange(parts)
            drive(context, pads.out.slot, distance=distance, part=part)
            context.set(path.walker.step, 1)
            await context.tick()
            context.set(path.walker.step, 0)
            drive(context, pads.out.slot, distance=0, part=rng.randrange(parts))
            values = acc[sram + distance].reshape(-1)[part * post_lanes : (part + 1) * post_lanes]
            for _ in range(2):
                sums = as_array(context.get(pads.out.sums), "<i4", (post_lanes,))
                np.testing.assert_array_equal(sums, values)
                await context.tick()

    run(path, bench)


def test_widths_of_a_queue_entry_and_a_scratchpad_address() -> None:
    assert EntryLayout(NAMED["vta"])["box"].width <= 80
    assert sram_bits(NAMED["vta"]) == 14
