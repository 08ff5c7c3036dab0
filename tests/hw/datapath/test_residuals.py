"""Counts of the elements of RES, against the instructions that load and take them."""

from collections import deque
from random import Random
from typing import Any

import pytest

from accel.core.config import NAMED
from accel.hw.datapath.layouts import sram_bits
from accel.hw.datapath.residuals import Residuals
from tests.hw.bench import drive, run


@pytest.mark.parametrize(("depth", "in_flight"), [(2, 1), (16, 3), (16, 8)])
def test_counts_are_those_of_what_is_under_way(depth: int, in_flight: int) -> None:
    """LOADs are written in their order, STOREs of any kind retire in theirs; all in cycles of their own."""
    config = NAMED["tiny-int8"].override(
        {"res_bytes": 4 * depth, "loads_in_flight": in_flight, "stores_in_flight": in_flight}
    )
    residuals = Residuals(config)
    most = (1 << sram_bits(config)) - 1
    seen: set[str] = set()

    async def bench(context: Any) -> None:
        rng = Random(depth + in_flight)
        held = loaded = kept = ready = 0
        loads: deque[int] = deque()
        stores: deque[int] = deque()
        for _ in range(3000):
            kind = rng.choice(("load", "load", "add", "add", "other"))
            elements = rng.choice((0, 1, 2, rng.randint(0, depth + 2), most))
            written = bool(loads) and rng.random() < 0.4
            retire = bool(stores) and rng.random() < 0.4
            full = kind == "load" and elements > 0 and held + elements > depth
            empty = kind == "add" and elements > held
            room = kind != "load" or kept + elements <= depth
            there = kind != "add" or elements <= ready
            drive(context, residuals, elements=elements, is_load=kind == "load", is_add=kind == "add")
            assert context.get(residuals.full) == full
            assert context.get(residuals.empty) == empty
            assert context.get(residuals.room) == room
            assert context.get(residuals.there) == there
            assert context.get(residuals.begin) == loaded % depth
            free = len(loads if kind == "load" else stores) < in_flight
            start = free and not full and not empty and room and there and rng.random() < 0.7
            flush = rng.random() < 0.005
            drive(context, residuals, load=start and kind == "load", store=start and kind != "load")
            drive(context, residuals, written=written, retire=retire, flush=flush)
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
            elif start:
                taken = elements if kind == "add" else 0
                held, ready = held - taken, ready - taken
                stores.append(taken)
            if flush:
                held = loaded = kept = ready = 0
                loads.clear()
                stores.clear()

    run(residuals, bench)
    assert seen == {"full", "empty", "room", "there"}
