"""Nests become instructions: boxes become one instruction, and other loops run one by one."""

import cProfile
from collections import Counter

import numpy as np
import pytest

import accel
from accel import te
from accel.base.errors import TensorizeError
from accel.compiler.codegen.nest_emission import Emission
from accel.compiler.operators.default_schedule import default_schedule
from accel.compiler.plans.gemm_plan import GemmPlan
from accel.compiler.plans.gemm_schedule import gemm_schedule
from accel.compiler.target.machine import Machine, machine
from accel.core.isa import Gemm, Load, Store
from accel.te import Schedule
from tests.compiler import gemms
from tests.compiler.running import as_it_is, instructions, loops, steps

M = machine("gemm8x8")
TINY = machine("tiny")


def emission(s: Schedule, m: Machine = M) -> Emission:
    return Emission(te.tensorize(s), m.config)


def mnemonics(found: Emission) -> dict[str, int]:
    return dict(Counter(instruction.mnemonic for instruction in instructions(found)))


def plan(rows: int, columns: int, depth: int) -> GemmPlan:
    return GemmPlan(rows=rows, columns=columns, depth=depth, threads=1, thread_axis="inner", outer="rows")


@pytest.mark.parametrize(
    ("name", "sizes", "options", "tiles", "expected"),
    [
        ("gemm8x8", (8, 8, 8), {}, (1, 1, 1), {"GEMM": 2, "LOAD.INP": 1, "LOAD.WGT": 1, "STORE.OUT": 1}),
        ("gemm8x8", (64, 64, 64), {}, (8, 8, 8), {"GEMM": 5, "LOAD.INP": 4, "LOAD.WGT": 1, "STORE.OUT": 4}),
        ("vta", (100, 50, 30), {}, (100, 4, 2), {"GEMM": 5, "LOAD.INP": 4, "LOAD.WGT": 1, "STORE.OUT": 4}),
        ("tiny", (24, 24, 24), {}, (12, 3, 3), {"GEMM": 9, "LOAD.INP": 5, "LOAD.WGT": 4, "STORE.OUT": 4}),
        (
            "gemm8x8",
            (20, 30, 40),
            {"bias": True, "relu": True, "shift": 6},
            (3, 4, 5),
            {
                **{"GEMM": 2, "LOAD.INP": 1, "LOAD.WGT": 1, "LOAD.ACC": 1, "STORE.OUT": 1},
                **{"ALU.ADD": 1, "ALU.SHR": 1, "ALU.MAX": 1, "ALU.MIN": 1},
            },
        ),
        (
            "gemm8x8",
            (1024, 1024, 1024),
            {},
            (16, 16, 32),
            {"GEMM": 701, "LOAD.INP": 259, "LOAD.WGT": 256, "STORE.OUT": 4 * 64},
        ),
        (
            "gemm8x8",
            (256, 256, 256),
            {},
            (8, 8, 32),
            {"GEMM": 122, "LOAD.INP": 4, "LOAD.WGT": 16, "STORE.OUT": 4 * 16},
        ),
    ],
)
def test_as_few_instructions_as_tiles_allow(
    name: str,
    sizes: tuple[int, int, int],
    options: dict[str, int],
    tiles: tuple[int, int, int],
    expected: dict[str, int],
) -> None:
    """Each tile has one reset and one STORE, and for each step one GEMM and one LOAD per operand.

    Data that a scratchpad still holds are not loaded again. The last tile, and tiles whose accumulators the
    next one reuses, are stored in up to four pieces. Resets and first products, or last products and their
    LOADs, are split accordingly.
    """
    workload = accel.gemm(*sizes, **options)  # type: ignore[arg-type]
    m = machine(name)
    assert mnemonics(emission(gemm_schedule(workload, m, plan(*tiles)), m)) == expected


