"""Token counters against plain counting."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from accel.core.config import NAMED
from accel.hw.units.tokens import TokenCounters
from tests.hw.bench import run


@pytest.mark.parametrize("bits", [1, 3])
def test_tokens_are_counted_and_overflow_is_seen(bits: int) -> None:
    counters = TokenCounters(replace(NAMED["tiny"], token_bits=bits))
    limit = (1 << bits) - 1

    async def bench(context: Any) -> None:
        rng = Random(bits)
        held = [0, 0, 0, 0]
        overflows = 0
        for _ in range(800):
            push = [rng.random() < 0.6 for _ in held]
            pop = [count > 0 and rng.random() < 0.5 for count in held]
            context.set(counters.push, sum(bit << n for n, bit in enumerate(push)))
            context.set(counters.pop, sum(bit << n for n, bit in enumerate(pop)))
            full = [p and not q and count == limit for count, p, q in zip(held, push, pop, strict=True)]
            overflows += sum(full)
            assert context.get(counters.available) == sum((c > 0) << n for n, c in enumerate(held))
            assert context.get(counters.overflow) == sum(bit << n for n, bit in enumerate(full))
            clear = rng.random() < 0.02
            context.set(counters.clear, clear)
            await context.tick()
            held = [min(limit, c + p - q) for c, p, q in zip(held, push, pop, strict=True)]
            if clear:
                held = [0, 0, 0, 0]
        assert overflows

    run(counters, bench)
