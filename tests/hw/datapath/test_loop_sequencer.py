"""The loops of GEMM, MAC and ALU compared with their definition."""

from random import Random
from typing import Any

import pytest

from accel.base.records import replace
from accel.core.config import NAMED, Config
from accel.core.isa import Alu, AluOp, Gemm, Mac, encode
from accel.core.timing_rules import busy_slots, uop_slots
from accel.hw.datapath.loop_sequencer import Sequencer
from tests.hw.bench import run

CONFIG, SECOND = NAMED["tiny"], NAMED["tiny-int8"]


def any_loops(rng: Random, config: Config) -> Gemm | Mac | Alu:
    """A few iterations of a few micro-ops, with arbitrary factors."""
    begin = rng.randrange(config.uop_depth - 4)  # instructions that exceed uop do not start
    high = 1 << config.acc_address_bits
    shape = {
        "uop_begin": begin,
        "uop_end": rng.choice([begin, begin + 1, begin + rng.randint(0, 4)]),
        "iter_out": rng.choice([0, 1, 1, 2, 3]),
        "iter_in": rng.choice([0, 1, 1, 2, 3]),
        "dst_factor_out": rng.randrange(high),
        "dst_factor_in": rng.randrange(high),
        "src_factor_out": rng.randrange(1 << config.inp_address_bits),
        "src_factor_in": rng.randrange(1 << config.inp_address_bits),
    }
    kind = rng.randint(0, 1 + config.post)
    if kind == 1:
        return Alu(
            **shape, alu_op=rng.choice(list(AluOp)), use_imm=bool(rng.randint(0, 1)), imm=rng.randint(-9, 9)
        )
    wgt = 1 << config.wgt_address_bits
    factors = {"wgt_factor_out": rng.randrange(wgt), "wgt_factor_in": rng.randrange(wgt)}
    if kind == 2:
        return Mac(**shape, **factors, overwrite=bool(rng.randint(0, 1)), depthwise=bool(rng.randint(0, 1)))
    return Gemm(**shape, **factors, reset=bool(rng.randint(0, 1)))


@pytest.mark.parametrize(
    "config",
    [CONFIG, SECOND, replace(CONFIG, mul_slots=2), replace(SECOND, mul_slots=5)],
    ids=["tiny", "tiny-int8", "two slots", "five slots"],
)
def test_a_micro_op_a_cycle_back_to_back(config: Config) -> None:
    sequencer = Sequencer(config)

    async def bench(context: Any) -> None:
        rng = Random(1)
        context.set(sequencer.start, 1)
        instruction = any_loops(rng, config)
        for index in range(250):
            assert context.get(sequencer.free)
            word = int.from_bytes(encode([instruction], config), "little")
            context.set(sequencer.entry.word, word)
            context.set(sequencer.entry.index, index)
            context.set(sequencer.start, 1)
            await context.tick()
            context.set(sequencer.start, 0)
            each = uop_slots(instruction, config)
            slots = max(1, busy_slots(instruction, config))
            uops = range(instruction.uop_begin, instruction.uop_end)
            points = [
                (i, j, u)
                for i in range(instruction.iter_out)
                for j in range(instruction.iter_in)
                for u in uops
            ]
            for slot in range(slots):
                operation = context.get(sequencer.operation)
                assert context.get(sequencer.index) == index
                assert operation.run == (bool(points) and slot % each == each - 1)
                assert operation.last == (slot == slots - 1)
                assert context.get(sequencer.free) == (slot == slots - 1)
                assert context.get(sequencer.issuing) == (slot < slots - 1)
                if points:
                    i, j, u = points[slot // each]
                    assert context.get(sequencer.address) == u
                    for name in ("dst", "src", "wgt"):
                        outer = getattr(instruction, f"{name}_factor_out", 0)
                        inner = getattr(instruction, f"{name}_factor_in", 0)
                        if name != "wgt" or not isinstance(instruction, Alu):
                            assert context.get(getattr(sequencer, name)) == i * outer + j * inner
                    if isinstance(instruction, Alu):
                        assert (operation.op, operation.use_imm) == (instruction.alu_op, instruction.use_imm)
                        assert operation.imm == instruction.imm
                    elif isinstance(instruction, Gemm):
                        assert operation.reset == instruction.reset
                    else:
                        assert (operation.reset, operation.overwrite) == (0, instruction.overwrite)
                        assert operation.depthwise == instruction.depthwise
                    assert operation.gemm == isinstance(instruction, Gemm)
                    if config.post:
                        assert operation.mac == isinstance(instruction, Mac)
                if slot < slots - 1:
                    await context.tick()
            instruction = any_loops(rng, config)
            for _ in range(rng.choice([0, 0, 2])):
                await context.tick()

    run(sequencer, bench)
