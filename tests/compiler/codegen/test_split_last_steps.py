"""The last steps of a program in pieces: their order, and the steps that stay whole."""

from collections import Counter

import numpy as np
import pytest

import accel
from accel.compiler.codegen.interleave_epilogues import InterleaveEpilogues
from accel.compiler.codegen.reorder_pass import EmittedProgram
from accel.compiler.codegen.scratchpad_spans import Spans
from accel.compiler.codegen.split_last_steps import SplitLastSteps
from accel.compiler.plans.conv_plan import ConvPlan
from accel.compiler.plans.conv_schedule import conv_schedule
from accel.compiler.target.emitter_registry import Emitted
from accel.core.isa import Alu, AluOp, Gemm, Load, Memory, Store
from tests.compiler.running import steps

CONFIG = accel.machine("vta", block_in=32, block_out=32, bus_bits=128).config
CHANNELS, PIXELS = 8, 49
PARTS = 4


def step(buffer: int, place: int, channels: int = CHANNELS, pixels: int = PIXELS) -> list[Emitted]:
    """LOADs into a pair of buffers, and all products of their data."""
    inputs = Load(
        memory=Memory.INP, sram_base=buffer * pixels, dram_base=place * pixels, y_size=1, x_size=pixels
    )
    weights = Load(
        memory=Memory.WGT,
        sram_base=buffer * channels,
        dram_base=place,
        y_size=channels,
        x_size=1,
        x_stride=1000,
    )
    products = Gemm(
        uop_end=1,
        iter_out=channels,
        iter_in=pixels,
        dst_factor_out=pixels,
        dst_factor_in=1,
        src_factor_in=1,
        wgt_factor_out=1,
    )
    uops = np.array([(0, buffer * pixels, buffer * channels)], dtype=np.int64)
    return [Emitted(inputs, part=0), Emitted(weights, part=1), Emitted(products, uops)]


def finish(elements: int = CHANNELS * PIXELS) -> list[Emitted]:
    """Three ALU passes and a STORE."""
    alu = Alu(uop_end=1, iter_out=elements, iter_in=1, dst_factor_out=1, use_imm=True, imm=3)
    uops = np.zeros((1, 3), dtype=np.int64)
    passes = [Emitted(alu, uops) for alu in [alu] * 3]
    store = Store(memory=Memory.OUT, y_size=1, x_size=elements, x_stride=elements)
    return [*passes, Emitted(store)]


def reordered(emitted: list[Emitted]) -> list[Emitted]:
    """The program after both passes for machines with ``post=0``."""
    program = EmittedProgram(emitted=emitted, config=CONFIG)
    return list(SplitLastSteps().run(InterleaveEpilogues().run(program)).emitted)


def loaded(emitted: list[Emitted], memory: Memory) -> Counter[tuple[int, int]]:
    """Pairs of a scratchpad element and its source element in DRAM."""
    loads = [one.instruction for one in emitted if isinstance(one.instruction, Load)]
    return Counter(
        (load.sram_base + y * load.x_size + x, load.dram_base + y * load.x_stride + x)
        for load in loads
        if load.memory == memory
        for y in range(load.y_size)
        for x in range(load.x_size)
    )


def check_reads(emitted: list[Emitted]) -> None:
    """Each product must read only elements that earlier LOADs have brought."""
    spans = Spans(CONFIG)
    there: set[tuple[object, int]] = set()
    for one in emitted:
        span = spans.loaded(one)
        if span is not None:
            there |= {(span.memory, n) for n in range(span.begin, span.end)}
        for read in spans.read(one):
            assert {(read.memory, n) for n in range(read.begin, read.end)} <= there


def work(emitted: list[Emitted], kind: type) -> Counter[tuple[int, ...]]:
    return Counter(s for one in emitted if isinstance(one.instruction, kind) for s in steps([one]))


def test_channels_come_one_part_after_the_other() -> None:
    """Weights of the last channels are loaded in parallel with the passes over the first ones."""
    before = [part for n in range(12) for part in step(n % 6, n)]
    found = reordered([*before, *finish()])
    whole = [*before, *finish()]
    for memory in (Memory.INP, Memory.WGT):
        assert loaded(found, memory) == loaded(whole, memory)
    assert work(found, Gemm) == work(whole, Gemm)
    assert work(found, Alu) == work(whole, Alu)
    check_reads(found)
    kinds = [type(one.instruction) for one in found]
    passes = [n for n, kind in enumerate(kinds) if kind is Alu]
    assert len(passes) == 3 * PARTS
    assert kinds.count(Store) == PARTS
    behind = [one.instruction for one in found[passes[0] :] if isinstance(one.instruction, Load)]
    assert len(behind) == 6 * (PARTS - 1)  # for each of the buffers, by pieces
    assert {load.memory for load in behind} == {Memory.WGT}
    assert {load.y_size for load in behind} == {CHANNELS // PARTS}


def test_steps_that_share_buffers_stay_as_they_are() -> None:
    before = [part for n in range(12) for part in step(0, n)]
    found = reordered([*before, *finish()])
    first = next(n for n, one in enumerate(found) if isinstance(one.instruction, Alu))
    assert found[: len(before) - 3] == before[:-3]
    assert sum(isinstance(one.instruction, Load) for one in found[first:]) == PARTS - 1
    check_reads(found)


@pytest.mark.parametrize("buffers", [1, 4])
def test_weights_that_all_parts_need_come_first(buffers: int) -> None:
    """The pieces are pixels of one channel, so each piece needs only its own inputs."""
    before = [part for n in range(12) for part in step(n % buffers, n, channels=1, pixels=256)]
    found = reordered([*before, *finish(256)])
    first = next(n for n, one in enumerate(found) if isinstance(one.instruction, Alu))
    behind = [one.instruction for one in found[first:] if isinstance(one.instruction, Load)]
    assert all(load.memory == Memory.INP for load in behind)
    assert loaded(found, Memory.INP) == loaded(before, Memory.INP)
    check_reads(found)


def test_loads_stay_if_no_products_precede_the_passes() -> None:
    other = Emitted(Alu(uop_end=1, alu_op=AluOp.MAX, use_imm=True, imm=0), np.zeros((1, 3), dtype=np.int64))
    store = Emitted(Store(memory=Memory.OUT, y_size=1, x_size=1, x_stride=1))
    before = [*step(0, 0), store, *step(1, 1), store]
    found = reordered([*before, other, *finish()])
    assert [one for one in found if isinstance(one.instruction, Load)] == [
        one for one in before if isinstance(one.instruction, Load)
    ]


@pytest.mark.parametrize(("depth", "threads"), [(960, 8), (256, 8)])
def test_a_layer_of_many_weights(depth: int, threads: int) -> None:
    """320 channels over 7x7 pixels: only a tenth of the passes follows the last LOAD. If the program has no
    other steps, the first LOADs are split, too."""
    machine = accel.machine("vta", block_in=32, block_out=32, bus_bits=128)
    workload = accel.conv2d(1, depth, 7, 7, 320, 1, bias=True, shift=8)
    plan = ConvPlan(
        channels=10,
        rows=7,
        columns=7,
        depth=1,
        kernel_rows=1,
        threads=threads,
        thread_axis="depth",
        outer="channels",
        bias_resident=True,
    )
    result = accel.build(conv_schedule(workload, machine, plan), machine).run()
    assert not result.mismatches
    beats = depth // 32 * (2 * 49 + 10 * 64)
    passes = 10 * 49 * 3
    assert depth < 960 or result.cycles < beats + 0.75 * passes + 800
