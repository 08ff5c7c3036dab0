"""Operand fields that the hardware reads, compared with the operands that instructions declare."""

from random import Random
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import NAMED, Config
from accel.core.instruction_access import COLUMNS
from accel.core.isa import Loops, class_slots, encode, loops_of
from accel.core.isa.operands import factor_fields
from accel.hw.datapath.operands import depth, factor, operand_of, used
from accel.hw.datapath.word_layouts import view
from tests.hw.bench import run
from tests.strategies import random_loops


class Taken(wiring.Component):
    """Outputs all operand fields of an instruction; ``number`` selects its class."""

    def __init__(self, config: Config) -> None:
        self._config = config
        ports: dict[str, Any] = {"word": In(128), "number": In(4)}
        for name in COLUMNS:
            ports |= {f"used_{name}": Out(1), f"depth_{name}": Out(32)}
            ports |= {field: Out(32) for field in factor_fields(name)}
        super().__init__(ports)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self._config
        classes = loops_of(config)
        views = {cls: view(cls, config, self.word) for cls in classes}
        chosen = {cls: self.number == n for n, cls in enumerate(classes)}
        flags: dict[str, Any] = {}
        for cls in reversed(classes):
            for slot in class_slots(cls, config):
                flags[slot.name] = getattr(views[cls], slot.name)
        for name in COLUMNS:
            condition = used(name, flags, chosen, config)
            m.d.comb += [
                getattr(self, f"used_{name}").eq(1 if condition is None else condition),
                getattr(self, f"depth_{name}").eq(depth(name, chosen, config)),
                *(getattr(self, one).eq(factor(one, views, chosen, config)) for one in factor_fields(name)),
            ]
        return m


@pytest.mark.parametrize("name", ["vta", "gemm8x8", "tiny", "vta-int8", "tiny-int8"])
def test_operand_fields_equal_the_declared_ones(name: str) -> None:
    config = NAMED[name]
    taken, classes = Taken(config), loops_of(config)

    async def bench(context: Any) -> None:
        rng = Random(1)
        seen: set[type[Loops]] = set()
        for _ in range(150):
            instruction = random_loops(rng, config, factor=1 << 20)
            cls = type(instruction)
            seen.add(cls)
            context.set(taken.word, int.from_bytes(encode([instruction], config), "little"))
            context.set(taken.number, classes.index(cls))
            await context.delay(1e-9)
            for column in COLUMNS:
                operand = operand_of(cls, column)
                uses = operand is not None and operand.used_by(instruction)
                assert context.get(getattr(taken, f"used_{column}")) == uses
                if operand is None:
                    continue
                assert context.get(getattr(taken, f"depth_{column}")) == operand.memory.depth(config)
                for field in operand.factors:
                    assert context.get(getattr(taken, field)) == getattr(instruction, field), field
        assert seen == set(classes)

    run(taken, bench)
