"""Boxes of blocks become the right micro-ops and transfers, in a minimal number of instructions."""

from collections import Counter
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import accel
from accel import te
from accel.base.errors import TensorizeError
from accel.base.records import replace
from accel.compiler.expr.numpy_reference import apply
from accel.compiler.target import machine_intrinsics
from accel.compiler.target.builtin_emitters import (
    alu,
    dma_copy2d,
    emit_loops,
    fill_zero,
    fused_gemm_add,
    gemm,
)
from accel.compiler.target.emitter_registry import AccessPtr, Emitted, Target, find_emitter
from accel.core.config import NAMED, Config
from accel.core.isa import Alu, AluOp, Gemm, Load, Loops, Memory, Store
from accel.core.isa.instruction_fields import field
from accel.image.dram import Dram
from accel.sim.functional.scratchpads import Scratchpads
from tests.compiler.running import run, steps
from tests.expect import refused
from tests.strategies import examples

TINY, STOCK = NAMED["tiny"], NAMED["vta"]
CONFIGS = [NAMED[name] for name in sorted(NAMED)]


def acc(base: int, *strides: int) -> AccessPtr:
    return AccessPtr("acc_buffer", base, strides)


def inp(base: int, *strides: int) -> AccessPtr:
    return AccessPtr("inp_buffer", base, strides)


def wgt(base: int, *strides: int) -> AccessPtr:
    return AccessPtr("wgt_buffer", base, strides)


def dram(base: int, *strides: int) -> AccessPtr:
    return AccessPtr("dram", base, strides)


def box(extents: tuple[int, ...], *pointers: AccessPtr) -> Counter[tuple[int, ...]]:
    """Every step of a box, by definition."""
    return Counter(
        tuple(p.base + sum(n * s for n, s in zip(index, p.strides, strict=True)) for p in pointers)
        for index in product(*(range(extent) for extent in extents))
    )


# --- any box -----------------------------------------------------------------------------------------


def random_box(rng: Random, operands: int) -> tuple[tuple[int, ...], list[AccessPtr]]:
    """A random box of up to four axes with strides that coincide, repeat or run backwards."""
    count = rng.randint(0, 4)
    extents = tuple(rng.randint(rng.choice((0, 1, 1, 1)), rng.choice((2, 6))) for _ in range(count))
    strides = [[rng.choice((0, 0, 1, 2, 3, 6, -1)) for _ in range(count)] for _ in range(operands)]
    if rng.random() < 0.3:  # one axis continues where another ends
        strides = [[step * 2 for step in row[1:]] + row[-1:] for row in strides]
    return extents, [AccessPtr("acc_buffer", 40, tuple(row)) for row in strides]


@examples(500)
@given(st.integers(0, 1 << 32), st.sampled_from([16, 64, 1024]))
def test_gemm_steps_are_those_of_the_box(seed: int, uop_bytes: int) -> None:
    extents, (dst, src, weight) = random_box(Random(seed), 3)
    config = TINY.override({"uop_bytes": uop_bytes})
    emitted = fused_gemm_add(Target(config=config, extents=extents), src, weight, dst)
    assert Counter(steps(emitted)) == box(extents, dst, src, weight)
    for item in emitted:
        assert isinstance(item.instruction, Gemm)
        assert item.instruction.uop_count > 0
        assert len(item.uops) == item.instruction.uop_end <= config.uop_depth
    assert len(emitted) <= fewest(extents, (dst, src, weight), config)


