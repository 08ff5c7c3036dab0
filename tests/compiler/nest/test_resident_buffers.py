"""Resident data: loaded once, shared by threads, with correct results."""

from itertools import groupby
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel import te
from accel.base.errors import ScheduleError
from accel.compiler.operators.default_schedule import find_candidates, planner_of
from accel.compiler.plans.conv_plan import ConvPlan
from accel.compiler.plans.conv_schedule import conv_schedule
from accel.compiler.plans.gemm_plan import GemmPlan
from accel.compiler.plans.gemm_schedule import gemm_schedule
from accel.core.isa import Load, Memory
from tests.compiler import gemms
from tests.expect import refused
from tests.strategies import examples

M = accel.machine("tiny")


def loaded(program: accel.Program, memory: Memory) -> int:
    """Return the number of elements that LOADs bring to a memory."""
    loads = (i for i in program.instructions if isinstance(i, Load))
    return sum(i.x_size * i.y_size for i in loads if i.memory == memory)


@pytest.mark.parametrize("outer", ["rows", "columns"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_resident_data_are_loaded_once(outer: str, threads: int) -> None:
    """There are two tiles in each direction, and three steps."""
    config = M.config
    workload = accel.gemm(8 * config.batch, 2 * config.block_out, 3 * config.block_in, shift=4)
    inputs, weights = 8 * 3, 2 * 3
    sizes = {"rows": 4, "columns": 1, "depth": 1, "threads": threads, "thread_axis": "inner", "outer": outer}
    for kept, names in (("weights", {"weights"}), ("inputs", {"inputs"}), ("both", {"inputs", "weights"})):
        plan = GemmPlan(**sizes, resident=kept)  # type: ignore[arg-type]
        program = accel.build(gemm_schedule(workload, M, plan), M)
        assert (loaded(program, Memory.WGT) == weights) or "weights" not in names
        assert (loaded(program, Memory.INP) == inputs) or "inputs" not in names
        assert not program.run().mismatches
    plain = accel.build(gemm_schedule(workload, M, GemmPlan(**sizes)), M)  # type: ignore[arg-type]
    assert loaded(plain, Memory.WGT) > weights
    assert loaded(plain, Memory.INP) > inputs


def test_any_plan_with_resident_data_computes_the_same() -> None:
    tally = {"weights": 0, "inputs": 0, "both": 0}

    @examples(66)
    @given(st.integers(0, 1 << 32), st.sampled_from(["tiny", "tiny-int8"]))
    def check(seed: int, name: str) -> None:
        rng, machine = Random(seed), accel.machine(name)
        kernel = rng.choice([1, 3])
        workload = accel.conv2d(
            *(rng.randint(1, 2), rng.randint(1, 12), rng.randint(3, 9), rng.randint(3, 9)),
            *(rng.randint(1, 12), kernel),
            stride=rng.choice([1, 2]),
            padding=kernel // 2,
            shift=6,
        )
        keeping = [
            one.plan for one in find_candidates(workload, machine.config) if one.plan.resident != "nothing"
        ]
        if keeping:
            kept = rng.choice(sorted({plan.resident for plan in keeping}))
            plan = rng.choice([one for one in keeping if one.resident == kept])
            tally[plan.resident] += 1
            result = accel.build(planner_of(workload).schedule(workload, machine, plan), machine).run()
            assert not result.mismatches

    check()
    assert tally["weights"]
    assert tally["inputs"]


@pytest.mark.parametrize(("rows", "columns"), [(2, 8), (8, 3), (3, 3)])
def test_buffer_sets_alternate_across_rows_of_tiles(rows: int, columns: int) -> None:
    """Inputs of consecutive tiles are in different sets, for one tile per row, an even and an odd number."""
    machine = accel.machine("vta")
    workload = accel.conv2d(1, 32, 8, 8, 64, 1, shift=5)
    plan = ConvPlan(
        channels=1,
        rows=rows,
        columns=columns,
        depth=2,
        kernel_rows=1,
        threads=1,
        thread_axis="channels",
        outer="pixels",
        resident="inputs",
        prefetch=True,
    )
    program = accel.build(conv_schedule(workload, machine, plan), machine)
    loads = [one for one in program.instructions if isinstance(one, Load) and one.memory == Memory.INP]
    sets = [one.sram_base // (2 * rows * columns) for one in loads]
    places = [number for number, _ in groupby(sets)]
    assert places == [n % 2 for n in range(-(-8 // rows) * -(-8 // columns))]
    assert not program.run().mismatches


def tiled() -> te.Schedule:
    g = gemms.gemm(16, 16, 16)
    s = te.create_schedule(g.C)
    s[g.C].tile(*s[g.C].axis, 8, 8)
    gemms.cache(s, g, M)
    return s


def test_steps_from_files_keep_data_resident() -> None:
    plan = GemmPlan(
        rows=4, columns=1, depth=1, threads=2, thread_axis="inner", outer="columns", resident="both"
    )
    workload = accel.gemm(16, 8, 12, shift=4)
    program = accel.build(gemm_schedule(workload, M, plan), M)
    steps = program.schedule().steps
    assert {step["op"] for step in steps} >= {"keep_at", "keep_root"}
    again = accel.build(workload, M, steps=steps)
    assert again.instructions == program.instructions


def test_stages_that_cannot_stay_resident() -> None:
    s = tiled()
    with refused(ScheduleError, "CL is not a copy into a scratchpad; only copies can stay resident"):
        s["CL"].keep_root()
    with refused(ScheduleError, "C is not a copy into a scratchpad; only copies can stay resident"):
        s["C"].keep_at(s["C"], "yo")
    s["CL"].compute_at(s["C"], "xo")
    s["AL"].compute_at(s["C"], "yo")
    s["AL"].keep_at(s["C"], "xo")
    message = "AL is resident throughout loop {} of C, which is not around the loop that it is computed at"
    with refused(ScheduleError, message.format(s["C"].leaves[1].name)):
        te.lower(s)
