"""The store unit alone: bursts, beats and responses compared with functional execution."""

from collections import deque
from random import Random
from typing import Any

import numpy as np
import pytest

from accel.base.records import replace
from accel.core.config import NAMED, Config
from accel.core.fault_causes import Cause
from accel.core.isa import Instruction, Memory, Store, Unit
from accel.hw.datapath.transfer_memories import Kind, kinds_of
from accel.hw.units.store import Store as StoreUnit
from accel.image.dram import Dram
from accel.sim.functional.load_store import ControlState, execute_store
from accel.sim.functional.scratchpads import Scratchpads
from tests.hw.bench import as_integer, assert_refused, drive, offer, offer_next, run
from tests.hw.units.transfers import bursts_of, good_transfer
from tests.thorough import also

WINDOW = {"mem_base": 4096, "mem_size": 1 << 16, "max_burst_beats": 4}
TINY = NAMED["tiny"].override(WINDOW)


class Mirror:
    """Supplies the accumulators one cycle after the unit's request, and holds them without
    ``advance``."""

    def __init__(self, unit: StoreUnit, pads: Scratchpads, config: Config) -> None:
        self._unit, self._pads, self._config = unit, pads, config
        self._kinds: list[Kind] = kinds_of(Store, Unit.STORE, config)
        self._next = (0, 0)

    def step(self, context: Any) -> None:
        data, strobe = self._next
        drive(context, self._unit.out, data=data, strobe=strobe)

    def sample(self, context: Any) -> None:
        """Sample the request after all other inputs are driven."""
        if not context.get(self._unit.out.advance):
            return
        beat = context.get(self._unit.out.beat)
        kind = self._kinds[beat.kind]
        size = kind.element_bytes
        bus = self._config.bus_bytes
        data, strobe = bytearray(bus), 0
        for n in range(beat.take):
            if beat.index + n >= self._config.acc_depth:
                break  # an early request without meaning
            low = self._pads.acc[beat.index + n].astype(kind.route.dtype).tobytes()
            part = low[beat.chunk * bus : (beat.chunk + 1) * bus] if kind.lanes == 1 else low
            at = 0 if kind.lanes == 1 else (beat.lane + n) * size
            data[at : at + len(part)] = part
            strobe |= ((1 << len(part)) - 1) << at
        self._next = int.from_bytes(data, "little"), strobe


class WriteBus:
    """AXI4 write channels with random delays; records bursts and writes memory."""

    def __init__(self, unit: StoreUnit, dram: Dram, config: Config, rng: Random) -> None:
        self._unit, self._dram, self._config, self._rng = unit, dram, config, rng
        self.addresses: list[tuple[int, int]] = []
        self._beats: list[tuple[int, int, bool]] = []
        self._written = 0
        self._pending: deque[int] = deque()
        """Cycles until the response of each complete burst."""
        self.responses = 0

    def step(self, context: Any) -> None:
        respond = bool(self._pending) and self._pending[0] <= 0
        if respond:
            self._pending.popleft()
            self.responses += 1
        self._pending = deque(n - 1 for n in self._pending)
        ready = {name: self._rng.random() < 0.7 for name in ("awready", "wready")}
        drive(context, self._unit, bvalid=respond, **ready)

    def sample(self, context: Any) -> None:
        """Sample the channels after all other inputs are driven."""
        unit = self._unit
        if context.get(unit.awvalid) and context.get(unit.awready):
            self.addresses.append((context.get(unit.awaddr), context.get(unit.awlen) + 1))
        if context.get(unit.wvalid) and context.get(unit.wready):
            self._beats.append(
                (context.get(unit.wdata), context.get(unit.wstrb), bool(context.get(unit.wlast)))
            )
        self._pair()

    def _pair(self) -> None:
        """Write the bursts whose address and beats are complete."""
        while self._written < len(self.addresses):
            address, count = self.addresses[self._written]
            if len(self._beats) < count:
                return
            assert [last for *_, last in self._beats[:count]] == [False] * (count - 1) + [True]
            for n, (data, strobe, _) in enumerate(self._beats[:count]):
                for byte in range(self._config.bus_bytes):
                    if strobe >> byte & 1:
                        place = address + n * self._config.bus_bytes + byte
                        self._dram.write(place, bytes([data >> 8 * byte & 0xFF]))
            del self._beats[:count]
            self._written += 1
            self._pending.append(self._rng.randint(0, 12))