def fewest(extents: tuple[int, ...], pointers: tuple[AccessPtr, ...], config: Config) -> int:
    """Number of instructions if the two longest possible axes are loops and no axes are merged."""
    if 0 in extents:
        return 0
    loops = sorted(
        (extent for n, extent in enumerate(extents) if min(p.strides[n] for p in pointers) >= 0), reverse=True
    )
    listed = int(np.prod(extents)) // int(np.prod(loops[:2]))
    return -(-listed // config.uop_depth)


@examples(200)
@given(st.integers(0, 1 << 32), st.booleans())
def test_alu_steps_are_those_of_the_box(seed: int, immediate: bool) -> None:
    extents, (dst, src) = random_box(Random(seed), 2)
    target = Target(config=TINY, extents=extents)
    emitted = alu(target, "add", dst, 5 if immediate else src)
    used = 1 if immediate else 2
    assert Counter(step[:used] for step in steps(emitted)) == box(extents, *[dst, src][:used])


@examples(100)
@given(st.integers(0, 1 << 32))
def test_zeros_are_written_to_the_box(seed: int) -> None:
    extents, (dst,) = random_box(Random(seed), 1)
    emitted = fill_zero(Target(config=TINY, extents=extents), dst)
    assert Counter(step[:1] for step in steps(emitted)) == box(extents, dst)
    assert all(isinstance(item.instruction, Gemm) and item.instruction.reset for item in emitted)


# --- how many instructions -----------------------------------------------------------------------------


def shape(emitted: list[Emitted]) -> list[tuple[int, int, int]]:
    """Iterations of the two loops and number of micro-ops, for each instruction."""
    every = [item.instruction for item in emitted]
    assert all(isinstance(instruction, Loops) for instruction in every)
    return [(i.iter_out, i.iter_in, i.uop_end) for i in every]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("extents", "strides", "expected"),
    [
        ((), (), [(1, 1, 1)]),
        ((7,), (1,), [(7, 1, 1)]),
        ((1, 7, 1), (9, 1, 4), [(7, 1, 1)]),
        ((4, 6), (6, 1), [(24, 1, 1)]),
        ((4, 6), (8, 1), [(4, 6, 1)]),
        ((4, 6), (1, 4), [(4, 6, 1)]),
        ((3, 4, 6), (48, 8, 1), [(4, 6, 3)]),
        ((3, 4, 6), (32, 8, 1), [(12, 6, 1)]),
        ((5, 3, 4), (20, 8, 1), [(5, 4, 3)]),
        ((4, 6), (8, -1), [(4, 1, 6)]),
        ((4, 6), (0, 0), [(24, 1, 1)]),
        ((5, 7, 300), (300, 0, 1), [(7, 300, 5)]),
        ((2, 3, 5, 7), (210, 105, 16, 2), [(5, 7, 6)]),
        ((0, 6), (8, 1), []),
        ((17, 17, 17, 17), (60, 0, 1, 9), [(17, 17, 256), (17, 17, 33)]),
    ],
)
def test_instructions_for_zeros(
    extents: tuple[int, ...], strides: tuple[int, ...], expected: list[tuple[int, int, int]]
) -> None:
    """The two longest axes are loops, the others micro-ops. Axes that continue where others
    end are merged."""
    assert shape(fill_zero(Target(config=TINY, extents=extents), acc(9, *strides))) == expected


def test_instructions_for_a_tile_of_a_matrix_product() -> None:
    """The box has 3 rows, 4 columns and 5 steps along the reduce axis."""
    target = Target(config=STOCK, extents=(3, 4, 5))
    pointers = (inp(0, 5, 0, 1), wgt(0, 0, 1, 4), acc(0, 4, 1, 0))
    assert shape(fused_gemm_add(target, *pointers)) == [(4, 5, 3)]
    assert shape(gemm(target, *pointers)) == [(12, 5, 1), (4, 5, 3)]


class _Longer(Gemm):
    """A GEMM with one more field."""

    more: int = field(2, "anything", at=120)


