"""Register slices lose, repeat and reorder nothing, and do not block."""

from random import Random
from typing import Any

import pytest

from accel.hw.bus.register_slices import Slice
from tests.hw.bench import run


@pytest.mark.parametrize(("offered", "taken"), [(1.0, 1.0), (0.5, 1.0), (1.0, 0.5), (0.6, 0.6), (0.9, 0.2)])
def test_items_leave_in_order_and_unchanged(offered: float, taken: float) -> None:
    part = Slice(16)
    went: list[int] = []
    came: list[tuple[int, int]] = []

    async def bench(context: Any) -> None:
        rng = Random(str((offered, taken)))
        waiting = False
        for now in range(400):
            if not waiting:
                context.set(part.in_valid, rng.random() < offered)
                context.set(part.in_data, rng.getrandbits(16))
            context.set(part.out_ready, rng.random() < taken)
            valid = context.get(part.in_valid)
            if valid and context.get(part.in_ready):
                went.append(context.get(part.in_data))
            waiting = bool(valid and not context.get(part.in_ready))
            if context.get(part.out_valid) and context.get(part.out_ready):
                came.append((now, context.get(part.out_data)))
            await context.tick()

    run(part, bench)
    assert [data for _, data in came] == went[: len(came)]
    assert len(went) - len(came) <= 2
    if offered == taken == 1.0:
        assert [now for now, _ in came] == list(range(1, 400))
