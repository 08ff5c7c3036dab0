"""Explorations find fronts, measure nothing twice, and continue after an interruption."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import accel
from accel.base.errors import SweepError
from accel.base.records import replace
from accel.base.run_choices import SAMPLERS
from accel.benchmarks import NETWORKS, Layer
from accel.explore import Exploration, exploration_runner, explore
from accel.explore.exploration_tasks import LayerRun, NetworkRun, measure_task
from accel.explore.objectives import measured_figures
from accel.explore.pareto_front import dominates
from accel.explore.search_space import Infeasible, Space
from accel.sweeps.sweep_journal import Journal
from tests.expect import refused
from tests.explore import worker_functions
from tests.explore.spaces import GEMM, small

pytest.importorskip("optuna")


@pytest.fixture(scope="module")
def complete() -> Exploration:
    """All points of the small space."""
    return explore(small())


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[Any]]:
    """The number of measurements by task."""
    counts: Counter[Any] = Counter()

    def measure(task: Any) -> Any:
        counts[task] += 1
        return measure_task(task)

    monkeypatch.setattr(exploration_runner, "measure_task", measure)
    yield counts
    assert set(counts.values()) <= {1}, "a task was measured twice"


def test_every_point_is_measured_or_has_a_reason(complete: Exploration) -> None:
    assert len(complete.points) == complete.space.size
    assert complete.end == "all points of the space are proposed"
    for point in complete.points:
        if point.status == "infeasible":
            with pytest.raises(Infeasible) as reason:
                complete.space.config(point.values)
            assert str(reason.value) == point.message
            continue
        config = complete.space.config(point.values)
        program = accel.build(accel.gemm(16, 16, 16, shift=8), config)
        assert point.status == "measured"
        assert point.objectives["cycles"] == pytest.approx(program.run().cycles, rel=0.2)
    assert complete.check is not None
    assert (complete.check.evaluated, complete.check.is_complete) == (0, True)


def test_the_front_is_that_of_all_pairs(complete: Exploration) -> None:
    for point in complete.measured:
        dominated = any(dominates(other.losses, point.losses) for other in complete.measured)
        assert dominated != any(point.losses == one.losses for one in complete.front)
    assert complete.best.objectives["cycles"] == min(one.objectives["cycles"] for one in complete.measured)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_samplers_propose_within_the_space_and_repeat_with_a_seed(
    sampler: str, complete: Exploration, counted: Counter[Any]
) -> None:
    spec = small(sampler=sampler, trials=6, seed=3)
    found = explore(spec, max_neighbours=0)
    assert len(found.measured) == 6
    known = {one.values: one for one in complete.points}
    for point in found.points:
        assert (point.status, point.losses) == (known[point.values].status, known[point.values].losses)
    counted.clear()
    assert [one.values for one in explore(spec, max_neighbours=0).points] == [
        one.values for one in found.points
    ]


@pytest.mark.parametrize("sampler", ["random", "grid", "nsga2", "tpe"])
def test_the_local_check_reaches_a_local_optimum(sampler: str, complete: Exploration) -> None:
    """No feasible neighbour dominates a point of the front, compared with all points of the space."""
    found = explore(small(sampler=sampler, trials=3))
    known = {one.values: one for one in complete.points}
    assert found.check is not None
    assert found.check.is_complete
    assert found.check.evaluated == sum(
        one.origin == "neighbour" and bool(one.losses) for one in found.points
    )
    for point in found.front:
        space = found.space
        for neighbour in (*space.neighbours(point.values), *space.exchanges(point.values)):
            other = known[neighbour]
            assert other.status == "infeasible" or not dominates(other.losses, point.losses)


def test_an_exchange_improves_a_point_that_no_step_improves() -> None:
    """With four MACs, only a machine with half the inputs and twice the outputs is better than a 4x1 one."""
    field = {"block_in": {"powers_of_two": [1, 4]}, "block_out": {"powers_of_two": [1, 4]}}
    spec = small(
        sampler="random",
        trials=1,
        field=field,
        constraints=["block_in * block_out == 4"],
        workload=[GEMM | {"K": 1}],
        objectives=["cycles", "macs_per_cycle"],
    )
    space = spec.space
    assert all(not _is_feasible(space, one) for one in space.neighbours((4, 1)))
    found = explore(spec)
    assert found.check is not None
    assert found.check.is_complete
    assert found.best.values == (1, 4)


def _is_feasible(space: Space, values: tuple[int, ...]) -> bool:
    try:
        space.config(values)
    except Infeasible:
        return False
    return True


def test_neighbours_that_cannot_dominate_are_not_measured(complete: Exploration) -> None:
    """A machine with more block RAMs than every point of the sampler dominates none of its front."""
    found = explore(small(sampler="exhaustive", trials=2, objectives=["block_rams", "cycles"]))
    most = max(one.objectives["block_rams"] for one in found.measured if one.origin == "sampler")
    assert any(one.objectives["block_rams"] > most for one in complete.measured)
    assert found.check is not None
    assert found.check.is_complete
    assert all(one.objectives["block_rams"] <= most for one in found.measured)


def test_a_limited_check_says_what_is_left() -> None:
    found = explore(small(sampler="random", trials=2), max_neighbours=1)
    assert found.check is not None
    assert found.check.evaluated == 1
    assert found.check.left > 0
    assert found.check.describe().startswith("incomplete, ")


@pytest.mark.parametrize("sampler", ["nsga2", "exhaustive"])
def test_an_interrupted_exploration_continues(sampler: str, tmp_path: Path, counted: Counter[Any]) -> None:
    spec = small(sampler=sampler, trials=12)
    journal = tmp_path / "journal.jsonl"

    def interrupt(done: int, _trials: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explore(spec, journal=journal, progress=interrupt)
    assert 5 <= len(journal.read_text().splitlines()) < 12
    found = explore(spec, journal=journal)
    measured = sum(counted.values())
    assert len(journal.read_text().splitlines()) == measured
    again = explore(spec, journal=journal)
    assert sum(counted.values()) == measured
    assert again.to_dict() == found.to_dict()
    counted.clear()
    assert explore(spec).to_dict() == found.to_dict()


def test_more_trials_extend_an_exploration(tmp_path: Path, counted: Counter[Any]) -> None:
    journal = tmp_path / "journal.jsonl"
    few = explore(small(sampler="random", trials=5), journal=journal, max_neighbours=0)
    more = explore(small(sampler="random", trials=9), journal=journal, max_neighbours=0)
    assert [one.values for one in more.points[: len(few.points)]] == [one.values for one in few.points]
    assert len(more.measured) == 9


def test_processes_give_the_same_points(complete: Exploration) -> None:
    found = explore(small(), jobs=2)
    assert found.to_dict() == complete.to_dict()


def test_dask_survives_a_dead_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, complete: Exploration
) -> None:
    """With two workers, one of which is killed, nothing is lost and nothing is recorded twice."""
    pytest.importorskip("distributed")
    monkeypatch.setenv("ACCEL_TEST_FOLDER", str(tmp_path))
    monkeypatch.setattr(exploration_runner, "measure_task", worker_functions.measure_and_die_once)
    journal = tmp_path / "journal.jsonl"
    found = explore(small(), executor="dask", jobs=2, journal=journal)
    assert (tmp_path / "seen").exists()
    assert found.to_dict() == complete.to_dict()
    measured = {one.values for one in complete.measured} | {complete.base.values}
    assert len(journal.read_text().splitlines()) == len(measured)


def test_machines_that_do_not_fit_a_workload_are_recorded() -> None:
    conv = {"name": "conv2d", "IC": 8, "OC": 8, "size": 16, "kernel": 7, "shift": 8}
    field = {"inp_bytes": {"powers_of_two": [8, 64]}}
    found = explore(small(field=field, constraints=[], limit={}, workload=[GEMM, conv]))
    assert [(one.values, one.status) for one in found.points] == [
        ((8,), "failed"),
        ((16,), "failed"),
        ((32,), "measured"),
        ((64,), "measured"),
    ]
    for point in found.failed:
        assert point.message is not None
        assert point.message.startswith("conv2d: not even the smallest tiles of this convolution fit")
        assert not point.is_fault
        assert point.measured["gemm"]["error"] is None


def test_limits_on_measured_figures(complete: Exploration) -> None:
    values = sorted(one.objectives["cycles"] for one in complete.measured)
    limit = values[len(values) // 2]
    found = explore(small(limit={"cycles": limit, "multipliers": 100}))
    slow = [one for one in found.infeasible if one.measured]
    assert slow
    assert all(one.message and one.message.startswith("cycles is ") for one in slow)
    assert {one.values for one in found.measured} == {
        one.values for one in complete.measured if one.objectives["cycles"] <= limit
    }


def number(figure: object) -> float:
    assert isinstance(figure, int | float)
    return figure


def test_an_empty_space_is_reported() -> None:
    with refused(
        SweepError, "no point of the space is feasible; the first: constraint 'batch > 1' does not hold"
    ):
        explore(small(constraints=["batch > 1"]))


def test_objectives_of_several_workloads() -> None:
    second = GEMM | {"K": 64, "label": "long", "weight": 3}
    found = explore(
        small(
            workload=[GEMM, second],
            objectives=["cycles", "cycles:long", "dram_bytes", "macs_per_cycle"],
            trials=3,
        )
    )
    for point in found.measured:
        cycles = {name: one["cycles"] for name, one in point.measured.items()}
        moved = {name: one["dram_bytes"] for name, one in point.measured.items()}
        assert point.config is not None
        assert point.objectives == {
            "cycles": cycles["gemm"] + 3 * cycles["long"],
            "cycles:long": cycles["long"],
            "dram_bytes": moved["gemm"] + 3 * moved["long"],
            "macs_per_cycle": point.config.macs_per_cycle,
        }
        assert point.losses[-1] == -point.config.macs_per_cycle


def test_the_front_is_simulated_on_request(complete: Exploration) -> None:
    found = explore(small(), simulate_front=True)
    for point in found.front:
        assert point.config is not None
        run = accel.build(accel.gemm(16, 16, 16, shift=8), point.config).run()
        (figures,) = found.simulated[point.values].values()
        assert figures["cycles"] == run.cycles
        assert figures["dram_bytes"] == run.load_bytes + run.store_bytes
    assert found.points == complete.points


def test_objectives_of_area_and_energy() -> None:
    spec = small(
        timing="simulated",
        trials=4,
        objectives=["energy", "energy:long", "lut_slots", "flip_flops"],
        workload=[GEMM, GEMM | {"K": 64, "label": "long", "weight": 3}],
        limit={"energy": 1e12, "lut_slots": 1e6},
    )
    found = explore(spec)
    assert found.measured
    for point in found.measured:
        assert point.config is not None
        short, long = (
            accel.build(accel.gemm(16, 16, size, shift=8), point.config).run().energy().total
            for size in (16, 64)
        )
        area = accel.predict_area(point.config)
        assert point.objectives == {
            "energy": pytest.approx(short.nominal + 3 * long.nominal),
            "energy:long": pytest.approx(long.nominal),
            "lut_slots": area.lut_slots,
            "flip_flops": area.flip_flops,
        }
        assert point.measured["long"]["energy_low"] == pytest.approx(long.low)
        assert point.measured["long"]["energy_high"] == pytest.approx(long.high)


def test_figures_that_a_journal_lacks_are_measured_again(tmp_path: Path, counted: Counter[Any]) -> None:
    """Journals of earlier releases have no energies."""
    spec = small(timing="simulated", trials=2, objectives=["energy"])
    new, old = tmp_path / "new.jsonl", tmp_path / "old.jsonl"
    found = explore(spec, journal=new, max_neighbours=0)
    with Journal(new) as complete, Journal(old) as partial:
        for key, figures in complete.known.items():
            names = figures.keys() - {"energy", "energy_low", "energy_high"}
            partial.add(key, {name: figures[name] for name in names})
    measured = sum(counted.values())
    counted.clear()
    assert explore(spec, journal=old, max_neighbours=0).to_dict() == found.to_dict()
    assert sum(counted.values()) == measured


def test_estimated_cycles_are_near_the_predicted_ones(complete: Exploration) -> None:
    found = explore(small(timing="estimated"))
    known = {one.values: one for one in complete.points}
    assert len(found.measured) == len(complete.measured)
    for point in found.measured:
        predicted = known[point.values].objectives["cycles"]
        assert point.objectives["cycles"] == pytest.approx(predicted, rel=0.03)


@pytest.mark.parametrize("timing", ["predicted", "estimated", "simulated"])
def test_a_network_is_the_sum_of_its_layers(timing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"M": 32, "N": 32, "K": 32, "shift": 8}
    layers = (
        Layer(name="product", repeats=3, operator="gemm", parameters=sizes),
        Layer(name="row", repeats=1, operator="gemm", parameters=sizes | {"M": 1}),
    )
    monkeypatch.setitem(NETWORKS, "two", layers)
    config = accel.machine("gemm8x8").config
    found = measure_task(NetworkRun(network="two", config=config, timing=timing))
    product, row = (
        measure_task(
            LayerRun(
                operator=one.operator, parameters=tuple(one.parameters.items()), config=config, timing=timing
            )
        )
        for one in layers
    )
    for figure in measured_figures(timing):
        assert found[figure] == pytest.approx(3 * number(product[figure]) + number(row[figure]))
    monkeypatch.setitem(NETWORKS, "two", (replace(layers[0], parameters=sizes | {"shift": 40}),))
    refusal = measure_task(NetworkRun(network="two", config=config, timing=timing))
    assert (refusal["error"], refusal["message"]) == ("refused", "product: shift is 40; it must be in 0..31")
