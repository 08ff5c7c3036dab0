"""Epilogues and STOREs split into pieces: their order, and the tiles that stay whole."""

import numpy as np
import pytest

import accel
from accel.base.records import replace
from accel.compiler.codegen.interleave_epilogues import InterleaveEpilogues
from accel.compiler.codegen.reorder_pass import EmittedProgram
from accel.compiler.codegen.split_last_steps import SplitLastSteps
from accel.compiler.plans.gemm_plan import GemmPlan
from accel.compiler.plans.gemm_schedule import gemm_schedule
from accel.compiler.target.accumulator_pieces import piece_count
from accel.compiler.target.emitter_registry import Emitted
from accel.core.isa import Alu, AluOp, Gemm, Load, Loops, Memory, Store
from tests.compiler.running import steps

CONFIG = accel.machine("vta").config
ELEMENTS = 64
PARTS = int(piece_count(ELEMENTS))


def over(kind: type[Gemm | Alu], base: int, elements: int = ELEMENTS, **fields: object) -> Emitted:
    """An instruction with one micro-op for each of some accumulators."""
    instruction = kind(uop_end=1, iter_out=elements, iter_in=1, dst_factor_out=1, **fields)  # type: ignore[arg-type]
    return Emitted(instruction, np.array([(base, 0, 0)], dtype=np.int64))


def store(base: int, rows: int = 1, row: int = ELEMENTS) -> Emitted:
    return Emitted(Store(memory=Memory.OUT, sram_base=base, y_size=rows, x_size=row, x_stride=row))


def load() -> Emitted:
    return Emitted(Load(memory=Memory.INP, x_size=1, y_size=1, x_stride=1))


def shift(base: int) -> Emitted:
    return over(Alu, base, alu_op=AluOp.SHR, use_imm=True, imm=3)


def tile(base: int) -> list[Emitted]:
    """A tile: reset, products, an ALU pass, a STORE."""
    return [over(Gemm, base, reset=True), load(), over(Gemm, base), shift(base), store(base)]


def reordered(emitted: list[Emitted]) -> list[Emitted]:
    """The program after both passes for machines with ``post=0``."""
    program = EmittedProgram(emitted=emitted, config=CONFIG)
    return list(SplitLastSteps().run(InterleaveEpilogues().run(program)).emitted)


def names(emitted: list[Emitted]) -> list[str]:
    return [one.instruction.mnemonic.partition(".")[0] for one in emitted]


def written(emitted: list[Emitted]) -> list[int]:
    return sorted(s[0] for one in emitted if isinstance(one.instruction, Loops) for s in steps([one]))


