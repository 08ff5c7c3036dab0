"""Default schedules of matrix products: correct for any shape, few instructions, no
repeated loads, fast."""

import re
from collections import Counter
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.base.errors import ScheduleError
from accel.base.records import replace
from accel.compiler.codegen.compile_schedule import compile_schedule
from accel.compiler.operators.default_schedule import default_schedule, find_candidates
from accel.compiler.plans.gemm_model import gemm_shape
from accel.compiler.plans.gemm_plan import GemmPlan
from accel.compiler.plans.gemm_planner import GEMM_PLANNER
from accel.compiler.plans.gemm_schedule import gemm_schedule
from accel.compiler.plans.plan_search import PREFETCH_PENALTY
from accel.core.config import Config
from accel.core.instruction_access import AccessSets
from accel.core.isa import Alu, Gemm, Instruction, Load, Loops, Memory, Store, encode
from accel.run.program import Program
from accel.run.stage_listing import stage_text
from accel.sim.timing.timing_model import simulate_timing
from tests.expect import refused
from tests.strategies import examples
from tests.thorough import also

CONFIGS = ("gemm8x8", "vta", "tiny")
SIZES = [(100, 300, 77), (1, 1000, 512), (4096, 64, 32), (33, 17, 129), (5, 4096, 1)]
TRANSPOSITIONS = list(product((False, True), repeat=2))


def right(program: Program) -> None:
    """Compare results with numpy, in program order and in another order that the tokens allow."""
    assert program.run(backend="functional").mismatches == 0
    assert program.run(backend="functional", order="random", seed=1).mismatches == 0
    report = program.check()
    assert report.ok
    assert report.left_over == (0, 0, 0, 0)


# --- any shape ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "transpose_a", "transpose_b"),
    [
        case if n % len(TRANSPOSITIONS) == way else also(*case)
        for n, sizes in enumerate(SIZES)
        for way, case in enumerate((sizes, *ways) for ways in TRANSPOSITIONS)
    ],
    ids=str,
)
@pytest.mark.parametrize("name", CONFIGS)
def test_shapes(name: str, sizes: tuple[int, int, int], transpose_a: bool, transpose_b: bool) -> None:
    program = accel.build(
        accel.gemm(
            *sizes, transpose_a=transpose_a, transpose_b=transpose_b, bias=True, relu=transpose_a, shift=6
        ),
        name,
    )
    assert program.run().mismatches == 0
    assert program.check().ok


@st.composite
def workloads(draw: st.DrawFn, config: Config, most: int) -> accel.Workload:
    """Draw products of up to ``most`` blocks in each direction, with any epilogue."""
    widths = (config.batch, config.block_out, config.block_in)
    M, N, K = (draw(st.integers(1, most * width)) for width in widths)
    bias, relu, shift = draw(st.booleans()), draw(st.booleans()), draw(st.none() | st.integers(0, 31))
    if draw(st.booleans()):
        return accel.dense(M, K, N, bias=bias, residual=draw(st.booleans()), relu=relu, shift=shift)
    transpose_a, transpose_b = draw(st.booleans()), draw(st.booleans())
    return accel.gemm(
        M, N, K, transpose_a=transpose_a, transpose_b=transpose_b, bias=bias, relu=relu, shift=shift
    )


@examples(120)
@given(st.data())
def test_any_product_on_any_machine_with_any_number_of_threads(data: st.DataObject) -> None:
    machine = accel.machine(data.draw(st.sampled_from(CONFIGS)))
    workload = data.draw(workloads(machine.config, 6))
    threads = data.draw(st.sampled_from([None, 1, 2, 3, 4, 8]))
    try:
        program = accel.build(workload, machine, vthreads=threads)
    except ScheduleError as error:
        assert threads is not None
        most = int(str(error).split()[-2])
        assert 1 <= most < threads
        program = accel.build(workload, machine, vthreads=most)
        threads = most
    assert program.vthreads == (threads or program.vthreads)
    assert threads_made(program) == program.vthreads
    right(program)


def threads_made(program: Program) -> int:
    """Return the most iterations of a loop over virtual threads in the schedule."""
    found = re.findall(r"in vthread\((?:min\()?(\d+)", stage_text(program, "scheduled"))
    return max((int(extent) for extent in found), default=1)


