"""Explorations by frequency place each core once, and only machines that pass all other checks.

The placements are invented by a formula.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from accel.base.errors import DesignError, EngineError, SweepError
from accel.base.records import replace
from accel.core.config import Config, load_config
from accel.explore import Exploration, exploration_runner, explore
from accel.explore.exploration_snapshot import snapshot
from accel.explore.front_page import page_data
from accel.explore.front_picture import front_svg
from accel.explore.placement_tasks import (
    DEVICE_LIMITS,
    PlacementOptions,
    PlacementRun,
    ToolVersions,
    measure_placement,
)
from accel.hw.export import machine_placement, place_and_route
from accel.hw.export.machine_placement import TimeLimitError
from accel.sweeps.task_figures import Figures
from tests.expect import refused
from tests.explore.spaces import GEMM, small
from tests.explore.worker_functions import place_by_formula
from tests.hw.export.test_place_and_route import recorded

TOOLS = ToolVersions(yosys="0.1", nextpnr="0.2")
TIMED = ["microseconds", "lut_slots"]


class FakePlacer:
    """Places by a formula, and counts.

    Attributes:
        placed: number of placements by task.
        fail: returns the figures of a failure instead, or None.
    """

    def __init__(self) -> None:
        self.placed: Counter[PlacementRun] = Counter()
        self.fail: Callable[[PlacementRun, float], Figures | None] = lambda _task, _limit: None

    def __call__(self, task: PlacementRun, *, time_limit: float, folder: Path | None = None) -> Figures:
        assert folder is not None
        assert folder.is_dir()
        self.placed[task] += 1
        return self.fail(task, time_limit) or place_by_formula(task, time_limit=time_limit, folder=folder)

    @property
    def cores(self) -> set[Config]:
        return {task.config for task in self.placed}


@pytest.fixture
def placer(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakePlacer]:
    found = FakePlacer()
    monkeypatch.setattr(exploration_runner, "placement_tools", lambda: TOOLS)
    monkeypatch.setattr(exploration_runner, "measure_placement", found)
    yield found
    assert set(found.placed.values()) <= {1}, "a core was placed twice"


def hardware(found: Exploration) -> set[Config]:
    """The cores of the measured points and the base machine."""
    return {one.config.hardware for one in (*found.measured, found.base) if one.config is not None}


def test_frequency_and_time(placer: FakePlacer) -> None:
    second = GEMM | {"K": 64, "label": "long", "weight": 3}
    found = explore(
        small(
            workload=[GEMM, second],
            objectives=["microseconds", "frequency", "microseconds:long"],
            placement={"seeds": 3, "target": 75, "time_limit": 60},
        )
    )
    assert placer.cores == hardware(found)
    assert {(task.seeds, task.target, task.tools) for task in placer.placed} == {(3, 75.0, TOOLS)}
    assert len(found.measured) > 10
    for point in found.measured:
        assert point.config is not None
        mhz = 80 - point.config.block_in - point.config.block_out / 2
        cycles = {name: one["cycles"] for name, one in point.measured.items()}
        assert isinstance(cycles["gemm"], int)
        assert isinstance(cycles["long"], int)
        assert point.objectives == {
            "microseconds": pytest.approx((cycles["gemm"] + 3 * cycles["long"]) / mhz),
            "frequency": mhz,
            "microseconds:long": pytest.approx(cycles["long"] / mhz),
        }
        assert point.losses[1] == -mhz
    row = found.table.where(status="measured").rows[0]
    assert (row["frequency_low"], row["frequency_high"]) == (row["frequency"] - 2, row["frequency"] + 2)
    assert row["placed_lut_slots"] == 100 * row["macs_per_cycle"]
    assert row["microseconds:gemm"] == pytest.approx(row["cycles:gemm"] / row["frequency"])


def test_the_fastest_machine_has_not_the_fewest_cycles(placer: FakePlacer) -> None:
    """Dispatch stages cost cycles and save time."""
    spec = small(field={"dispatch_stages": {"integers": [0, 3]}}, objectives=TIMED)
    by_time = explore(spec)
    by_cycles = explore(small(field={"dispatch_stages": {"integers": [0, 3]}}, objectives=["cycles"]))
    assert by_time.best.values == (3,)
    assert by_cycles.best.values == (0,)
    assert len(placer.cores) == 4, "without a frequency nothing is placed"


def test_refused_machines_are_never_placed(placer: FakePlacer) -> None:
    """Neither those beyond the device or a limit, nor those that a workload does not fit."""
    conv = {"name": "conv2d", "IC": 8, "OC": 8, "size": 16, "kernel": 7, "shift": 8}
    field = {
        "block_in": {"powers_of_two": [4, 16]},
        "block_out": {"powers_of_two": [4, 16]},
        "inp_bytes": {"powers_of_two": [32, 64]},
    }
    complete = explore(small(field=field, constraints=[], limit={}, workload=[GEMM, conv]))
    cycles = sorted(one.objectives["cycles"] for one in complete.measured)
    placed = {
        "field": field,
        "workload": [GEMM, conv],
        "objectives": TIMED,
        "constraints": [f"cycles < {cycles[-1]}", "batch == 1"],
        "limit": {"lut_slots": 60_000},
    }
    assert placer.cores == set()
    found = explore(small(**placed))
    reasons = {one.message for one in (*found.infeasible, *found.failed) if one.message is not None}
    for begin in ("multipliers is ", "constraint 'cycles < ", "conv2d: not even the smallest tiles"):
        assert any(reason.startswith(begin) for reason in reasons), begin
    assert len(found.measured) + len(found.infeasible) + len(found.failed) == found.space.size
    assert placer.cores == hardware(found)
    assert dict(found.space.limits) == DEVICE_LIMITS | {"lut_slots": 60_000}


def test_a_base_machine_beyond_the_device_is_not_placed(placer: FakePlacer) -> None:
    field = {"block_in": {"powers_of_two": [4, 8]}}
    derived = {"block_out": "4", "inp_bytes": "8192", "wgt_bytes": "8192", "acc_bytes": "8192"}
    found = explore(
        small(config="vta", field=field, derived=derived, objectives=TIMED, limit={}, constraints=[])
    )
    assert found.base.status == "infeasible"
    assert found.base.message == "block_rams is 304; an ECP5-85F has 208"
    assert len(placer.cores) == len(found.measured) == 2
    assert not any(one["base"] for one in page_data(found)["points"])


def test_equal_hardware_is_placed_once(placer: FakePlacer) -> None:
    """The latency of a memory and the serial mode are no hardware."""
    field = {"read_latency": {"choices": [4, 64]}, "serial": {"choices": [0, 1]}}
    found = explore(small(field=field, objectives=TIMED))
    assert len(found.measured) == 4
    assert len(placer.placed) == 1
    assert len({one.objectives["microseconds"] for one in found.measured}) > 1
    assert found.placed == 1


def test_constraints_and_limits_on_the_frequency(placer: FakePlacer) -> None:
    complete = explore(small(objectives=TIMED, placement={}))
    known = {one.values: one for one in complete.points}
    rows = {point.values: row for point, row in zip(complete.points, complete.table.rows, strict=True)}
    times = sorted(one.objectives["microseconds"] for one in complete.measured)
    placer.placed.clear()
    found = explore(
        small(
            objectives=["cycles", "block_rams"],
            constraints=["block_in * block_out <= 64", "frequency >= 70 or block_in > block_out"],
            limit={"multipliers": 100, "microseconds": times[-2]},
        )
    )
    slow = [one for one in found.infeasible if one.placement]
    assert slow
    for point in slow:
        mhz, took = (rows[point.values][name] for name in ("frequency", "microseconds"))
        assert mhz < 70 or took > times[-2]
        assert point.message is not None
        assert point.message.startswith(("microseconds is ", "constraint 'frequency >= 70 or ")), (
            point.message
        )
        assert not point.message.startswith("constraint") or point.message.endswith(
            f" does not hold; frequency is {mhz:.4g}"
        )
    assert {one.values for one in found.measured} == {
        one.values for one in complete.measured if one.values not in {other.values for other in slow}
    }
    assert all(known[one.values].status == "measured" for one in slow)


def test_failures_have_a_reason(placer: FakePlacer, tmp_path: Path) -> None:
    """A placement that its time limit ended is made again with a higher limit."""
    journal = tmp_path / "journal.jsonl"
    field = {"block_out": {"powers_of_two": [4, 16]}}

    def fail(task: PlacementRun, limit: float) -> Figures | None:
        if task.config.block_out == 16:
            return {"error": "refused", "message": "nextpnr-ecp5 failed: no route"}
        if task.config.block_out == 8 and limit < 100:
            return {"error": "refused", "message": "too long", "time_limit": limit}
        return None

    def run(seconds: float) -> Exploration:
        placer.placed.clear()
        spec = small(field=field, objectives=TIMED, placement={"time_limit": seconds}, limit={})
        return explore(spec, journal=journal)

    def outcomes(found: Exploration) -> list[tuple[str, str | None]]:
        return [(one.status, one.message) for one in found.points]

    placer.fail = fail
    found = run(60)
    unroutable = ("failed", "placement: nextpnr-ecp5 failed: no route")
    assert outcomes(found) == [("measured", None), ("failed", "placement: too long"), unroutable]
    assert (found.base.status, found.base.message) == ("failed", "placement: too long")
    assert found.faults == ()
    assert not any("time_limit" in row for row in found.table.rows)
    assert outcomes(run(50)) == outcomes(found)
    assert sum(placer.placed.values()) == 0
    found = run(600)
    assert outcomes(found) == [("measured", None), ("measured", None), unroutable]
    assert [task.config.block_out for task in placer.placed] == [8]
    run(60)
    assert sum(placer.placed.values()) == 0, "the placement that took long is known now"


def test_an_interrupted_exploration_continues(placer: FakePlacer, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    spec = small(objectives=TIMED, sampler="exhaustive")

    def interrupt(_task: PlacementRun, _limit: float) -> None:
        if len(placer.placed) == 4:
            raise KeyboardInterrupt

    placer.fail = interrupt
    with pytest.raises(KeyboardInterrupt):
        explore(spec, journal=journal)
    interrupted = list(placer.placed)[-1]
    placer.fail = lambda _task, _limit: None
    del placer.placed[interrupted]
    found = explore(spec, journal=journal)
    assert placer.placed[interrupted] == 1
    assert placer.cores == hardware(found)
    before = dict(placer.placed)
    assert explore(spec, journal=journal).to_dict() == found.to_dict()
    assert placer.placed == before


def test_another_nextpnr_places_again(
    placer: FakePlacer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = small(objectives=TIMED, field={"block_in": {"powers_of_two": [4, 8]}})
    explore(spec, journal=tmp_path / "journal.jsonl")
    cores = len(placer.placed)
    monkeypatch.setattr(exploration_runner, "placement_tools", lambda: replace(TOOLS, nextpnr="0.3"))
    explore(spec, journal=tmp_path / "journal.jsonl")
    assert len(placer.placed) == 2 * cores


def test_processes_give_the_same_points(placer: FakePlacer, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = small(objectives=TIMED, field={"block_in": {"powers_of_two": [4, 8]}})
    alone = explore(spec)
    monkeypatch.setattr(exploration_runner, "measure_placement", place_by_formula)
    assert explore(spec, jobs=2).to_dict() == alone.to_dict()


@pytest.mark.parametrize("sampler", ["random", "nsga2"])
def test_the_local_check_places_neighbours(sampler: str, placer: FakePlacer) -> None:
    pytest.importorskip("optuna")
    complete = explore(small(objectives=TIMED))
    placer.placed.clear()
    found = explore(small(objectives=TIMED, sampler=sampler, trials=3), max_neighbours=100)
    assert found.check is not None
    assert found.check.is_complete
    assert found.check.evaluated > 0
    assert placer.cores == hardware(found)
    assert found.best.losses[0] >= complete.best.losses[0]
    placer.placed.clear()
    few = explore(small(objectives=TIMED, sampler=sampler, trials=3))
    assert few.check is not None
    assert few.check.evaluated <= 3, "by default, no more neighbours are placed than trials"


def test_points_are_published_while_others_are_placed(
    placer: FakePlacer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exploration_runner, "_PUBLISH_SECONDS", -1.0)
    numbers: list[int] = []
    done: list[int] = []
    stages: list[str] = []
    found = explore(
        small(objectives=TIMED),
        publish=lambda now: numbers.append(len(now.measured)),
        progress=lambda count, _total: done.append(count),
        stage=stages.append,
    )
    assert stages[:4] == ["1 core left to place", "", "15 cores left to place", "14 cores left to place"]
    assert stages[-2:] == ["1 core left to place", ""]
    assert len(set(numbers)) > 10
    assert sorted(numbers) == numbers
    assert numbers[-1] == len(found.measured)
    assert done[-1] == len(found.measured)


def test_pages_have_units(placer: FakePlacer) -> None:
    found = explore(small(objectives=["microseconds", "frequency"], placement={"seeds": 2}))
    data = page_data(found)
    assert data["labels"]["frequency"] == "frequency (MHz)"
    assert data["labels"]["microseconds"] == "microseconds"
    assert data["labels"]["block_rams"] == "block_rams (18 Kbit)"
    assert data["maximized"] == ["frequency"]
    assert {"frequency", "microseconds"} <= set(data["axes"])
    shown = snapshot(found, is_running=False)
    assert "placed and routed on an ECP5-85F: the median of seeds 1 to 2" in shown["facts"]
    assert all(one["values"]["frequency"] > 0 for one in shown["points"])
    assert b"frequency (MHz)" in front_svg(found)
    assert found.to_dict()["units"] == {"microseconds": "microseconds", "frequency": "MHz"}
    assert found.to_dict()["placement"] == {
        "device": "ECP5-85F",
        "seeds": 2,
        "target": None,
        "time_limit": 3600.0,
        "yosys": "0.1",
        "nextpnr": "0.2",
        "placed": len(placer.placed),
    }


def test_missing_tools_are_reported_before_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place_and_route, "YOSYS", "yowasp-nothing")
    monkeypatch.setattr(exploration_runner, "measure_task", None)
    with pytest.raises(EngineError, match=r"^synthesis needs yowasp-nothing, which is not installed; .*fpga"):
        explore(small(objectives=TIMED))


# --- the options -----------------------------------------------------------------------------------


def test_options() -> None:
    table = {"seeds": 5, "target": 80, "time_limit": 1800}
    assert small(objectives=TIMED, placement=table).placement == PlacementOptions(
        seeds=5, target=80.0, time_limit=1800.0
    )
    assert small(objectives=["frequency"]).placement == PlacementOptions()
    assert small(constraints=["frequency > 50"]).placement == PlacementOptions()
    assert small(limit={"microseconds:gemm": 9}).placement == PlacementOptions()
    assert small().placement is None
    assert PlacementOptions(seeds=3, target=80.0).describe() == (
        "placed and routed on an ECP5-85F: the median of seeds 1 to 3, with a target of 80 MHz"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"placement": {"seed": 2}}, "placement has 'seed'; did you mean 'seeds'?"),
        ({"placement": {"seeds": 0}}, "seeds of placement is 0; it must be in 1..1000"),
        ({"placement": {"seeds": 1.5}}, "seeds of placement is 1.5; it must be in 1..1000"),
        ({"placement": {"target": -1}}, "target of placement is -1; it must be a positive number"),
        ({"placement": {"target": "80"}}, "target of placement is '80'; it must be a positive number"),
        ({"placement": {"time_limit": 0}}, "time_limit of placement is 0; it must be a positive number"),
        (
            {"placement": {"time_limit": True}},
            "time_limit of placement is true; it must be a positive number",
        ),
        ({"placement": 3}, "placement is 3; it must be a table, as [placement]"),
        (
            {"objectives": ["cycles"], "placement": {}},
            "the space has placement, and nothing needs the frequency; add 'frequency' or 'microseconds' to "
            "the objectives",
        ),
        (
            {"limit": {"frequency": 90}},
            "limit has 'frequency', and a limit is the largest value; give the smallest one, as "
            "constraints = ['frequency >= 60']",
        ),
        ({"objectives": ["frequenzy"]}, "'frequenzy' is not an objective; did you mean 'frequency'?"),
        (
            {"constraints": ["energy < 5"]},
            'energy is counted in programs, and timing is predicted; write timing = "simulated"',
        ),
    ],
    ids=str,
)
def test_mistakes_are_reported(changes: dict[str, Any], message: str) -> None:
    with refused(SweepError, message):
        small(**({"objectives": TIMED} | changes))


# --- one task --------------------------------------------------------------------------------------


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> PlacementRun:
    monkeypatch.setattr(place_and_route, "tool_versions", lambda: (TOOLS.yosys, TOOLS.nextpnr))
    return PlacementRun(config=load_config("tiny").hardware, seeds=3, target=None, tools=TOOLS)


def test_the_frequency_is_the_median(
    task: PlacementRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folders: list[Path] = []

    def place(config: Config, seeds: int, folder: Path, **options: object) -> list[Any]:
        assert (config, seeds) == (task.config, 3)
        assert options == {"target": None, "time_limit": 60.0}
        assert folder.is_dir()
        folders.append(folder)
        return [replace(recorded(), mhz=mhz) for mhz in (50.0, 70.0, 40.0)]

    monkeypatch.setattr(machine_placement, "place_machine", place)
    found = measure_placement(task, time_limit=60.0, folder=tmp_path)
    assert found == {
        "error": None,
        "message": None,
        "frequency": 50.0,
        "frequency_low": 40.0,
        "frequency_high": 70.0,
        "placed_lut_slots": 70,
        "placed_flip_flops": 48,
    }
    measure_placement(task, time_limit=60.0, folder=tmp_path / "elsewhere")  # on another machine
    assert folders[0].parent == tmp_path
    assert folders[1].parent != tmp_path
    assert not any(one.exists() for one in folders)


@pytest.mark.parametrize(
    ("error", "figures"),
    [
        (DesignError("no route"), {"error": "refused", "message": "no route"}),
        (TimeLimitError("late"), {"error": "refused", "message": "late", "time_limit": 60.0}),
    ],
)
def test_failures_become_figures(
    error: Exception, figures: Figures, task: PlacementRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def place(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(machine_placement, "place_machine", place)
    assert measure_placement(task, time_limit=60.0) == figures


def test_a_tool_that_is_ended_ends_the_exploration(
    task: PlacementRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def place(*_: object, **__: object) -> None:
        raise EngineError("nextpnr-ecp5 was ended by signal 9; there may be too little memory")

    monkeypatch.setattr(machine_placement, "place_machine", place)
    with pytest.raises(EngineError, match="was ended by signal 9"):
        measure_placement(task, time_limit=60.0)


def test_a_worker_with_another_version_is_refused(task: PlacementRun) -> None:
    other = replace(task, tools=replace(TOOLS, nextpnr="0.3"))
    with refused(
        EngineError,
        "a worker has Yosys '0.1' and nextpnr '0.2'; this exploration uses '0.1' and '0.3'",
    ):
        measure_placement(other, time_limit=60.0)
