"""The walker over padding compared with the definition of a padded box."""

from random import Random
from typing import Any

import numpy as np

from accel.core.config import NAMED
from accel.core.isa import PAD_BITS, Load, Memory
from accel.hw.datapath.pads import PadWalker
from tests.hw.bench import box_of, drive, run

CONFIG = NAMED["vta"]
MOST = (1 << PAD_BITS) - 1


def any_load(rng: Random) -> Load:
    """A random LOAD with padding, sometimes with the largest values of its fields, or
    without data rows."""
    while True:
        pads = {f"{axis}_pad_{side}": rng.choice([0, 0, 1, 3, MOST]) for axis in "xy" for side in (0, 1)}
        load = Load(
            memory=Memory.ACC,
            sram_base=rng.randint(0, 40),
            x_size=rng.randint(1, 6),
            y_size=rng.choice([0, 1, 1, 2, 3, 9]),
            **pads,  # type: ignore[arg-type]
        )
        if len(padding(load)) and load.sram_base + load.sram_elements <= CONFIG.acc_depth:
            return load


def padding(load: Load) -> list[int]:
    """The scratchpad elements that are zero, in order."""
    box = np.ones((load.height, load.width), dtype=bool)
    box[load.y_pad_0 : load.y_pad_0 + load.y_size, load.x_pad_0 : load.x_pad_0 + load.x_size] = False
    return (load.sram_base + np.flatnonzero(box)).tolist()


def present(context: Any, walker: PadWalker, load: Load, kind: int) -> None:
    box = box_of(load)
    drive(
        context,
        walker.pads,
        kind=kind,
        sram=load.sram_base,
        gap=load.x_pad_0 + load.x_pad_1,
        x_size=load.x_size,
        y_size=load.y_size,
        **{name: box[name] for name in ("head", "tail", "body")},
    )


def test_pads_are_the_rest_of_the_box() -> None:
    """Check word by word and LOAD by LOAD. The next LOAD starts with the step over the last
    word, or later."""
    walker = PadWalker(CONFIG)

    async def bench(context: Any) -> None:
        rng = Random(0)
        for number in range(150):
            load, kind = any_load(rng), number % 3
            context.set(walker.start, 1)
            present(context, walker, load, kind)
            await context.tick()
            context.set(walker.start, 0)
            expected = padding(load)
            for position, element in enumerate(expected):
                context.set(walker.step, 0)
                for _ in range(rng.choice([0, 0, 0, 1])):
                    await context.tick()  # a beat of data takes precedence
                assert context.get(walker.valid)
                assert (context.get(walker.index), context.get(walker.kind)) == (element, kind)
                last = position == len(expected) - 1
                assert context.get(walker.last) == last
                context.set(walker.step, 1)
                if not last:
                    await context.tick()
            if rng.random() < 0.3:
                await context.tick()
                context.set(walker.step, 0)
                assert not context.get(walker.valid)

    run(walker, bench)


def test_a_flush_drops_the_current_load() -> None:
    walker = PadWalker(CONFIG)

    async def bench(context: Any) -> None:
        present(context, walker, Load(memory=Memory.ACC, x_size=2, y_size=1, y_pad_0=3), 0)
        context.set(walker.start, 1)
        await context.tick()
        context.set(walker.start, 0)
        assert context.get(walker.valid)
        context.set(walker.flush, 1)
        await context.tick()
        assert not context.get(walker.valid)

    run(walker, bench)
