"""Default schedules of max pooling: exact work, close cycles, requested threads and tiles."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.base.errors import ScheduleError
from accel.compiler.operators.default_schedule import find_candidates
from accel.compiler.plans.pool_model import pool_shape
from accel.compiler.plans.pool_plan import PoolPlan, PoolThreadAxis
from accel.compiler.plans.pool_planner import pool_candidates
from accel.compiler.plans.pool_schedule import pool_schedule
from accel.core.isa import Loops
from accel.run.program import Program
from tests.expect import refused
from tests.strategies import examples

LAYERS = [
    accel.max_pool2d(1, 64, 28, 28, 3, stride=2, padding=1),
    accel.max_pool2d(1, 64, 28, 28, 2),
    accel.max_pool2d(2, 32, 14, 14, (1, 3), stride=1),
    accel.max_pool2d(1, 64, 14, 14, 3, stride=1, padding=1),
]


def built(workload: accel.Workload, machine: accel.Machine, plan: PoolPlan) -> Program:
    return accel.build(workload, machine, steps=pool_schedule(workload, machine, plan).steps)


@pytest.mark.parametrize("workload", LAYERS, ids=repr)
def test_predictions(workload: accel.Workload) -> None:
    """Slots are exact. Without products, the compute unit is also busy with loads."""
    machine = accel.machine("vta")
    for candidate in find_candidates(workload, machine.config)[::7]:
        products = candidate.plan.identity_products
        program = built(workload, machine, candidate.plan)
        result = program.run()
        assert result.mismatches == 0
        loops = [one for one in program.instructions if isinstance(one, Loops)]
        executed = sum(one.uop_count for one in loops)
        assert candidate.prediction.compute - candidate.prediction.load * (not products) == executed
        loaded = result.bytes_by_kind["inp" if products else "acc_8bit"]
        assert candidate.prediction.load * 8 == pytest.approx(loaded, rel=0.1)
        assert candidate.prediction.store * 8 == result.bytes_by_kind["out"]
        assert candidate.prediction.cycles == pytest.approx(result.cycles, rel=0.08)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_tile_waits_until_the_previous_one_is_stored(threads: int) -> None:
    workload = LAYERS[1]
    axis: PoolThreadAxis = "rows" if threads > 1 else "channels"
    plan = PoolPlan(channels=1, rows=2, columns=14, threads=threads, thread_axis=axis)
    found = []
    for latency in (16, 1500):
        machine = accel.machine("vta", write_latency=latency)
        (predicted,) = (
            one.prediction.cycles
            for one in pool_candidates(
                pool_shape(workload, machine.config),
                machine.config,
                threads,
                {"channels": 1, "rows": 2, "columns": 14},
            )
            if one.plan == plan
        )
        found.append((predicted, built(workload, machine, plan).run(check=False).cycles))
    more = [after - before for before, after in zip(*found, strict=True)]
    assert more[1] > 10_000
    assert more[0] == pytest.approx(more[1], rel=0.01 if threads == 1 else 0.25)


def test_outstanding_writes_are_limited() -> None:
    """Each row of a tile is a burst, and only two bursts may be outstanding."""
    sizes = {"channels": 1, "rows": 7, "columns": 7}
    machine = accel.machine("vta", write_latency=1000, outstanding=2)
    plan = PoolPlan(channels=1, rows=7, columns=7, threads=1, thread_axis="channels")
    every = pool_candidates(pool_shape(LAYERS[1], machine.config), machine.config, 1, sizes)
    (found,) = (one for one in every if one.plan == plan)
    simulated = built(LAYERS[1], machine, plan).run(check=False).cycles
    assert simulated > 14 * 8 * 1000 / 2
    assert found.prediction.cycles == pytest.approx(simulated, rel=0.12)


@pytest.mark.parametrize("name", ["vta", "vta-int8"])
def test_loads_overlap_if_products_copy_elements(name: str) -> None:
    """An element takes one slot to copy, and one to reset if products do not overwrite. Each output needs two
    comparisons in both directions. Rows that two tiles need add some."""
    workload = accel.max_pool2d(1, 64, 112, 112, 3, stride=2, padding=1)
    machine = accel.machine(name)
    best = find_candidates(workload, machine.config)[0]
    assert best.plan.identity_products
    taken = built(workload, machine, best.plan).run(check=False).cycles
    slots = 64 // 16 * (112 * 112 * (1 if machine.config.post else 2) + 112 * 56 * 2 + 56 * 56 * 2)
    assert slots < taken < 1.06 * slots
    assert best.prediction.cycles == pytest.approx(taken, rel=0.01)


def test_incomplete_blocks_need_no_instructions_of_their_own() -> None:
    """The last of 13 blocks has 8 of 16 channels, and the last of two tiles 6 of 7 blocks."""
    few, full = (
        len(accel.build(accel.max_pool2d(1, channels, 2, 96, 2, stride=2), "vta-npu").instructions)
        for channels in (200, 208)
    )
    assert few == full


@examples(25)
@given(st.data())
def test_products_of_any_pooling(data: st.DataObject) -> None:
    """Tiles and blocks may be incomplete, and windows may share elements."""
    kernel = data.draw(st.tuples(st.integers(2, 4), st.integers(2, 4)))
    stride = tuple(data.draw(st.integers(1, size)) for size in kernel)
    padding = tuple(data.draw(st.integers(0, size // 2)) for size in kernel)
    size = tuple(n + data.draw(st.integers(2, 9)) for n in kernel)
    workload = accel.max_pool2d(
        data.draw(st.integers(1, 2)),
        data.draw(st.integers(1, 20)),
        *size,
        kernel,
        stride=stride,
        padding=padding,
    )
    machine = accel.machine(data.draw(st.sampled_from(["vta", "vta-int8", "gemm8x8"])))
    found = [one for one in find_candidates(workload, machine.config) if one.plan.identity_products]
    if not found:
        return
    chosen = data.draw(st.sampled_from(found))
    program = built(workload, machine, chosen.plan)
    result = program.run(seed=1)
    assert result.mismatches == 0
    slots = sum(one.uop_count for one in program.instructions if isinstance(one, Loops))
    assert chosen.prediction.compute == pytest.approx(slots, rel=0.2)  # the last tile can lack some phases
    assert chosen.prediction.cycles == pytest.approx(result.cycles, rel=0.3, abs=300)


def test_given_tiles_and_threads_do_not_change() -> None:
    config = accel.machine("vta").config
    found = find_candidates(LAYERS[0], config, 2, {"tile_c": 32, "tile_h": 7})
    assert {(one.plan.channels, one.plan.rows, one.plan.threads) for one in found} == {(2, 7, 2)}
    found = find_candidates(LAYERS[0], config, None, {"tile_h": 999})
    assert {one.plan.rows for one in found} == {14}


@pytest.mark.parametrize(("threads", "most"), [(15, 14), (5000, 14)])
def test_more_threads_than_fit(threads: int, most: int) -> None:
    """The output has 14 rows and 4 blocks of channels."""
    message = f"{threads} virtual threads do not fit configuration 'vta'; at most {most} do"
    with refused(ScheduleError, message):
        accel.build(LAYERS[0], "vta", vthreads=threads)
    assert accel.build(LAYERS[0], "vta", vthreads=most).vthreads == most


def test_windows_that_do_not_fit() -> None:
    workload: Any = accel.max_pool2d(1, 8, 300, 300, 300)
    message = (
        "not even the smallest tiles of this pooling fit configuration 'tiny'; they need 2880032 bytes of "
        "acc (acc_bytes is 4096)"
    )
    with refused(ScheduleError, message):
        accel.build(workload, "tiny")


def test_fewer_threads_win_a_tie() -> None:
    found = find_candidates(LAYERS[1], accel.machine("vta").config)
    close = [one for one in found if one.prediction.cycles <= found[0].prediction.cycles * 1.001]
    assert found[0].plan.threads == min(one.plan.threads for one in close)