@examples(60)
@given(st.data())
def test_any_plan_gives_correct_results(data: st.DataObject) -> None:
    """Bad plans are included."""
    machine = accel.machine(data.draw(st.sampled_from(CONFIGS)))
    workload = data.draw(workloads(machine.config, 5))
    shape = gemm_shape(workload, machine.config)
    plan = GemmPlan(
        rows=data.draw(st.integers(1, shape.rows)),
        columns=data.draw(st.integers(1, shape.channels)),
        depth=data.draw(st.integers(1, shape.depth)),
        threads=data.draw(st.integers(1, 4)),
        thread_axis=data.draw(st.sampled_from(["inner", "depth"])),
        outer=data.draw(st.sampled_from(["rows", "columns"])),
    )
    assert GEMM_PLANNER.fits(shape, machine.config, plan) or plan.threads > 1
    try:
        program = accel.build(gemm_schedule(workload, machine, plan), machine)
    except ScheduleError:
        assert not GEMM_PLANNER.fits(shape, machine.config, plan)
        return
    right(program)


@pytest.mark.parametrize("settings", [{"acc_bytes": 64, "inp_bytes": 8, "wgt_bytes": 64}, {"uop_bytes": 16}])
@pytest.mark.parametrize("options", [{}, {"bias": True, "shift": 3}])
def test_the_smallest_machines(settings: dict[str, int], options: dict[str, Any]) -> None:
    """With two elements in each scratchpad, or four micro-ops, every product still compiles."""
    right(accel.build(accel.gemm(3, 20, 9, **options), accel.machine("tiny", **settings)))


# --- few, large instructions -------------------------------------------------------------------------


def counts(plan: GemmPlan, sizes: tuple[int, int, int], **options: Any) -> Counter[str]:
    machine = accel.machine("gemm8x8")
    image = compile_schedule(gemm_schedule(accel.gemm(*sizes, **options), machine, plan), machine.config)
    return Counter(instruction.mnemonic for instruction in image.instructions)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("thread_axis", ["inner", "depth"])
def test_one_instruction_per_step_and_thread(threads: int, thread_axis: Any) -> None:
    """There are 4 x 4 tiles of 8 x 8 blocks, and 4 steps of 8 blocks.

    A tile is a reset, a GEMM and LOADs per step, the epilogue, and a STORE. Tiles that use the same
    accumulators are stored in pieces, and the last step of the program is split into pieces.
    """
    plan = GemmPlan(rows=8, columns=8, depth=8, threads=threads, thread_axis=thread_axis, outer="rows")
    tiles, steps, parts = 16, 4, 4
    alone = threads == 1 or thread_axis == "depth"
    stores = tiles * parts if alone else tiles - 1 + parts
    begun = (tiles - 1) * 2 * (parts - 1) if alone else 0
    expected = {
        **{"GEMM": tiles * (1 + steps) + begun + parts - 1, "LOAD.WGT": tiles * steps},
        "LOAD.INP": tiles * steps + parts - 1,
        **{"ALU.SHR": stores, "ALU.MAX": stores, "ALU.MIN": stores, "STORE.OUT": stores},
        **{"LOAD.UOP": 1, "FINISH": 1},
    }
    if thread_axis == "depth" and threads == 4:
        expected["LOAD.INP"] = 4 * steps  # each step has its own buffer, so that A stays while columns change
    assert counts(plan, (256, 256, 256), shift=8) == expected


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_bias_is_loaded_once_if_rows_are_outermost(threads: int) -> None:
    plan = GemmPlan(rows=8, columns=8, depth=32, threads=threads, thread_axis="inner", outer="rows")
    found = counts(plan, (256, 256, 256), shift=8, bias=True)
    assert found["LOAD.ACC"] == 1
    # one pass for reset and bias, and three after the sums
    parts = 4  # of every tile with one thread, otherwise of the last tile
    stores, begun = (16 * parts, 15 * parts + 1) if threads == 1 else (15 + parts, 16)
    passes = (found["ALU.MIN"], found["ALU.SHR"], found["ALU.MAX"], found["ALU.ADD"])
    assert passes == (stores + begun, stores, stores, 0)
    last = 0 if threads == 1 else parts - 1  # products of the last tile are split
    assert found["GEMM"] == begun + 1 + last
    # A stays while columns change: it is loaded once per row of tiles and thread, the last time in parts
    assert found["LOAD.INP"] == 4 * min(threads, 4) + (last if threads == 4 else 0)
    assert found["LOAD.WGT"] == (4 if threads == 4 else 16)


