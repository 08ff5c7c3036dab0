"""Tile sizes that users give, and the interface of planners."""

import pytest

import accel
from accel.base.errors import ScheduleError
from accel.base.records import replace
from accel.compiler.operators.default_schedule import find_candidates, planner_of
from accel.compiler.operators.operator_registry import OPERATORS
from accel.compiler.plans.conv_planner import CONV_PLANNER
from accel.compiler.plans.gemm_plan import GemmPlan
from accel.compiler.plans.gemm_planner import GEMM_PLANNER
from tests.expect import refused

VTA, TINY = accel.machine("vta").config, accel.machine("tiny").config


def test_sizes_convert_to_blocks_and_back() -> None:
    tile = {"tile_m": 3, "tile_n": 32, "step_k": 48}
    assert GEMM_PLANNER.tile_blocks(tile, "gemm", VTA) == {"rows": 3, "columns": 2, "depth": 3}
    plan = GemmPlan(rows=3, columns=2, depth=3, threads=1, thread_axis="inner", outer="rows")
    assert GEMM_PLANNER.tile_sizes(plan, VTA) == tile
    assert CONV_PLANNER.tile_blocks({"tile_h": 5, "step_kh": 1}, "conv2d", TINY) == {
        "rows": 5,
        "kernel_rows": 1,
    }


@pytest.mark.parametrize(
    ("tile", "message"),
    [
        ({"tile_o": 8}, "a tile of gemm has no 'tile_o'; did you mean 'tile_n'?"),
        ({"tile_n": 12}, "tile_n is 12; on configuration 'vta' it must be a multiple of 16"),
        ({"tile_n": 0}, "tile_n is 0; on configuration 'vta' it must be a multiple of 16"),
        ({"tile_m": True}, "tile_m is True; on configuration 'vta' it must be a positive integer"),
    ],
)
def test_invalid_sizes(tile: dict[str, int], message: str) -> None:
    with refused(ScheduleError, message):
        GEMM_PLANNER.tile_blocks(tile, "gemm", VTA)


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda operator: operator.name)
def test_short_names_of_sides_are_unique(operator: accel.Workload) -> None:
    shorts = [side.short_name for side in operator.planner.sides]  # type: ignore[attr-defined]
    assert len(set(shorts)) == len(shorts)


def test_tiles_that_do_not_fit() -> None:
    message = (
        "the tile is tile_m 256, tile_n 256; it does not fit configuration 'vta', or leaves nothing to do "
        "for each thread"
    )
    with refused(ScheduleError, message):
        GEMM_PLANNER.candidates(accel.gemm(512, 512, 512), VTA, None, {"tile_m": 256, "tile_n": 256})


@pytest.mark.parametrize(
    "workload",
    [accel.gemm(40, 40, 40, shift=3), accel.conv2d(1, 8, 9, 9, 8, 3), accel.max_pool2d(1, 8, 9, 9, 2)],
    ids=lambda workload: workload.name,
)
def test_single_plans_have_the_predictions_of_the_search(workload: accel.Workload) -> None:
    planner = planner_of(workload)
    shape = planner.features(workload, TINY)
    found = find_candidates(workload, TINY)
    for one in found[:5]:
        assert planner.fits(shape, TINY, one.plan)
        assert planner.predict(shape, TINY, one.plan).cycles == pytest.approx(one.prediction.cycles, rel=1e-9)
    assert not planner.fits(shape, TINY, replace(found[0].plan, threads=10**6))


def test_a_layer_is_planned_once() -> None:
    first, again = (find_candidates(accel.gemm(56, 40, 24, shift=3), TINY) for _ in range(2))
    assert first is not again
    assert all(one is other for one, other in zip(first, again, strict=True))