def test_a_template_keeps_every_field_that_the_box_does_not_give() -> None:
    """Each instruction of the box keeps them. Tokens and addresses of micro-ops are set later."""
    template = _Longer(reset=True, more=3, uop_begin=9, push_next=True)
    target = Target(config=TINY, extents=(20000, 2))
    emitted = emit_loops(template, target, acc(0, 0, 1), inp(0, 0, 0), wgt(0, 0, 0))
    assert len(emitted) == 2
    for one in emitted:
        instruction = one.instruction
        assert isinstance(instruction, _Longer)
        assert (instruction.reset, instruction.more) == (True, 3)
        assert (instruction.uop_begin, instruction.push_next) == (0, False)
    assert sum(one.instruction.uop_count for one in emitted if isinstance(one.instruction, Loops)) == 40000


def test_axes_longer_than_a_loop() -> None:
    """A loop count has 14 bits."""
    wide = Config(
        name="wide", batch=1, block_in=1, block_out=1, acc_bytes=1 << 4, wgt_bytes=1 << 16, inp_bytes=16
    )
    for extent, expected in ((16383, [16383]), (16384, [16383, 1]), (40000, [16383, 16383, 7234])):
        emitted = fused_gemm_add(Target(config=wide, extents=(extent,)), inp(1, 0), wgt(3, 1), acc(2, 0))
        assert [iterations for iterations, _, _ in shape(emitted)] == expected
        assert Counter(steps(emitted)) == box((extent,), acc(2, 0), inp(1, 0), wgt(3, 1))


# --- transfers -----------------------------------------------------------------------------------------


def transfers(emitted: list[Emitted]) -> list[tuple[int, int, int, int, int]]:
    """sram_base, dram_base, y_size, x_size and x_stride of each instruction."""
    every = [item.instruction for item in emitted]
    assert all(isinstance(i, Load | Store) for i in every)
    return [(i.sram_base, i.dram_base, i.y_size, i.x_size, i.x_stride) for i in every]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("extents", "strides", "expected"),
    [
        ((), (), [(5, 7, 1, 1, 1)]),
        ((6,), (1,), [(5, 7, 1, 6, 6)]),
        ((6,), (3,), [(5, 7, 6, 1, 3)]),
        ((4, 6), (6, 1), [(5, 7, 1, 24, 24)]),
        ((4, 6), (10, 1), [(5, 7, 4, 6, 10)]),
        ((4, 1), (10, 1), [(5, 7, 4, 1, 10)]),
        ((1, 6), (10, 1), [(5, 7, 1, 6, 6)]),
        ((3, 4, 6), (60, 10, 1), [(5, 7, 4, 6, 10), (29, 67, 4, 6, 10), (53, 127, 4, 6, 10)]),
        ((3, 4, 6), (40, 10, 1), [(5, 7, 12, 6, 10)]),
        ((3, 4, 6), (60, 6, 1), [(5, 7, 3, 24, 60)]),
        ((2, 3), (30, 10), [(5, 7, 6, 1, 10)]),
        ((2, 3), (31, 10), [(5, 7, 3, 1, 10), (8, 38, 3, 1, 10)]),
        ((2, 6), (65536, 1), [(5, 7, 1, 6, 6), (11, 65543, 1, 6, 6)]),
        ((2, 6), (65535, 1), [(5, 7, 2, 6, 65535)]),
        ((0, 6), (10, 1), []),
    ],
)
def test_instructions_for_copies(
    extents: tuple[int, ...], strides: tuple[int, ...], expected: list[tuple[int, ...]]
) -> None:
    """A scratchpad is filled in order, and one instruction moves all rows of a box."""
    local = tuple(int(np.prod(extents[n + 1 :], dtype=np.int64)) for n in range(len(extents)))
    target = Target(config=STOCK, extents=extents, memory=Memory.INP)
    assert transfers(dma_copy2d(target, inp(5, *local), dram(7, *strides))) == expected
    assert transfers(dma_copy2d(target, dram(7, *strides), acc(5, *local))) == expected