def test_shorter_last_tiles_need_no_more_instructions() -> None:
    """There are 3 x 3 tiles of up to 8 x 8 blocks, and 3 steps of up to 8 blocks."""
    plan = GemmPlan(rows=8, columns=8, depth=8, threads=2, thread_axis="inner", outer="columns")
    found = counts(plan, (130, 140, 150))
    assert (found["GEMM"], found["STORE.OUT"]) == (9 * 4, 9)
    assert (found["LOAD.INP"], found["LOAD.WGT"], found["LOAD.UOP"]) == (27, 27, 1)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("threads", [None, also(1), 2, also(4)])
@pytest.mark.parametrize("options", [{}, {"bias": True, "shift": 6}], ids=["plain", "epilogue"])
def test_micro_ops_are_loaded_once(name: str, threads: int | None, options: dict[str, Any]) -> None:
    program = accel.build(accel.gemm(100, 90, 110, **options), name, vthreads=threads)
    found = [i for i in program.instructions if isinstance(i, Load) and i.memory == Memory.UOP]
    assert len(found) == 1
    assert found[0].x_size <= program.config.uop_depth


def redundant_loads(program: Program) -> list[int]:
    """Return the LOADs that bring data which their elements already hold, in program order."""
    config = program.config
    sets = AccessSets(config)
    holds = {name: np.full(getattr(config, f"{name}_depth"), -1) for name in ("inp", "wgt", "acc")}
    uops = np.zeros(config.uop_depth, dtype=np.uint32)
    found = []
    for index, instruction in enumerate(program.instructions):
        if isinstance(instruction, Load) and instruction.memory == Memory.UOP:
            words = program.dram().read(config.mem_base + instruction.dram_base * 4, instruction.x_size * 4)
            uops[instruction.sram_base :][: instruction.x_size] = words.view("<u4")
        elif isinstance(instruction, Load):
            (touch,) = sets.transfer(instruction)
            rows = np.arange(instruction.y_size)[:, None] * instruction.x_stride
            new = (instruction.dram_base + rows + np.arange(instruction.x_size)).ravel()
            memory = holds[touch.memory]
            if (memory[touch.elements] == new).all():
                found.append(index)
            memory[touch.elements] = new
        elif isinstance(instruction, Gemm | Alu) and instruction.uop_count:
            words = uops[instruction.uop_begin : instruction.uop_end]
            for name, write, elements in sets.loops(instruction, words).touches:
                if write:
                    holds[name][elements] = -1
    return found


@examples(40)
@given(st.data())
def test_no_load_is_redundant(data: st.DataObject) -> None:
    machine = accel.machine(data.draw(st.sampled_from(CONFIGS)))
    workload = data.draw(workloads(machine.config, 5))
    most = max(c.plan.threads for c in find_candidates(workload, machine.config))
    program = accel.build(workload, machine, vthreads=data.draw(st.integers(1, most)))
    assert redundant_loads(program) == []


def test_the_check_finds_a_redundant_load() -> None:
    program = accel.build(accel.gemm(16, 16, 16), "gemm8x8", vthreads=1)
    instructions: list[Instruction] = list(program.instructions)
    first = next(i for i, x in enumerate(instructions) if isinstance(x, Load) and x.memory == Memory.INP)
    doubled = [*instructions[: first + 1], instructions[first], *instructions[first + 1 :]]
    again = replace(program, code=encode(doubled, program.config))
    assert redundant_loads(again) == [first + 1]


