"""Occupancy of RES compared with the instructions that load and read its elements."""

from collections import deque
from random import Random
from typing import Any

import pytest

from accel.core.config import NAMED
from accel.hw.datapath.res_occupancy import ResOccupancy
from accel.hw.datapath.word_layouts import sram_bits
from tests.hw.bench import drive, run
from tests.thorough import also


@pytest.mark.parametrize(("depth", "in_flight"), [(2, 1), also(16, 3), (16, 8)])
def test_counts_equal_the_instructions_in_flight(depth: int, in_flight: int) -> None:
    """LOADs are written in order, and STOREs of any kind retire in order. All of this happens in random
    cycles. An instruction stays until it starts, or until a flush drops it."""
    config = NAMED["tiny-int8"].override(
        {"res_bytes": 4 * depth, "loads_in_flight": in_flight, "stores_in_flight": in_flight}
    )
    residuals = ResOccupancy(config)
    most = (1 << sram_bits(config)) - 1
    seen: set[str] = set()

    async def bench(context: Any) -> None:
        rng = Random(depth + in_flight)
        held = loaded = kept = ready = 0
        loads: deque[int] = deque()
        stores: deque[int] = deque()
        at_hand: tuple[str, int] | None = None
        for _ in range(6000):
            following = (
                rng.choice(("load", "load", "add", "add", "store", "other")),
                rng.choice((0, 1, 2, rng.randint(0, depth + 2), most)),
            )
            valid = at_hand is not None
            kind, elements = at_hand or ("other", rng.randint(0, most))
            written = bool(loads) and rng.random() < 0.4
            retire = bool(stores) and rng.random() < 0.4
            full = kind == "load" and elements > 0 and held + elements > depth
            empty = kind == "add" and elements > held
            room = kind != "load" or kept + elements <= depth
            there = kind != "add" or elements <= ready
            drive(context, residuals, valid=valid, elements=elements, following=following[1])
            drive(context, residuals, is_load=kind == "load", is_add=kind == "add")
            drive(context, residuals, is_store=kind in ("add", "store"))
            assert not valid or context.get(residuals.full) == full
            assert not valid or context.get(residuals.empty) == empty
            assert not valid or context.get(residuals.room) == room
            assert not valid or context.get(residuals.there) == there
            assert context.get(residuals.begin) == loaded % depth
            free = len(loads if kind == "load" else stores) < in_flight
            can = valid and free and not full and not empty and room and there
            start = can and rng.random() < 0.7
            flush = rng.random() < (0.2 if full or empty else 0.002)
            drive(context, residuals, start=start, written=written, retire=retire, flush=flush)
            seen.update(name for name, there in (("full", full), ("empty", empty)) if there)
            seen.update(
                name for name, waits in (("room", room), ("there", there)) if not waits and not full | empty
            )
            await context.tick()
            ready += loads.popleft() if written else 0
            kept -= stores.popleft() if retire else 0
            if start and kind == "load":
                held, kept, loaded = held + elements, kept + elements, loaded + elements
                if elements:
                    loads.append(elements)
            elif start and kind != "other":
                taken = elements if kind == "add" else 0
                held, ready = held - taken, ready - taken
                stores.append(taken)
            if start or not valid:
                at_hand = following if rng.random() < 0.8 else None
            if flush:
                at_hand = None
                held = loaded = kept = ready = 0
                loads.clear()
                stores.clear()

    run(residuals, bench)
    assert seen == {"full", "empty", "room", "there"}
