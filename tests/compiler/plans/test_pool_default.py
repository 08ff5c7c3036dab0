"""Default schedules of max pooling: work exactly, time closely, threads and tiles that are asked for."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.base.errors import ScheduleError
from accel.compiler.operators.default import candidates
from accel.compiler.plans.pool_default import pool_candidates
from accel.compiler.plans.pool_model import pool_shape
from accel.compiler.plans.pool_schedule import PoolPlan, PoolThreadAxis, pool_schedule
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
    """The compute unit both loads and compares, or products copy what the load unit brings; micro-ops are
    known exactly."""
    machine = accel.machine("vta")
    for candidate in candidates(workload, machine.config)[::7]:
        products = candidate.plan.products
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
def test_a_tile_waits_until_the_one_before_in_its_place_is_stored(threads: int) -> None:
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


def test_writes_in_flight_are_limited() -> None:
    """Each row of a tile is a burst, and only two may be without an answer."""
    sizes = {"channels": 1, "rows": 7, "columns": 7}
    machine = accel.machine("vta", write_latency=1000, outstanding=2)
    plan = PoolPlan(channels=1, rows=7, columns=7, threads=1, thread_axis="channels")
    every = pool_candidates(pool_shape(LAYERS[1], machine.config), machine.config, 1, sizes)
    (found,) = (one for one in every if one.plan == plan)
    simulated = built(LAYERS[1], machine, plan).run(check=False).cycles
    assert simulated > 14 * 8 * 1000 / 2
    assert found.prediction.cycles == pytest.approx(simulated, rel=0.12)


@pytest.mark.parametrize("name", ["vta", "vta-int8"])
def test_products_bring_elements_and_loads_go_ahead(name: str) -> None:
    """Each element is copied in a slot, and where products do not overwrite, reset in another; there are two
    comparisons for each output in either direction, and some for rows that two tiles see."""
    workload = accel.max_pool2d(1, 64, 112, 112, 3, stride=2, padding=1)
    machine = accel.machine(name)
    best = candidates(workload, machine.config)[0]
    assert best.plan.products
    taken = built(workload, machine, best.plan).run(check=False).cycles
    slots = 64 // 16 * (112 * 112 * (1 if machine.config.post else 2) + 112 * 56 * 2 + 56 * 56 * 2)
    assert slots < taken < 1.06 * slots
    assert best.prediction.cycles == pytest.approx(taken, rel=0.01)


@examples(25)
@given(st.data())
def test_products_of_any_pooling(data: st.DataObject) -> None:
    """Ends that no tile fills, channels that fill no block, and windows that share elements or do not."""
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
    found = [one for one in candidates(workload, machine.config) if one.plan.products]
    if not found:
        return
    chosen = data.draw(st.sampled_from(found))
    program = built(workload, machine, chosen.plan)
    result = program.run(seed=1)
    assert result.mismatches == 0
    slots = sum(one.uop_count for one in program.instructions if isinstance(one, Loops))
    assert chosen.prediction.compute == pytest.approx(slots, rel=0.2)  # but for phases that a last tile lacks
    assert chosen.prediction.cycles == pytest.approx(result.cycles, rel=0.3, abs=300)


def test_tiles_and_threads_are_those_asked_for() -> None:
    config = accel.machine("vta").config
    found = candidates(LAYERS[0], config, 2, {"tile_c": 32, "tile_h": 7})
    assert {(one.plan.channels, one.plan.rows, one.plan.threads) for one in found} == {(2, 7, 2)}
    found = candidates(LAYERS[0], config, None, {"tile_h": 999})
    assert {one.plan.rows for one in found} == {14}


@pytest.mark.parametrize(("threads", "most"), [(15, 14), (5000, 14)])
def test_more_threads_than_there_is_work_for(threads: int, most: int) -> None:
    """14 rows of the output, or 4 blocks of channels."""
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


def test_the_fewest_threads_among_equals() -> None:
    found = candidates(LAYERS[1], accel.machine("vta").config)
    close = [one for one in found if one.prediction.cycles <= found[0].prediction.cycles * 1.001]
    assert found[0].plan.threads == min(one.plan.threads for one in close)