@pytest.mark.parametrize("rows", [1, 2])
def test_rows_longer_than_a_field(rows: int) -> None:
    extents = (rows, 70000)
    target = Target(config=STOCK, extents=extents, memory=Memory.WGT)
    emitted = dma_copy2d(target, wgt(0, 70000, 1), dram(0, 100000, 1))
    assert transfers(emitted) == [
        part
        for row in range(rows)
        for part in (
            (row * 70000, row * 100000, 1, 65535, 65535),
            (row * 70000 + 65535, row * 100000 + 65535, 1, 4465, 4465),
        )
    ]


def test_the_scopes_decide_the_instruction() -> None:
    load = dma_copy2d(Target(config=STOCK, extents=(), memory=Memory.ACC_8BIT), acc(0), dram(0))[
        0
    ].instruction
    store = dma_copy2d(Target(config=STOCK, extents=(), memory=Memory.ACC_8BIT), dram(0), acc(0))[
        0
    ].instruction
    assert isinstance(load, Load)
    assert load.memory == Memory.ACC_8BIT
    assert isinstance(store, Store)
    assert store.memory == Memory.OUT
    with refused(TensorizeError, "dma_copy2d goes from inp_buffer to acc_buffer; one side must be dram"):
        dma_copy2d(Target(config=STOCK, extents=()), acc(0), inp(0))
    with refused(TensorizeError, "dma_copy2d goes from dram to dram; one side must be dram"):
        dma_copy2d(Target(config=STOCK, extents=()), dram(0), dram(0))


def test_a_scratchpad_with_gaps() -> None:
    with refused(
        TensorizeError, "dma_copy2d fills a scratchpad in order; its elements must follow one another"
    ):
        dma_copy2d(Target(config=STOCK, extents=(2, 3), memory=Memory.INP), inp(0, 4, 1), dram(0, 8, 1))


# --- claims of declarations ----------------------------------------------------------------------------
# All forms of instructions, run on the functional machine, equal the tensor expression.


def pads_and_rng(config: Config, seed: int) -> tuple[Scratchpads, np.random.Generator]:
    return Scratchpads.random(config, seed), np.random.default_rng(seed)


def value(intrin: te.TensorIntrin, **inputs: Any) -> Any:
    return te.evaluate([intrin.op.tensor], inputs)[intrin.op.name]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
@pytest.mark.parametrize("form", ["compute", "reset", "update"])
def test_gemm_equals_its_declaration(config: Config, form: str) -> None:
    """One block, and a box of 2 by 3 blocks with 2 steps along the reduce axis."""
    intrin = machine_intrinsics.gemm(config)
    for extents in ((), (2, 3, 2)):
        pads, rng = pads_and_rng(config, len(extents))
        rows, columns, depth = (extents * 2 or (1, 1, 1))[:3]
        a, b, c = (
            int(rng.integers(0, n - 7)) for n in (config.inp_depth, config.wgt_depth, config.acc_depth)
        )
        pointers = {
            "w": inp(a, *(depth, 0, 1)[: len(extents)]),
            "x": wgt(b, *(0, depth, 1)[: len(extents)]),
            "y": acc(c, *(columns, 1, 0)[: len(extents)]),
        }
        before = pads.acc.copy()
        emitted = [
            item
            for call in intrin.calls(form)
            for item in find_emitter(call.name, config).emit(
                Target(config=config, extents=extents), *(pointers[p.tensor.name] for p in call.pointers)
            )
        ]
        run(emitted, config, pads)
        want = before.copy()
        for i, j in np.ndindex(rows, columns):
            products = [
                value(intrin, w=pads.inp[a + i * depth + k], x=pads.wgt[b + j * depth + k])
                for k in range(depth)
            ]
            start = before[c + i * columns + j] if form == "update" else 0
            want[c + i * columns + j] = start if form == "reset" else start + np.sum(products, axis=0)
        np.testing.assert_array_equal(pads.acc, want)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_fill_zero_equals_its_declaration(config: Config) -> None:
    intrin = machine_intrinsics.fill_zero(config)
    pads, _ = pads_and_rng(config, 0)
    want = pads.acc.copy()
    want[4:8] = value(intrin)
    (call,) = intrin.calls("compute")
    run(find_emitter(call.name, config).emit(Target(config=config, extents=(4,)), acc(4, 1)), config, pads)
    np.testing.assert_array_equal(pads.acc, want)
    assert not want[4:8].any()


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
@pytest.mark.parametrize(
    ("memory", "name", "dtype"),
    [
        (Memory.INP, "inp", "int8"),
        (Memory.WGT, "wgt", "int8"),
        (Memory.ACC, "acc", "int32"),
        (Memory.ACC_8BIT, "acc", "int8"),
    ],
)
def test_loads_of_dma_copy2d_equal_their_declaration(
    config: Config, memory: Memory, name: str, dtype: str
) -> None:
    """The box has 3 rows of 2 elements, 5 elements apart."""
    pads, rng = pads_and_rng(config, 1)
    pad = getattr(pads, name)
    info = np.iinfo(dtype)
    source = rng.integers(info.min, info.max + 1, (20, *pad.shape[1:])).astype(dtype)
    memory_before, main = pad.copy(), Dram.of(config)
    main.write(0, source.astype(np.dtype(dtype).newbyteorder("<")).tobytes())
    target = Target(config=config, extents=(3, 2), memory=memory)
    local = AccessPtr(f"{name}_buffer", 4, (2, 1))
    run(dma_copy2d(target, local, dram(1, 5, 1)), config, pads, main)
    want = memory_before
    want[4:10] = source[[1, 2, 6, 7, 11, 12]]
    np.testing.assert_array_equal(pad, want)