# --- the choice --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sizes", "options"),
    [
        also("gemm8x8", (200, 300, 250), {"shift": 8, "bias": True}),
        ("gemm8x8", (8, 512, 512), {}),
        also("gemm8x8", (512, 64, 64), {"relu": True}),
        ("vta", (100, 128, 64), {"shift": 6}),
        also("vta", (16, 100, 300), {}),
        also("tiny", (40, 40, 40), {"shift": 4}),
        ("tiny", (3, 100, 64), {"bias": True}),
    ],
)
def test_the_choice_is_close_to_the_best(
    name: str, sizes: tuple[int, int, int], options: dict[str, Any]
) -> None:
    """Neither random plans nor the next candidates are much faster in simulation."""
    machine = accel.machine(name)
    workload = accel.gemm(*sizes, **options)
    found = find_candidates(workload, machine.config)
    shape = gemm_shape(workload, machine.config)
    rng = Random(0)
    others = [
        GemmPlan(
            rows=rng.randint(1, shape.rows),
            columns=rng.randint(1, shape.channels),
            depth=rng.randint(1, shape.depth),
            threads=rng.choice((1, 2, 4)),
            thread_axis=rng.choice(("inner", "depth")),
            outer=rng.choice(("rows", "columns")),
        )
        for _ in range(300)
    ]
    fitting = [plan for plan in others if GEMM_PLANNER.fits(shape, machine.config, plan)]
    tried = [c.plan for c in found[1:13]] + fitting[:12]

    def cycles(plan: GemmPlan) -> int:
        image = compile_schedule(gemm_schedule(workload, machine, plan), machine.config)
        return simulate_timing(image.instructions, image.config, address=image.code_offset).cycles

    assert cycles(found[0].plan) <= 1.03 * min(cycles(plan) for plan in tried) + 20


@pytest.mark.parametrize(
    ("options", "vthreads", "least"),
    [({"shift": 9}, 2, 0.93), ({}, 2, 0.965), ({"shift": 9, "bias": True}, 2, 0.92), ({"shift": 9}, 4, 0.93)],
)
def test_utilization(options: dict[str, Any], vthreads: int, least: float) -> None:
    """With reset and epilogue, at most 64 of 68 slots are products."""
    program = accel.build(accel.gemm(512, 512, 512, **options), "gemm8x8", vthreads=vthreads)
    utilization = program.run(check=False).utilization
    assert utilization is not None
    assert least < utilization < (64 / 68 if options else 64 / 65)


def test_candidates_are_ranked_and_distinct() -> None:
    workload, config = accel.gemm(200, 200, 200, shift=3), accel.machine("vta").config
    found = find_candidates(workload, config)
    plans = [c.plan for c in found]
    assert len(set(plans)) == len(plans)
    assert {plan.threads for plan in plans} >= {1, 2, 3, 4}
    cycles = np.array([c.prediction.cycles * (1 + PREFETCH_PENALTY * c.plan.prefetch) for c in found])
    assert [c.rating for c in found] == cycles.tolist()
    close = int((cycles <= cycles.min() * 1.002).sum())
    assert (cycles[:close] <= cycles.min() * 1.002).all()
    assert (np.diff(cycles[close:]) >= 0).all()
    order = [(c.plan.prefetch, c.read_bytes) for c in found[:close]]
    assert order == sorted(order)
    assert default_schedule(workload, accel.machine("vta")).steps == (
        gemm_schedule(workload, accel.machine("vta"), plans[0]).steps
    )


# --- threads that do not fit -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sizes", "most"),
    [
        also("tiny", (40, 40, 600), 128),
        ("tiny", (4, 8, 600), 128),  # threads along the depth need one block of inp each
        ("tiny", (40, 40, 4), 40),  # the number of rows
        ("gemm8x8", (4096, 8, 8), 255),  # the limit of a token counter
        ("gemm8x8", (512, 512, 512), 64),  # the number of blocks
        ("vta", (1, 1, 1), 1),
    ],
)
def test_the_largest_number_of_threads(name: str, sizes: tuple[int, int, int], most: int) -> None:
    workload = accel.gemm(*sizes, shift=2)
    message = f"{{}} virtual threads do not fit configuration {name!r}; at most {most} do"
    for threads in (most + 1, 5000):
        with refused(ScheduleError, message.format(threads)):
            find_candidates(workload, accel.machine(name).config, threads)
    program = accel.build(workload, name, vthreads=most)
    assert program.vthreads == threads_made(program) == most
    right(program)


@pytest.mark.parametrize("threads", [0, -1, True, 1.5])
def test_invalid_numbers_of_threads(threads: Any) -> None:
    with refused(
        ScheduleError, f"the number of virtual threads is {threads!r}; it must be a positive integer"
    ):
        accel.build(accel.gemm(8, 8, 8), "vta", vthreads=threads)


def test_stores_are_whole_tiles() -> None:
    program = accel.build(accel.gemm(512, 512, 512), "gemm8x8")
    stores = [i for i in program.instructions if isinstance(i, Store)]
    assert sum(i.x_size * i.y_size for i in stores) == 64 * 64
    assert sum(isinstance(i, Loops) for i in program.instructions) >= 2 * len(stores)
