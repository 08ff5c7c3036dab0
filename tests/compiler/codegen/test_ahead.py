"""LOADs come earlier than others that wait: only their order changes, and no product reads anything else."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

import accel
from accel.compiler.codegen.ahead import loads_ahead
from accel.compiler.plans.gemm_plans import GemmPlan
from accel.compiler.plans.gemm_schedule import gemm_schedule
from accel.compiler.target.registry import Emitted
from accel.core.isa import Gemm, Load, Loops, Memory, SetInp, Store
from tests.compiler.running import steps

M = accel.machine("tiny-int8")
KEPT, OTHERS = 1, 2
"""Statements."""


def load(memory: Memory, base: int, rows: int, row: int, dram: int, statement: int = OTHERS) -> Emitted:
    instruction = Load(
        memory=memory, sram_base=base, dram_base=dram, y_size=rows, x_size=row, x_stride=row + 3
    )
    return Emitted(instruction, part=int(memory), statement=statement)


def product(inp: int, wgt: int, times: int) -> Emitted:
    """Reads elements of both from these on, as many times."""
    instruction = Gemm(uop_end=1, iter_out=times, src_factor_out=1, wgt_factor_out=1)
    return Emitted(instruction, np.array([(0, inp, wgt)], dtype=np.int64))


def seen(emitted: list[Emitted]) -> list[object]:
    """What each product reads, as the places in DRAM that it comes from, in order; and what else there is."""
    held: dict[tuple[Memory, int], tuple[int, int]] = {}
    found: list[object] = []
    for one in emitted:
        instruction = one.instruction
        if isinstance(instruction, Load):
            for row in range(instruction.y_size):
                for column in range(instruction.x_size):
                    place = (
                        Memory(instruction.memory),
                        instruction.sram_base + row * instruction.x_size + column,
                    )
                    held[place] = one.part, instruction.dram_base + row * instruction.x_stride + column
        elif isinstance(instruction, Loops):
            reads = steps([one])
            found.append([(held.get((Memory.INP, b)), held.get((Memory.WGT, c))) for _, b, c in reads])
        else:
            found.append(instruction)
    return found


def rounds(number: int, places: int, *, sets: int = 2) -> list[Emitted]:
    """Rounds of weights that are kept throughout places, and inputs of each place in one of two buffers."""
    emitted = []
    for n in range(number):
        emitted.append(load(Memory.WGT, n % sets * 8, 4, 2, 100 * n, KEPT))
        for place in range(places):
            emitted.append(load(Memory.INP, place % 2 * 2, 1, 2, 2 * place))
            emitted += [product(place % 2 * 2 + k, n % sets * 8 + 4 * k, 4) for k in range(2)] * 16
    return emitted


def kept_after(emitted: list[Emitted]) -> list[int]:
    """For each LOAD of what is kept, how many products come before."""
    found, products = [], 0
    for one in emitted:
        products += isinstance(one.instruction, Gemm)
        if one.statement == KEPT:
            found += [products] * (one.instruction.x_size * one.instruction.y_size)  # type: ignore[attr-defined]
    return found


def test_what_the_next_round_needs_comes_beside_this_one() -> None:
    emitted = rounds(3, 6)
    found = loads_ahead(emitted, M.config, {KEPT})
    assert seen(found) == seen(emitted)
    assert max(kept_after(found)[8:16]) < max(kept_after(emitted)[8:16])
    assert kept_after(found)[:8] == [0] * 8
    assert [one for one in found if one.statement == OTHERS] == [
        one for one in emitted if one.statement == OTHERS
    ]


def test_what_is_needed_still_is_not_replaced() -> None:
    """One set: there is room as soon as the last place does not need it any more."""
    emitted = rounds(3, 6, sets=1)
    found = loads_ahead(emitted, M.config, {KEPT})
    assert seen(found) == seen(emitted)
    assert min(kept_after(found)[8:16]) > 5 * 32


def test_nothing_is_kept() -> None:
    emitted = rounds(2, 4)
    assert loads_ahead(emitted, M.config, set()) == emitted
    assert loads_ahead(emitted, M.config, {KEPT + 7}) == emitted


@pytest.mark.parametrize("between", ["setting", "stored"])
def test_what_loads_do_not_pass(between: str) -> None:
    """A setting of the load unit, and what the program itself has written."""
    emitted = rounds(2, 6)
    place = next(n for n, one in enumerate(emitted) if one.statement == KEPT and n)
    if between == "setting":
        emitted.insert(place, Emitted(SetInp(zero=3)))
    else:
        store = Store(memory=Memory.OUT, y_size=1, x_size=1, x_stride=1)
        emitted.insert(place, Emitted(store, part=int(Memory.WGT)))
    assert loads_ahead(emitted, M.config, {KEPT}) == emitted


def test_any_program_reads_the_same() -> None:
    """LOADs of any size to any place, those of any statement kept."""
    moved = 0
    for seed in range(60):
        rng = Random(seed)
        emitted = []
        for number in range(60):
            rows, row = rng.randint(1, 3), rng.randint(1, 4)
            if rng.random() < 0.5:
                memory = rng.choice([Memory.INP, Memory.WGT])
                base = rng.randint(0, 12)
                emitted.append(load(memory, base, rows, row, 16 * number, rng.choice([KEPT, OTHERS])))
            else:
                emitted.append(product(rng.randint(0, 12), rng.randint(0, 12), rng.choice([1, 4, 40])))
        found = loads_ahead(emitted, M.config, {KEPT})
        assert seen(found) == seen(emitted)
        moved += found != emitted
    assert moved > 20


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("kept", ["weights", "both"])
def test_weights_of_the_next_columns_take_no_time(kept: str, threads: int) -> None:
    """Where there is room for them, they are loaded beside the products of these ones."""
    machine = accel.machine("vta")
    workload = accel.gemm(64, 256, 128, shift=6, bias=True)
    plan = GemmPlan(
        rows=8, columns=4, depth=2, threads=threads, thread_axis="inner", outer="columns", kept=kept
    )  # type: ignore[arg-type]
    cycles = []
    for ahead in (False, True):
        schedule = gemm_schedule(workload, machine, replace(plan, ahead=ahead))
        program = accel.build(schedule, machine)
        result = program.run()
        assert program.check().ok
        assert not result.mismatches
        cycles.append(result.cycles)
    assert cycles[1] < cycles[0]
