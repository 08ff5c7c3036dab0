"""The load unit alone compared with functional execution."""

from random import Random
from typing import Any

import numpy as np
import pytest

from accel.base.records import replace
from accel.core.config import NAMED, Config
from accel.core.fault_causes import Cause
from accel.core.isa import Instruction, Load, Memory, SetBytes, SetInp, SetWgt, Transfer, Unit
from accel.core.scratchpad_specs import SCRATCHPADS, Scratchpad
from accel.hw.units.load import Load as LoadUnit
from accel.image.dram import Dram
from accel.sim.functional.executor import Executor
from accel.sim.functional.scratchpads import Scratchpads
from tests.hw.bench import as_integer, assert_refused, drive, offer, offer_next, run
from tests.hw.units.transfers import Answers, bursts_of, good_transfer
from tests.thorough import also

PADS = [pad for pad in SCRATCHPADS.values() if pad.filled_by is Unit.LOAD]
TINY = NAMED["tiny"].override({"inp_bytes": 128, "wgt_bytes": 1024, "mem_base": 4096, "mem_size": 1 << 16})


def begin(context: Any, unit: LoadUnit, config: Config) -> None:
    drive(context, unit.control, enable=1, mem_base=config.mem_base)
    context.set(unit.issue.taking, 1)
    context.set(unit.tokens.there, 1)


def as_word(element: np.ndarray, pad: Scratchpad, config: Config) -> int:
    """A scratchpad element as one word."""
    bits = pad.lane_bits(config)
    lanes = enumerate(element.reshape(-1).tolist())
    return sum((value & ((1 << bits) - 1)) << n * bits for n, value in lanes)


async def assert_holds(context: Any, unit: LoadUnit, pads: Scratchpads, config: Config = TINY) -> None:
    """Compare the words that compute reads, and those that the simulator sees, with ``pads``."""
    for pad in PADS:
        read, access = getattr(unit.operands, pad.name), getattr(unit, f"{pad}_access")
        for element, wanted in enumerate(pads.of(pad)):
            for way in ("read", "peek"):
                other = len(pads.of(pad)) - 1 - element
                context.set(read.index, element if way == "read" else other)
                drive(context, access, peek=way == "peek", peek_index=element)
                await context.tick()
                found = context.get((read if way == "read" else access).element)
                assert found == as_word(wanted, pad, config), (pad.name, element, way)
            context.set(access.peek, 0)


@pytest.mark.parametrize(
    "values",
    [
        also({}),
        {"bus_bits": 256, "loads_in_flight": 2},
        also({"loads_in_flight": 1}),
        also({"post": 1}),
        also({"post": 1, "bus_bits": 256, "loads_in_flight": 2}),
        {"post": 1, "wgt_zero": 1},
    ],
)
def test_loads_overlap_and_leave_the_simulators_scratchpads(values: dict[str, int]) -> None:
    """With random bus timing, LOADs retire in order. A LOAD waits for those in flight that overlap it, and a
    SET runs alone."""
    config = TINY.override({**values, "max_burst_beats": 4})
    unit = LoadUnit(config)
    dram, pads = Dram.of(config), Scratchpads.zeros(config)
    dram.write(config.mem_base, np.random.default_rng(3).integers(0, 256, 8192, dtype=np.uint8))

    async def bench(context: Any) -> None:
        rng = Random(9)
        answers = Answers(unit.read, dram, config, rng)
        loads: list[Any] = [good_transfer(rng, config, Unit.LOAD) for _ in range(70)]
        if config.post:
            zeros = range(-128, 128)
            loads[3::5] = [SetInp(zero=rng.choice(zeros)) for _ in loads[3::5]]
            loads[4::9] = [SetInp(zero=255 * rng.randint(0, 1), unsigned=True) for _ in loads[4::9]]
        if config.wgt_zero:
            loads[5::7] = [SetWgt(zero=rng.choice(range(-128, 128))) for _ in loads[5::7]]
            loads[6::9] = [SetWgt(zero=255 * rng.randint(0, 1), unsigned=True) for _ in loads[6::9]]
        executor = Executor(config, dram, pads)
        started = retired = most = 0
        fresh = True
        """The current instruction has not been ``following`` yet."""
        begin(context, unit, config)
        for _ in range(6000):
            answers.step(context)
            waiting = started < len(loads)
            tokens, head = rng.random() < 0.8, waiting and not fresh and rng.random() < 0.9
            context.set(unit.issue.valid, head)
            context.set(unit.tokens.there, tokens)
            if waiting:
                offer(context, unit.issue.entry, loads[started], started, config)
                offer(context, unit.issue.following, loads[started], started, config)
            fresh = False
            assert not context.get(unit.fault)
            flying = loads[retired:started]
            assert context.get(unit.retirement.occupied) == bool(flying)
            if flying:
                assert context.get(unit.retirement.oldest) == retired
            if context.get(unit.retirement.valid):
                found = context.get(unit.retirement.retired)
                one = loads[retired]
                assert (found.index, found.push_prev, found.push_next) == (retired, 0, one.push_next)
                retired += 1
            if context.get(unit.lacking):
                assert head
                assert not tokens
            if context.get(unit.issue.start):
                assert head
                assert tokens
                new = loads[started]
                assert not any(meet(new, one) for one in flying)
                assert len(flying) < config.loads_in_flight
                assert not (flying and any(isinstance(one, SetBytes) for one in (new, *flying)))
                assert executor.execute(new) is None
                started += 1
                fresh = True
                most = max(most, started - retired)
            await context.tick()
            if retired == len(loads):
                break
        assert retired == len(loads)
        assert most >= min(config.loads_in_flight, 3)
        assert answers.idle
        wanted = [(n, burst) for n, load in enumerate(loads) for burst in bursts(load, config)]
        assert answers.asked == wanted
        await assert_holds(context, unit, pads, config)

    run(unit, bench)


