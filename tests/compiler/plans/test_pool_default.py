"""Default schedules of max pooling: work exactly, time closely, threads and tiles that are asked for."""

from typing import Any

import pytest

import accel
from accel.base.errors import ScheduleError
from accel.compiler.operators.default import candidates
from accel.compiler.plans.pool_default import pool_candidates
from accel.compiler.plans.pool_model import pool_shape
from accel.compiler.plans.pool_schedule import PoolPlan, PoolThreadAxis, pool_schedule
from accel.core.isa import Loops
from accel.run.program import Program
from tests.expect import refused

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
    """The compute unit both loads and compares; micro-ops are known exactly."""
    machine = accel.machine("vta")
    for candidate in candidates(workload, machine.config)[::5]:
        program = built(workload, machine, candidate.plan)
        result = program.run()
        assert result.mismatches == 0
        loops = [one for one in program.instructions if isinstance(one, Loops)]
        executed = sum(one.uop_count for one in loops)
        assert candidate.prediction.compute - candidate.prediction.load == executed
        loaded = result.bytes_by_kind["acc_8bit"]
        assert candidate.prediction.load * 8 == pytest.approx(loaded, rel=0.1)
        assert candidate.prediction.store * 8 == result.bytes_by_kind["out"]
        assert candidate.prediction.cycles == pytest.approx(result.cycles, rel=0.06)


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
    (found,) = pool_candidates(pool_shape(LAYERS[1], machine.config), machine.config, 1, sizes)
    assert found.plan == plan
    simulated = built(LAYERS[1], machine, plan).run(check=False).cycles
    assert simulated > 14 * 8 * 1000 / 2
    assert found.prediction.cycles == pytest.approx(simulated, rel=0.12)


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
    with refused(ScheduleError, "not even the smallest tiles of this pooling fit configuration 'tiny'"):
        accel.build(workload, "tiny")


def test_the_fewest_threads_among_equals() -> None:
    found = candidates(LAYERS[1], accel.machine("vta").config)
    close = [one for one in found if one.prediction.cycles <= found[0].prediction.cycles * 1.001]
    assert found[0].plan.threads == min(one.plan.threads for one in close)