SIDE = st.integers(0, 3) | st.integers(14, 18)


@examples(120)
@given(st.lists(st.tuples(st.integers(0, 3), SIDE, SIDE), min_size=1, max_size=3), st.sampled_from([1, 2, 3]))
def test_dma_copy2d_writes_zeros_around_loaded_data(dims: list[tuple[int, int, int]], step: int) -> None:
    """Padding has any size on any side, also if no data remain."""
    config = Config(
        batch=1, block_in=1, block_out=4, inp_bytes=1 << 16, uop_bytes=64, wgt_bytes=64, acc_bytes=64
    )
    extents, padding = tuple(n for n, _, _ in dims), tuple((a, b) for _, a, b in dims)
    source = np.arange(1, 4 ** len(dims) * step ** len(dims) + 1, dtype=np.uint8).view(np.int8)
    source = source.reshape((4 * step,) * len(dims))
    strides = tuple(int(step * np.prod(source.shape[n + 1 :])) for n in range(len(dims)))
    want = np.pad(source[tuple(slice(0, step * n, step) for n in extents)], padding)
    assume(want.size <= 1 << 15)
    local = tuple(int(np.prod(want.shape[n + 1 :])) for n in range(len(dims)))
    pads, main = Scratchpads.random(config, 0), Dram.of(config)
    main.write(64, source.tobytes())
    before = pads.inp.copy()
    target = Target(config=config, extents=extents, memory=Memory.INP, padding=padding)
    run(dma_copy2d(target, inp(9, *local), dram(64, *strides)), config, pads, main)
    before[9 : 9 + want.size, 0, 0] = want.reshape(-1)
    np.testing.assert_array_equal(pads.inp, before)


def test_zeros_that_fit_the_fields_are_part_of_the_load() -> None:
    target = Target(config=STOCK, extents=(4, 6), memory=Memory.INP, padding=((15, 2), (1, 15)))
    (load,) = (item.instruction for item in dma_copy2d(target, inp(0, 22, 1), dram(0, 6, 1)))
    assert load == Load(
        memory=Memory.INP,
        y_size=4,
        x_size=6,
        x_stride=6,
        y_pad_0=15,
        y_pad_1=2,
        x_pad_0=1,
        x_pad_1=15,
    )
    beyond = replace(target, padding=((16, 0), (0, 0)))
    assert [item.instruction for item in dma_copy2d(beyond, inp(0, 6, 1), dram(0, 6, 1))] == [
        Load(memory=Memory.INP, x_size=96, y_pad_0=1),
        Load(memory=Memory.INP, sram_base=96, y_size=1, x_size=24, x_stride=24),
    ]