def bursts(instruction: Instruction, config: Config) -> list[Any]:
    return list(bursts_of(instruction, config)) if isinstance(instruction, Transfer) else []


def meet(one: Instruction, other: Instruction) -> bool:
    """Whether two LOADs fill a common element."""
    if not (isinstance(one, Transfer) and isinstance(other, Transfer)):
        return False
    if one.memory != other.memory:
        return False
    first, second = (set(range(x.sram_base, x.sram_base + x.sram_elements)) for x in (one, other))
    return bool(first & second)


FAULTY: list[Instruction] = [
    Load(memory=Memory.INP, pop_prev=True),
    Load(memory=Memory.WGT, push_prev=True, x_size=1, sram_base=9999),
    Load(memory=Memory.INP, x_size=2, y_size=1, sram_base=31),
    Load(memory=Memory.WGT, x_size=1, y_size=33),
    Load(memory=Memory.WGT, x_size=1, y_size=1, dram_base=(1 << 16) // 32),
]


def test_faults_are_detected_before_any_effect() -> None:
    """They are not reported while a token is missing, or after the core has stopped."""
    unit = LoadUnit(TINY)

    async def bench(context: Any) -> None:
        begin(context, unit, TINY)
        for number, instruction in enumerate(FAULTY):
            assert_refused(context, unit, instruction, number, TINY)
            await context.tick()
            assert not context.get(unit.read.valid)
            assert not context.get(unit.retirement.occupied)

    run(unit, bench)


def test_a_faulty_load_waits_for_no_other() -> None:
    """A valid LOAD waits for an overlapping LOAD in flight, but a faulty one does not."""
    unit = LoadUnit(TINY)
    zeros = Load(memory=Memory.INP, x_size=4, y_pad_0=3)
    meeting = Load(memory=Memory.INP, sram_base=8, x_size=4, y_size=1)
    beyond = replace(meeting, y_size=9)

    async def bench(context: Any) -> None:
        begin(context, unit, TINY)
        offer(context, unit.issue.entry, zeros, 0, TINY)
        context.set(unit.issue.valid, 1)
        assert context.get(unit.issue.start)
        await offer_next(context, unit.issue.entry, unit.issue.following, meeting, 1, TINY)
        assert (context.get(unit.retirement.occupied), context.get(unit.issue.start)) == (1, 0)
        offer(context, unit.issue.entry, beyond, 1, TINY)
        assert context.get(unit.fault) == Cause.SRAM_RANGE
        offer(context, unit.issue.entry, meeting, 1, TINY)
        for _ in range(12):
            assert context.get(unit.issue.start) == (not context.get(unit.retirement.occupied))
            await context.tick()
            if not context.get(unit.retirement.occupied):
                break
        assert context.get(unit.issue.start)

    run(unit, bench)


def test_preset_scratchpads_can_be_read() -> None:
    unit = LoadUnit(TINY)
    pads = Scratchpads.random(TINY, 5)

    async def bench(context: Any) -> None:
        for pad in PADS:
            access = getattr(unit, f"{pad}_access")
            for element, word in enumerate(pads.of(pad)):
                drive(context, access, preload=1, preload_index=element, preload_word=as_integer(word))
                await context.tick()
            context.set(access.preload, 0)
        await assert_holds(context, unit, pads)

    run(unit, bench)


def test_a_flush_drops_loads_in_flight() -> None:
    unit = LoadUnit(TINY)
    load = Load(memory=Memory.INP, x_size=3, y_size=2, x_stride=20, y_pad_0=2)

    async def bench(context: Any) -> None:
        begin(context, unit, TINY)
        offer(context, unit.issue.entry, load, 0, TINY)
        context.set(unit.issue.valid, 1)
        assert context.get(unit.issue.start)
        await context.tick()
        assert (context.get(unit.read.valid), context.get(unit.retirement.occupied)) == (1, 1)
        context.set(unit.issue.valid, 0)
        context.set(unit.control.flush, 1)
        await context.tick()
        context.set(unit.control.flush, 0)
        assert (
            context.get(unit.read.valid),
            context.get(unit.retirement.occupied),
            context.get(unit.busy),
        ) == (
            0,
            0,
            0,
        )
        offer(context, unit.issue.entry, replace(load, memory=Memory.WGT), 0, TINY)
        context.set(unit.issue.valid, 1)
        assert context.get(unit.issue.start)

    run(unit, bench)