@pytest.mark.parametrize(
    ("machine", "values"),
    [
        also("tiny", {}),
        ("tiny", {"bus_bits": 256}),
        also("tiny", {"block_out": 16, "acc_bytes": 8192}),
        also("tiny", {"stores_in_flight": 1, "outstanding": 1}),
        also("tiny-int8", {}),
        ("tiny-int8", {"bus_bits": 256, "post_stages": 5}),
        also("tiny-int8", {"stores_in_flight": 2, "post_stages": 0}),
    ],
)
def test_stores_leave_the_simulators_memory(machine: str, values: dict[str, int]) -> None:
    """With random bus timing, each STORE retires in order, with its last response."""
    config = NAMED[machine].override(WINDOW | values)
    unit = StoreUnit(config)
    pads, dram, expected = Scratchpads.random(config, 2), Dram.of(config), Dram.of(config)

    async def bench(context: Any) -> None:
        rng = Random(4)
        mirror, bus = Mirror(unit, pads, config), WriteBus(unit, dram, config, rng)
        stores = [good_transfer(rng, config, Unit.STORE) for _ in range(60)]
        counts = [len(bursts_of(store, config)) for store in stores]
        started = retired = 0
        granted: list[tuple[int, int]] = []
        sent: list[tuple[int, int]] = []
        drive(context, unit.control, enable=1, mem_base=config.mem_base)
        if config.post:
            context.set(unit.issue.taking, 1)
            await offer_next(context, unit.issue.entry, unit.issue.following, stores[0], 0, config)
        for _ in range(8000):
            mirror.step(context)
            answering = bus.responses
            bus.step(context)
            tokens, head = rng.random() < 0.8, started < len(stores) and rng.random() < 0.9
            context.set(unit.issue.valid, head)
            context.set(unit.tokens.there, tokens)
            if started < len(stores):
                offer(context, unit.issue.entry, stores[started], started, config)
            assert context.get(unit.fault) == Cause.NONE
            if bus.responses > answering:
                assert context.get(unit.response) == owner(counts, answering)
            if context.get(unit.lacking):
                assert head
                assert not tokens
            if context.get(unit.retirement.valid):
                found = context.get(unit.retirement.retired)
                assert (found.index, context.get(unit.retirement.oldest)) == (retired, retired)
                assert (found.push_prev, found.push_next) == (stores[retired].push_prev, 0)
                retired += 1
                assert bus.responses >= sum(counts[:retired])
            if context.get(unit.issue.start):
                assert head
                assert tokens
                store = stores[started]
                assert isinstance(store, Store)
                execute_store(store, config, expected, pads, ControlState(config))
                started += 1
            if context.get(unit.grant):
                found = context.get(unit.granted)
                assert found.unit == Unit.STORE
                granted.append((found.index, found.beats))
            if context.get(unit.last):
                found = context.get(unit.burst)
                sent.append((found.index, found.beats))
            if config.post and started < len(stores):
                offer(context, unit.issue.following, stores[started], started, config)
            mirror.sample(context)
            bus.sample(context)
            await context.tick()
            if retired == len(stores):
                break
        assert retired == len(stores)
        assert not context.get(unit.retirement.occupied)
        assert not context.get(unit.writing)
        bursts = [(n, burst) for n, store in enumerate(stores) for burst in bursts_of(store, config)]
        first = [(burst.address // config.bus_bytes * config.bus_bytes, burst.beats) for _, burst in bursts]
        assert bus.addresses == first
        assert granted == sent == [(n, burst.beats) for n, burst in bursts]
        assert dram == expected

    run(unit, bench)


def owner(counts: list[int], burst: int) -> int:
    """Index of the instruction that a burst belongs to, given the numbers of bursts."""
    return int(np.searchsorted(np.cumsum(counts), burst, side="right"))


@pytest.mark.parametrize("stages", [None, 0, also(1), also(4)])
def test_a_beat_is_on_the_bus_two_cycles_after_it_was_asked_for(stages: int | None) -> None:
    """Each cycle requests one beat. All wait while the bus is not ready. With ``post``, its stages come in
    addition."""
    more = stages or 0
    config = TINY if stages is None else replace(TINY, post=1, post_stages=stages)
    unit = StoreUnit(config)
    pads = Scratchpads.random(config, 6)
    store = Store(sram_base=3, x_size=3, y_size=1)

    async def bench(context: Any) -> None:
        mirror = Mirror(unit, pads, config)
        drive(context, unit.control, enable=1, mem_base=TINY.mem_base)
        context.set(unit.tokens.there, 1)
        context.set(unit.awready, 1)
        if config.post:
            context.set(unit.issue.taking, 1)
            await offer_next(context, unit.issue.entry, unit.issue.following, store, 0, config)
        offer(context, unit.issue.entry, store, 0, config)
        context.set(unit.issue.valid, 1)
        ready = [1] * more + [1, 1, 1, 0, 0, 1, 1, 1, 1]
        valid, data = [], []
        for cycle, wready in enumerate(ready):
            mirror.step(context)
            context.set(unit.wready, wready)
            if cycle == 0:
                assert context.get(unit.issue.start)
            assert context.get(unit.grant) == (cycle == 1)
            valid.append(context.get(unit.wvalid))
            if valid[-1] and wready:
                data.append((context.get(unit.wdata), context.get(unit.wlast)))
            assert context.get(unit.busy) == (valid[-1] and wready)
            mirror.sample(context)
            await context.tick()
            context.set(unit.issue.valid, 0)
        assert valid == [0] * more + [0, 0, 0, 1, 1, 1, 1, 1, 0]
        low = [as_integer(pads.acc[3 + n].astype(np.int8)) for n in range(3)]
        assert data == [(low[0], 0), (low[1], 0), (low[2], 1)]

    run(unit, bench)


FAULTY: list[Instruction] = [
    Store(push_next=True),
    Store(pop_next=True),
    Store(memory=Memory.ACC, x_size=1, y_size=1),
    Store(x_size=1, y_size=1, x_pad_1=1),
    Store(x_size=2, y_size=1, sram_base=127),
    Store(x_size=1, y_size=1, dram_base=(1 << 16) // 8),
]


def test_faults_are_detected_before_any_effect() -> None:
    unit = StoreUnit(TINY)

    async def bench(context: Any) -> None:
        context.set(unit.control.mem_base, TINY.mem_base)
        for number, instruction in enumerate(FAULTY):
            assert_refused(context, unit, instruction, number, TINY)
            await context.tick()
            assert not context.get(unit.retirement.occupied)
            assert not context.get(unit.awvalid)
        for instruction in (Store(memory=0, x_size=0, sram_base=9999), Store(pop_prev=True, push_prev=True)):
            context.set(unit.issue.valid, 1)
            context.set(unit.tokens.there, 1)
            context.set(unit.control.enable, 1)
            offer(context, unit.issue.entry, instruction, 7, TINY)
            assert context.get(unit.issue.start)

    run(unit, bench)