@pytest.mark.parametrize("name", ["gemm8x8", "vta", "tiny", "ecp5"])
@pytest.mark.parametrize("sizes", [(7, 13, 5), (40, 24, 33)])
def test_every_block_is_multiplied_once(name: str, sizes: tuple[int, int, int]) -> None:
    m = machine(name)
    for schedule in (
        default_schedule(accel.gemm(*sizes), m),
        gemms.tensorized(gemms.gemm(*sizes), m),
    ):
        found = emission(schedule, m)
        work = [i for i in loops(found) if isinstance(i.instruction, Gemm) and not i.instruction.reset]
        zeros = [i for i in loops(found) if isinstance(i.instruction, Gemm) and i.instruction.reset]
        blocks = [-(-size // width) for size, width in zip(sizes, gemms.block(m.config), strict=True)]
        assert len(list(steps(work))) == np.prod(blocks)
        assert len(list(steps(zeros))) == np.prod(blocks[:2])


def resident(*, unroll: bool = False, fuse: bool = False) -> Schedule:
    """5 by 3 tiles of sums. Each of 2 steps copies the whole operands and then runs a box of GEMMs."""
    g = gemms.gemm(40, 24, 16)
    s = te.create_schedule(g.C)
    CL = s[gemms.cache(s, g, M)]
    yo, xo, ko, yi, xi, ki = CL.tile(*CL.axis, g.k, 8, 8, 8)
    CL.reorder(ko, yo, xo, yi, xi, ki)
    s["AL"].compute_at(CL, ko)
    s["BL"].compute_at(CL, ko)
    if fuse:
        CL.fuse(yo, xo)
    if unroll:
        CL.unroll(xo)
    CL.tensorize(yi, M.gemm)
    return s


def test_a_perfect_nest_is_one_instruction() -> None:
    assert mnemonics(emission(resident())) == {"GEMM": 1 + 2, "LOAD.INP": 2, "LOAD.WGT": 2, "STORE.OUT": 1}


def test_unrolled_loops_run_one_by_one() -> None:
    """There are 3 columns of 5 rows, for the reset and in each of 2 steps."""
    assert mnemonics(emission(resident(unroll=True)))["GEMM"] == 3 * 5 + 2 * 3 * 5


def test_loops_in_which_addresses_are_not_linear_run_one_by_one() -> None:
    assert mnemonics(emission(resident(fuse=True)))["GEMM"] == 15 + 2 * 15


@pytest.mark.parametrize("options", [{}, {"unroll": True}, {"fuse": True}])
def test_however_they_run_the_result_is_the_same(options: dict[str, bool]) -> None:
    assert as_it_is(resident(**options), M).run().mismatches == 0


def test_loops_whose_extents_depend_on_others_run_one_by_one() -> None:
    """Tiles of 3 by 2 blocks on 5 by 3 blocks: the last ones are shorter, so they form no
    box together."""
    g = gemms.gemm(40, 24, 16)
    s = te.create_schedule(g.C)
    CL = s[gemms.cache(s, g, M)]
    yo, yi = CL.split("y", 8)
    xo, xi = CL.split("x", 8)
    ko, ki = CL.split("k", 8)
    yoo, yoi = CL.split(yo, 3)
    CL.reorder(ko, yoo, yoi, xo, yi, xi, ki)
    s["AL"].compute_at(CL, ko)
    s["BL"].compute_at(CL, ko)
    CL.tensorize(yi, M.gemm)
    assert mnemonics(emission(s))["GEMM"] == 2 + 2 * 2
    assert as_it_is(s, M).run().mismatches == 0


def test_short_last_tiles_lie_close_together() -> None:
    """A buffer has no gaps even if its last part is short: 3 of 4 blocks per row."""
    g = gemms.gemm(8, 56, 8)
    s = te.create_schedule(g.C)
    C, CL = s[g.C], s[gemms.cache(s, g, M)]
    C.tile("y", "x", 8, 32)
    CL.compute_at(C, "xo")
    CL.tile(*CL.axis, g.k, 8, 8, 8)
    s["BL"].compute_at(CL, "ko")
    CL.reorder("ko", "yo", "xo")
    CL.tensorize("yi", M.gemm)
    loads = [i for i in instructions(emission(s)) if isinstance(i, Load) and i.mnemonic == "LOAD.WGT"]
    assert [(i.sram_base, i.x_size, i.y_size) for i in loads] == [(0, 4, 1), (0, 3, 1)]
    stores = [i for i in instructions(emission(s)) if isinstance(i, Store)]
    assert [(i.sram_base, i.x_size) for i in stores] == [(0, 4), (0, 3)]


def test_guarded_parts_emit_nothing() -> None:
    """In the reordered copy loop, one of six iterations is out of range. B is the same for all."""
    g = gemms.gemm(40, 8, 8)
    s = te.create_schedule(g.C)
    C, CL = s[g.C], s[gemms.cache(s, g, M)]
    yo, yi = C.split("y", 8)
    yoo, yoi = C.split(yo, 3)
    C.reorder(yoi, yoo, yi)
    CL.compute_at(C, yoo)
    CL.tile(*CL.axis, g.k, 8, 8, 8)
    CL.tensorize("yi", M.gemm)
    assert mnemonics(emission(s)) == {"GEMM": 10, "LOAD.INP": 5, "LOAD.WGT": 1, "STORE.OUT": 5}
    assert as_it_is(s, M).run().mismatches == 0


def test_tiles_must_be_whole_blocks() -> None:
    g = gemms.gemm(40, 8, 8)
    s = te.create_schedule(g.C)
    C, CL = s[g.C], s[gemms.cache(s, g, M)]
    C.split("y", 12)
    CL.compute_at(C, "yo")
    CL.tile(*CL.axis, g.k, 8, 8, 8)
    CL.tensorize("yi", M.gemm)
    with pytest.raises(TensorizeError, match=r"^A\[yo\*12.* starts inside an element of 8; tiles must be"):
        emission(s)


def test_equal_calls_are_emitted_once() -> None:
    """Repeated calls return the same object, so its micro-ops are encoded once."""
    found = emission(gemms.tensorized(gemms.gemm(64, 64, 64), M))
    assert len(loops(found)) == 64 + 512
    assert len({id(item) for item in loops(found)}) == 2


@pytest.mark.parametrize("uop_bytes", [8, 16, 32, 64])
def test_boxes_are_joined_only_as_far_as_the_micro_op_memory_holds_them(uop_bytes: int) -> None:
    """Products without padding make several boxes, with ten micro-ops in total."""
    small = accel.machine("ecp5", uop_bytes=uop_bytes)
    program = as_it_is(accel.conv2d(1, 8, 6, 6, 8, 3, padding=1), small)
    counts = [i.uop_end - i.uop_begin for i in program.instructions if isinstance(i, Gemm)]
    assert max(counts) <= small.config.uop_depth
    assert program.run().mismatches == 0


def test_groups_in_small_scratchpads_cost_what_their_instructions_do() -> None:
    """Only two sums fit. Both convolutions have about 20,000 instructions. Calls are counted, because the
    time of a build may include a collection of the whole suite's garbage."""
    small = accel.machine(
        "tiny", block_in=1, block_out=2, uop_bytes=32, inp_bytes=16, wgt_bytes=32, acc_bytes=16
    )
    options = {"padding": (1, 2, 0, 1), "bias": True, "shift": 3}
    calls = []
    for workload in (
        accel.conv2d(1, 4, 9, 12, 9, 3, **options),
        accel.conv2d(1, 12, 9, 12, 9, 3, groups=3, **options),
    ):
        profiler = cProfile.Profile()
        program = profiler.runcall(accel.build, workload, small)
        calls.append(sum(one.callcount for one in profiler.getstats()) / len(program.instructions))
        assert len(program.instructions) > 10_000
    plain, grouped = calls
    assert grouped < 3 * plain
