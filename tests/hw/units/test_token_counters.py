from random import Random
from typing import Any

import pytest

from accel.base.records import replace
from accel.core.config import NAMED
from accel.core.isa import Unit
from accel.core.token_rules import WORKERS, Counter
from accel.hw.datapath.unit_ports import port_of
from accel.hw.units.token_counters import TokenCounters
from tests.hw.bench import drive, run


def side(unit: Unit, neighbour: Unit) -> int:
    """A unit's bit for tokens from or to one of its neighbours."""
    return 1 if neighbour is unit.previous else 2


@pytest.mark.parametrize("bits", [1, 3])
def test_tokens_are_counted_and_overflow_is_reported(bits: int) -> None:
    counters = TokenCounters(replace(NAMED["tiny"], token_bits=bits))
    limit = (1 << bits) - 1

    async def bench(context: Any) -> None:
        rng = Random(bits)
        held = [0, 0, 0, 0]
        overflows = 0
        for _ in range(800):
            push = [rng.random() < 0.6 for _ in held]
            pop = [count > 0 and rng.random() < 0.5 for count in held]
            for counter in Counter:
                access = port_of(counters, counter.target)
                drive(context, access, pops=side(counter.target, counter.source), take=0)
                assert context.get(access.there) == (held[counter] > 0)
            for unit in WORKERS:
                given = [side(unit, c.target) for c in Counter if c.source is unit and push[c]]
                taken = [side(unit, c.source) for c in Counter if c.target is unit and pop[c]]
                access = port_of(counters, unit)
                drive(context, access, pops=sum(taken), pushes=sum(given), take=1, give=1)
                assert context.get(access.there)
            full = [p and not q and count == limit for count, p, q in zip(held, push, pop, strict=True)]
            overflows += sum(full)
            assert context.get(counters.overflow) == sum(bit << n for n, bit in enumerate(full))
            clear = rng.random() < 0.02
            context.set(counters.clear, clear)
            await context.tick()
            held = [min(limit, c + p - q) for c, p, q in zip(held, push, pop, strict=True)]
            if clear:
                held = [0, 0, 0, 0]
        assert overflows

    run(counters, bench)