@pytest.mark.parametrize("rows", [1, 2, 4, ELEMENTS])
def test_a_tile_with_the_same_accumulators_waits_for_pieces(rows: int) -> None:
    first = [*tile(0)[:-1], store(0, rows, ELEMENTS // rows)]
    found = reordered([*first, *tile(0)])
    cut = names(found)
    assert cut[:4] == ["GEMM", "LOAD", "GEMM", "LOAD"]  # the next tile's LOAD need not wait
    assert cut[4 : 4 + 2 * PARTS] == ["ALU", "STORE"] * PARTS
    assert cut[4 + 2 * PARTS : 4 + 4 * PARTS] == ["GEMM", "GEMM"] * PARTS
    assert cut[4 + 4 * PARTS :] == ["ALU", "STORE"] * PARTS  # no tile follows the last one
    assert written(found) == written([*first, *tile(0)])
    stores = [one.instruction for one in found if isinstance(one.instruction, Store)]
    covered = [s.sram_base + n for s in stores for n in range(s.sram_elements)]
    assert sorted(covered) == sorted(2 * list(range(ELEMENTS)))
    assert all(s.sram_base == s.dram_base for s in stores)


def test_a_tile_with_other_accumulators_stays_whole() -> None:
    """The next tile uses other accumulators, so only the last tile is stored in pieces."""
    found = reordered([*tile(0), *tile(ELEMENTS)])
    assert names(found)[:7] == ["GEMM", "LOAD", "GEMM", "ALU", "STORE", "GEMM", "LOAD"]
    assert names(found)[7:] == ["GEMM", "ALU", "STORE"] * PARTS


def test_a_larger_tile_starts_with_free_accumulators() -> None:
    larger = [over(Gemm, 0, 2 * ELEMENTS, reset=True), load(), over(Gemm, 0, 2 * ELEMENTS)]
    found = reordered([*tile(0), *larger])
    resets = [s[0] for one in found[4 + 2 * PARTS :] for s in steps([one])][::2]
    assert names(found)[4 : 4 + 2 * PARTS] == ["ALU", "STORE"] * PARTS
    assert names(found)[4 + 2 * PARTS :] == ["GEMM", "GEMM"] * (PARTS + 1)
    assert set(resets[: ELEMENTS // 2]) <= set(range(ELEMENTS, 2 * ELEMENTS))
    assert written(found) == written([*tile(0), *larger])


def test_two_rows_are_split_into_halves() -> None:
    """Three pieces are wanted. Rows split evenly, so two rows become four halves."""
    elements = 56
    assert int(piece_count(elements)) == 3
    begin = [over(Gemm, 0, elements, reset=True), load(), over(Gemm, 0, elements)]
    end = [over(Alu, 0, elements, alu_op=AluOp.SHR, use_imm=True, imm=3), store(0, 2, elements // 2)]
    found = reordered([*begin, *end, *begin])
    stores = [one.instruction for one in found if isinstance(one.instruction, Store)]
    assert [(one.sram_base, one.x_size) for one in stores] == [(14 * n, 14) for n in range(4)]


def test_products_of_many_micro_ops_stay_whole() -> None:
    many = over(Gemm, 0)
    uops = np.repeat(many.uops, 40, axis=0)
    uops[:, 1] = np.arange(40)
    many = replace(many, instruction=replace(many.instruction, uop_end=40), uops=uops)
    second = [over(Gemm, 0, reset=True), load(), many, shift(0), store(0)]
    found = reordered([*tile(0), *second])
    assert sum(len(one.uops) == 40 for one in found) == 1
    assert names(found)[4 : 4 + 3 * PARTS] == ["ALU", "STORE"] * PARTS + ["GEMM"] * PARTS


@pytest.mark.parametrize("bits", [64, 128, 256])
def test_a_wider_bus_loads_more_micro_ops_of_products(bits: int) -> None:
    """32 beats hold 64 micro-ops on a 64-bit bus, 128 on a 128-bit bus, and 256 on a 256-bit bus."""
    config = accel.machine("vta", bus_bits=bits).config
    most = bits // PARTS
    for depth in (most, most + 1):
        product = over(Gemm, 0)
        uops = np.repeat(product.uops, depth, axis=0)
        uops[:, 1] = np.arange(depth)
        product = replace(product, instruction=replace(product.instruction, uop_end=depth), uops=uops)
        program = EmittedProgram(
            emitted=[*tile(0), over(Gemm, 0, reset=True), load(), product], config=config
        )
        found = InterleaveEpilogues().run(program).emitted
        assert sum(len(one.uops) == depth for one in found) == (PARTS if depth == most else 1)


def test_deep_products_wait_for_pieces_of_the_tile_before() -> None:
    """The chosen tile has 22 micro-ops in each of 4 pieces. With whole products it took 2,180,212 cycles."""
    program = accel.build(accel.gemm(1024, 1024, 1024, shift=12), "gemm8x8", vthreads=2)
    assert program.run(check=False).cycles <= 2_167_737


def test_stores_are_hidden_behind_the_next_tile() -> None:
    """Threads share the accumulators, and a STORE takes as long as two of the four passes."""
    machine = accel.machine("vta", block_in=32, block_out=32, bus_bits=128)
    workload = accel.gemm(128, 256, 256, shift=6)
    plan = GemmPlan(rows=128, columns=4, depth=2, threads=2, thread_axis="depth", outer="rows")
    result = accel.build(gemm_schedule(workload, machine, plan), machine).run()
    slots = 128 * 8 * (8 + 4)
    assert not result.mismatches
    assert result.cycles < 1.1 * slots
