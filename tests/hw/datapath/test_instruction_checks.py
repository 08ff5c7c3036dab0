"""Faults that units detect, compared with the fault definitions of :mod:`accel.core.isa`."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import NAMED, Config
from accel.core.fault_causes import Cause, instruction_fault
from accel.core.isa import (
    AluOp,
    Instruction,
    Load,
    Loops,
    Memory,
    Opcode,
    Set,
    SetAcc,
    SetOut,
    SetSum,
    Store,
    Unit,
    class_of,
    class_slots,
    encode,
)
from accel.core.requantize import MAX_ADD_SHIFT
from accel.hw.datapath.instruction_checks import CAUSE_BITS, cause_of, known_of
from accel.hw.datapath.word_layouts import add_up, multiply_out, view
from tests.hw.bench import run
from tests.strategies import any_instruction
from tests.thorough import also


class Checks(wiring.Component):
    def __init__(self, unit: Unit, config: Config) -> None:
        self._unit = unit
        self._config = config
        super().__init__({"word": In(128), "mem_size": In(41), "cause": Out(CAUSE_BITS)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self._config
        transfer = view(Load, config, self.word)
        padded = transfer.opcode != Opcode.STORE if config.post else None
        box = add_up(m, transfer, multiply_out(m, transfer, padded=padded), padded=padded)
        known = known_of(m, self._unit, self.word, self.mem_size, config)
        m.d.comb += self.cause.eq(cause_of(m, known, box))
        return m


def suspect(rng: Random, unit: Unit, config: Config) -> Instruction:
    """A random instruction of the unit. Each field is small, close to its highest value, or
    arbitrary."""
    while True:
        instruction = any_instruction(rng, config)
        if instruction.unit is not unit or not isinstance(
            instruction, Load | Store | Loops | SetAcc | SetOut | SetSum
        ):
            continue
        slots = class_slots(type(instruction), config)
        values = {slot.name: getattr(instruction, slot.name) for slot in slots}
        kept = ("opcode", "memory", "part", "alu_op")
        if not isinstance(instruction, Set) and rng.random() < 0.2:
            kept = ("opcode",)
        pads, flags = rng.random() < 0.5, rng.random() < 0.5
        for name, value in values.items():
            if name in kept:
                continue
            if isinstance(value, bool):
                values[name] = value and flags
            elif "pad" in name:
                values[name] = value if pads else 0
            elif rng.random() < 0.7:
                values[name] = rng.choice([0, 0, 1, 1, 2, 3])
        if rng.random() < 0.7 and "alu_op" in values:
            values["alu_op"] = rng.choice(list(AluOp))
        if rng.random() < 0.7 and type(instruction) is Store:
            values["memory"] = Memory.OUT
        if rng.random() < 0.3 and "sram_base" in values:
            values["sram_base"] = config.acc_depth - rng.randint(0, 12)
        if rng.random() < 0.3 and "par" in values:
            values["par"] = config.par_depth - rng.randint(0, 4)
        if rng.random() < 0.5 and "shift" in values:
            values["shift"] = MAX_ADD_SHIFT + rng.randint(0, 1)
        cls = class_of(values["opcode"], values.get("memory", 0), config, part=int(values.get("part", 0)))
        assert cls is not None
        if {slot.name for slot in class_slots(cls, config)} != set(values):
            continue
        changed = cls(**values)
        if changed.unit is unit:
            return changed


@pytest.mark.parametrize("name", [also("tiny"), "tiny-int8"])
@pytest.mark.parametrize("unit", [Unit.LOAD, Unit.COMPUTE, Unit.STORE], ids=lambda unit: unit.label)
def test_the_first_fault_is_the_definitions(unit: Unit, name: str) -> None:
    base = NAMED[name]
    checks = Checks(unit, base)
    tally: Counter[Cause] = Counter()

    async def bench(context: Any) -> None:
        rng = Random(unit)
        for _ in range(1500):
            config = base.override({"mem_size": rng.choice([256, 256, 1 << 28, (1 << 32) + 5])})
            instruction = suspect(rng, unit, config)
            context.set(checks.word, int.from_bytes(encode([instruction], config), "little"))
            context.set(checks.mem_size, config.mem_size)
            expected = instruction_fault(instruction, config)
            cause = Cause.NONE if expected is None else expected.cause
            assert Cause(context.get(checks.cause)) == cause, instruction
            tally[cause] += 1

    run(checks, bench)
    causes = {
        Unit.LOAD: {Cause.NEIGHBOUR, Cause.SRAM_RANGE, Cause.DRAM_RANGE},
        Unit.COMPUTE: {
            Cause.MEMORY_ID,
            Cause.SRAM_RANGE,
            Cause.DRAM_RANGE,
            Cause.ALU_OP,
            Cause.UOP_RANGE,
        },
        Unit.STORE: {Cause.NEIGHBOUR, Cause.MEMORY_ID, Cause.STORE_PAD, Cause.SRAM_RANGE, Cause.DRAM_RANGE},
    }[unit] | {Cause.NONE}
    if base.post and unit is not Unit.LOAD:
        causes.add(Cause.RESERVED)
    assert all(tally[cause] > 5 for cause in causes), tally