def test_stores_write_no_zeros() -> None:
    target = Target(config=STOCK, extents=(4,), memory=Memory.OUT, padding=((1, 0),))
    with refused(TensorizeError, "dma_copy2d to dram has padding ((1, 0),); only LOADs write zeros"):
        dma_copy2d(target, dram(0, 1), acc(0, 1))


def test_loops_that_were_chosen() -> None:
    """The hardware's loops run over the chosen axes of any length, except those that run backwards."""
    target = Target(config=STOCK, extents=(3, 9, 2), loops=(0, 2))
    (item,) = fill_zero(target, acc(0, 20, 2, 1))
    assert isinstance(item.instruction, Gemm)
    assert (item.instruction.iter_out, item.instruction.iter_in, len(item.uops)) == (3, 2, 9)
    (item,) = fill_zero(target, acc(40, -20, 2, 1))
    assert isinstance(item.instruction, Gemm)
    assert (item.instruction.iter_out, item.instruction.iter_in, len(item.uops)) == (18, 1, 3)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_stores_of_dma_copy2d_equal_their_declaration(config: Config) -> None:
    """It stores the low bytes of accumulators."""
    pads, _ = pads_and_rng(config, 2)
    main = Dram.of(config)
    target = Target(config=config, extents=(3, 2), memory=Memory.OUT)
    run(dma_copy2d(target, dram(1, 5, 1), acc(4, 2, 1)), config, pads, main)
    size = config.out_element_bytes
    found = main.read(0, 20 * size).view(np.int8).reshape(20, *pads.acc.shape[1:])
    want = np.zeros_like(found)
    want[[1, 2, 6, 7, 11, 12]] = pads.acc[4:10].astype(np.int8)
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
@pytest.mark.parametrize(
    ("op", "sign"), [("min", "min"), ("max", "max"), ("add", "+"), ("shr", ">>"), ("mul", "*")]
)
@pytest.mark.parametrize("operand", [-32768, -3, 0, 5, 32767, "tensor"])
def test_the_alu_equals_tensor_expressions(config: Config, op: str, sign: str, operand: int | str) -> None:
    """A box of 2 by 3 accumulators. A tensor operand repeats along the first axis."""
    pads, _ = pads_and_rng(config, 3)
    pads.acc[20:23] >>= 20
    before = pads.acc.copy()
    other = acc(20, 0, 1) if operand == "tensor" else int(operand)
    emitted = alu(Target(config=config, extents=(2, 3)), op, acc(4, 5, 1), other)
    assert len(emitted) == 1
    instruction = emitted[0].instruction
    assert isinstance(instruction, Alu)
    assert (instruction.alu_op, instruction.use_imm) == (AluOp[op.upper()], operand != "tensor")
    run(emitted, config, pads)
    want = before.copy()
    for i, j in np.ndindex(2, 3):
        second = before[20 + j] if operand == "tensor" else np.array(other)
        want[4 + 5 * i + j] = apply(sign, before[4 + 5 * i + j], second)
    np.testing.assert_array_equal(pads.acc, want)


def test_intrinsics_belong_to_a_machine() -> None:
    m = accel.machine("vta")
    assert [m.gemm.form_name(form) for form in ("compute", "reset", "update")] == [
        "gemm1x16x16",
        "fill_zero",
        "fused_gemm1x16x16_add",
    ]
    assert m.gemm is m.gemm1x16x16
    assert accel.machine("gemm8x8").gemm8x8.name == "gemm8x8"
