"""The executor of LOADs alone: requests, data, padding and retirement."""

from random import Random
from typing import Any

import pytest

from accel.core.config import NAMED
from accel.core.instruction_access import dram_rows
from accel.core.isa import Load, Memory, Unit
from accel.hw.datapath.transfer_memories import kinds_of
from accel.hw.units.load_executor import LoadExecutor
from accel.image.dram import Dram
from tests.hw.bench import as_integer, offer, offer_next, run
from tests.hw.units.transfers import Answers, bursts_of, good_transfer
from tests.thorough import also

CONFIG = NAMED["tiny"].override({"mem_base": 4096, "mem_size": 1 << 16, "max_burst_beats": 4})
KINDS = kinds_of(Load, Unit.COMPUTE, CONFIG)
NUMBERS = {kind.memory: number for number, kind in enumerate(KINDS)}


def expected_words(load: Load) -> tuple[set[int], set[int]]:
    """Scratchpad elements that DRAM fills, and those that become zero."""
    data, pads = set(), set()
    element = load.sram_base
    for y in range(-load.y_pad_0, load.y_size + load.y_pad_1):
        for x in range(-load.x_pad_0, load.x_size + load.x_pad_1):
            inside = 0 <= y < load.y_size and 0 <= x < load.x_size
            (data if inside else pads).add(element)
            element += 1
    return (data, pads) if load.x_size else (set(), set())


@pytest.mark.parametrize("depth", [also(1), 4])
def test_loads_are_placed_and_retire_with_their_last_word(depth: int) -> None:
    """Padding words use cycles without data. A LOAD retires in the cycle of its last write."""
    loader = LoadExecutor(KINDS, depth, CONFIG)
    dram = Dram.of(CONFIG)
    for n in range(8192):
        dram.write(CONFIG.mem_base + n, bytes([n % 251]))

    async def bench(context: Any) -> None:
        rng = Random(depth)
        answers = Answers(loader.read, dram, CONFIG, rng)
        loads = [good_transfer(rng, CONFIG, Unit.COMPUTE) for _ in range(60)]
        left: dict[int, tuple[set[int], set[int]]] = {}
        parts: dict[int, int] = {}
        started = retired = 0
        fresh = True
        """The LOAD has not been ``following`` yet."""
        context.set(loader.mem_base, CONFIG.mem_base)
        if depth > 1:
            context.set(loader.taking, 1)
        for _ in range(8000):
            answers.step(context)
            if started < len(loads):
                load = loads[started]
                assert isinstance(load, Load)
                offer(context, loader.entry, load, started, CONFIG)
                free = context.get(loader.room) and not context.get(loader.read.valid)
                # ranges are compared within a kind; a unit with several kinds in one scratchpad has depth 1
                start = free and not left if depth == 1 else free and not context.get(loader.conflict)
                if depth > 1:
                    same = all(loads[n].memory == load.memory for n in left)
                    start = start and same
                start = bool(start) and not fresh and rng.random() < 0.8
                if depth > 1:
                    offer(context, loader.following, load, started, CONFIG)
                fresh = start
            else:
                start = False
            context.set(loader.start, start)

            if context.get(loader.data_valid):
                beat = context.get(loader.data_beat)
                kind = KINDS[beat.kind]
                owner = next(n for n in sorted(left) if left[n][0] and NUMBERS[loads[n].memory] == beat.kind)
                assert not context.get(loader.pad_valid)
                word = context.get(loader.data)
                part = min(kind.element_bytes, CONFIG.bus_bytes)
                for n in range(beat.take):
                    element = beat.index + n
                    assert element in left[owner][0]
                    begin = (beat.lane + n) * part
                    found = word >> 8 * begin & ((1 << 8 * part) - 1)
                    assert found == wanted(dram, loads[owner], element, beat.chunk * part, part)
                    parts[element] = parts.get(element, 0) + 1
                    if parts[element] == kind.chunks:
                        left[owner][0].remove(element)
                        del parts[element]
            elif context.get(loader.pad_valid):
                element, number = context.get(loader.pad_index), context.get(loader.pad_kind)
                owner = next(n for n in sorted(left) if left[n][1])
                assert NUMBERS[loads[owner].memory] == number
                left[owner][1].remove(element)
            done = bool(left) and not any(left[min(left)])
            assert context.get(loader.retirement.valid) == done
            assert context.get(loader.retirement.occupied) == bool(left)
            if done:
                found = context.get(loader.retirement.retired)
                assert (found.index, context.get(loader.retirement.oldest)) == (retired, retired)
                one = loads[retired]
                assert (found.push_prev, found.push_next) == (one.push_prev, one.push_next)
                del left[retired]
                retired += 1
            if start:
                assert isinstance(load, Load)
                left[started] = expected_words(load)
                started += 1
            await context.tick()
            if retired == len(loads):
                break
        assert retired == len(loads)
        assert answers.asked == [(n, b) for n, load in enumerate(loads) for b in bursts_of(load, CONFIG)]

    run(loader, bench)


def wanted(dram: Dram, load: Any, element: int, begin: int, count: int) -> int:
    """Bytes of the DRAM element for a scratchpad element."""
    rows = dram_rows(load, CONFIG)
    assert rows is not None
    y, x = divmod(element - load.sram_base, load.width)
    size = rows.row_bytes // load.x_size
    address = rows.start + (y - load.y_pad_0) * rows.stride + (x - load.x_pad_0) * size + begin
    return as_integer(dram.read(address, count))


def test_a_load_that_meets_one_in_flight_conflicts() -> None:
    """Faulty and empty LOADs, and those of another memory, do not conflict."""
    loader = LoadExecutor(KINDS, 2, CONFIG)

    async def bench(context: Any) -> None:
        offer(context, loader.entry, Load(memory=Memory.ACC, sram_base=8, x_size=4, y_size=1), 0, CONFIG)
        context.set(loader.start, 1)
        context.set(loader.taking, 1)
        await context.tick()
        context.set(loader.start, 0)
        for sram, size, memory, conflict in (
            (11, 1, Memory.ACC, True),
            (12, 1, Memory.ACC, False),
            (4, 4, Memory.ACC, False),
            (4, 5, Memory.ACC, True),
            (8, 0, Memory.ACC, False),
            (8, 4, Memory.UOP, False),
        ):
            load = Load(memory=memory, sram_base=sram, x_size=size, y_size=1)
            await offer_next(context, loader.entry, loader.following, load, 1, CONFIG)
            for faulty in (0, 1):
                context.set(loader.faulty, faulty)
                assert context.get(loader.conflict) == (conflict and not faulty), (sram, size)
        pads = Load(memory=Memory.ACC, sram_base=10, x_size=1, y_pad_0=1)
        await offer_next(context, loader.entry, loader.following, pads, 1, CONFIG)
        context.set(loader.faulty, 0)
        assert context.get(loader.conflict)

    run(loader, bench)
