"""Searches, their workers, and the records that they write and that compilation takes."""

import json
import os
import signal
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import accel
from accel.base.errors import TuningError
from accel.base.run_choices import EXPLORERS
from accel.compiler.codegen.compile_schedule import compile_schedule
from accel.network.digits import MODEL
from accel.run.measured_plans import simulated_cycles
from accel.run.tuning_records import Record, append_records, load_records, record_key
from accel.tuning.cost_model import CostModel
from accel.tuning.explorers import Trial, make_explorer
from accel.tuning.measurement import Measurer, measure_schedule
from accel.tuning.search_space import Point, TemplateSpace, make_space
from tests.expect import refused
from tests.tuning.templates import product

VTA = accel.machine("vta")


def small_space() -> TemplateSpace:
    space = make_space(product, VTA)
    assert isinstance(space, TemplateSpace)
    return space


@cache
def cycles_of(point: Point) -> int:
    """Cycles of a plan of :func:`small_space`."""
    return measure_schedule(small_space().schedule(point), VTA.config).cycles


def test_exhaustive_search_finds_the_optimum_of_a_template() -> None:
    space = small_space()
    assert space.size == 24
    valid = space.valid_points
    assert len(valid or ()) == 20  # 32 x 32 is too large
    cycles = [simulated_cycles(compile_schedule(space.schedule(point), VTA.config)) for point in valid or ()]
    found = accel.tune(product, VTA, trials=100, explorer="exhaustive", jobs=1)
    assert (found.cycles, len(found.trials), found.valid_points) == (min(cycles), 20, 20)
    assert [trial.cycles for trial in found.trials] == cycles
    assert found.result.mismatches == 0


@pytest.mark.parametrize("explorer", EXPLORERS)
def test_explorers_propose_every_point_once(explorer: str) -> None:
    pytest.importorskip("lightgbm")
    space = small_space()
    search = make_explorer(explorer, space, 0)
    trials: list[Trial] = []
    while points := search.propose(trials, 6):
        trials += [Trial(point=point, cycles=cycles_of(point)) for point in points]
        assert len(trials) <= 20
    assert sorted(trial.point for trial in trials) == sorted(space.valid_points or ())


def test_an_operator_is_never_slower_than_its_default() -> None:
    workload = accel.gemm(64, 64, 64, shift=7)
    found = accel.tune(workload, VTA, trials=8, jobs=1)
    assert found.default_cycles == accel.build(workload, VTA).run().cycles
    assert found.cycles <= found.default_cycles


def test_a_killed_worker_is_replaced() -> None:
    space = small_space()
    schedules = [space.schedule(point) for point in space.valid_points or ()][:6]
    expected = [measure_schedule(one, VTA.config).cycles for one in schedules]
    with Measurer(space.outputs, VTA.config, 2) as measurer:
        first = dict(measurer.measure(schedules[:2]))
        os.kill(measurer.worker_ids[0], signal.SIGKILL)
        rest = dict(measurer.measure(schedules[2:]))
        assert measurer.deaths == 1
    assert [first[n].cycles for n in range(2)] + [rest[n].cycles for n in range(4)] == expected


def test_the_cost_model_learns_what_the_prediction_lacks() -> None:
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    rows = [{"predicted": 10.0, "x": float(x)} for x in rng.permutation(64)]
    model = CostModel()
    assert len(set(model.scores(rows).tolist())) == 1
    model.fit([(row, 1000 + int(20 * row["x"])) for row in rows])
    scores = model.scores([{"predicted": 10.0, "x": x} for x in (2.0, 30.0, 60.0)])
    assert scores[0] > scores[1] > scores[2]


def test_records_continue_a_search_and_speed_up_compilation(tmp_path: Path) -> None:
    file, workload = tmp_path / "records.jsonl", accel.gemm(64, 64, 64, shift=7)
    first = accel.tune(workload, VTA, trials=8, jobs=1, records=file)
    again = accel.tune(workload, VTA, trials=4, jobs=1, records=file)
    assert again.recorded == 8
    assert not {trial.point for trial in first.trials} & {trial.point for trial in again.trials}
    assert len(file.read_text().splitlines()) == 12
    assert first.default_cycles is not None
    assert again.cycles < first.default_cycles
    program = accel.build(workload, VTA, tuned=file)
    result = program.run()
    result.raise_if_wrong()
    assert result.cycles == again.cycles
    other = accel.build(workload, "gemm8x8", tuned=file)  # no record of this machine
    assert other.run().cycles == accel.build(workload, "gemm8x8").run().cycles


def quantized_layer(scales: float | list[float], residual: float, entries: int) -> accel.Workload:
    return accel.conv2d(
        *(1, 16, 6, 6, 4, 3),
        padding=1,
        bias=True,
        quantized=accel.Quantized(
            scale=scales,
            table=accel.QuantizedTable(entries=[entries] * 256),
            residual=accel.QuantizedResidual(
                scale=residual, result_scale=0.7, sum_scale=0.9, approximate=True
            ),
        ),
    )


def test_layers_that_differ_in_data_have_one_key_and_equal_cycles() -> None:
    config = accel.machine("vta-npu").config
    layers = [
        quantized_layer([0.01, 0.02, 0.03, 0.04], 0.5, 3),
        quantized_layer([0.5, 0.001, 0.2, 0.3], 0.0123, -7),
    ]
    assert len({record_key("conv2d", [one.output], config) for one in layers}) == 1
    assert len({accel.build(one, config).run().cycles for one in layers}) == 1
    single = quantized_layer(0.01, 0.5, 3)
    assert record_key("conv2d", [single.output], config) != record_key("conv2d", [layers[0].output], config)


def test_a_network_takes_records_of_its_layers(tmp_path: Path) -> None:
    """Records count as faster if they say so. Layers of other scales have the same records."""
    network, file = accel.load_onnx(MODEL), tmp_path / "records.jsonl"
    plain = network.build("vta-int8")
    part = next(one for one in plain.parts if one.layer is not None and one.mapping == "plain")
    assert part.layer is not None
    workload = part.layer.workload()
    space = make_space(workload, accel.machine("vta-int8"), "plain")
    chosen = space.schedule(space.default_point or space.valid_points[0])
    other = next(
        schedule
        for point in space.valid_points or ()
        if (schedule := space.schedule(point)).steps != chosen.steps
        and measure_schedule(schedule, plain.config).cycles != measure_schedule(chosen, plain.config).cycles
    )
    key = record_key(workload.name, [workload.output], plain.config)
    slow = Record(key=key, cycles=2, mapping="another", steps=[])
    append_records(file, [slow, Record(key=key, cycles=3, steps=list(other.steps))])
    tuned = network.build("vta-int8", tuned=file)
    (found,) = (one for one in tuned.parts if one.layer is not None and one.output == part.output)
    assert found.alone == 3
    assert found.program is not None
    assert simulated_cycles(found.program) == measure_schedule(other, plain.config).cycles
    result = tuned.run()
    result.raise_if_wrong()
    assert result.cycles != plain.run().cycles


def test_an_explorer_learns_from_records_of_other_computations(tmp_path: Path) -> None:
    """The first trials of a warm search are those that a cost model of another product prefers."""
    pytest.importorskip("lightgbm")
    file = tmp_path / "records.jsonl"
    other, workload = accel.gemm(32, 64, 32, shift=7), accel.gemm(32, 32, 32, shift=7)
    accel.tune(other, VTA, trials=16, explorer="random", jobs=1, records=file)
    content = file.read_bytes()

    def first(explorer: str) -> list[tuple[int, ...]]:
        file.write_bytes(content)
        found = accel.tune(workload, VTA, trials=6, explorer=explorer, jobs=1, records=file)
        return [trial.point for trial in found.trials]

    assert first("evolution+records") != first("evolution")
    file.write_bytes(content)
    cold = accel.tune(workload, VTA, trials=6, explorer="evolution", jobs=1)
    assert first("evolution") == [trial.point for trial in cold.trials], "only +records learns from others"
    with refused(
        TuningError,
        "explorer evolution+records learns from records of other computations; name their file with records",
    ):
        accel.tune(workload, VTA, trials=1, explorer="evolution+records")


def test_slower_records_are_not_taken(tmp_path: Path) -> None:
    workload = accel.gemm(32, 32, 32, shift=7)
    space = small_space()
    slow = max(
        space.valid_points or (), key=lambda p: measure_schedule(space.schedule(p), VTA.config).cycles or 0
    )
    cycles = measure_schedule(space.schedule(slow), VTA.config).cycles
    key = record_key("gemm", [workload.output], VTA.config)
    append_records(
        tmp_path / "r.jsonl", [Record(key=key, cycles=cycles, steps=list(space.schedule(slow).steps))]
    )
    default = accel.build(workload, VTA).run().cycles
    assert cycles is not None
    assert default < cycles
    assert accel.build(workload, VTA, tuned=tmp_path / "r.jsonl").run().cycles == default


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda line: line[:-9], "it is not JSON"),
        (lambda line: "[]", "must be an object"),
        (lambda line: json.dumps({**json.loads(line), "cycles": -1}), "cycles is -1; it must be positive"),
        (lambda line: json.dumps({**json.loads(line), "steps": [1]}), "its steps are not a list of objects"),
        (lambda line: json.dumps({**json.loads(line), "cycle": 1}), "it has 'cycle', which no record has"),
        (lambda line: json.dumps({"workload": "x/1"}), "it has no 'machine'"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, change: object, message: str) -> None:
    file = tmp_path / "records.jsonl"
    record = Record(key=record_key("gemm", [accel.gemm(8, 8, 8).output], VTA.config), cycles=100)
    append_records(file, [record, record])
    assert load_records(file).every == (record, record)
    lines = file.read_text().splitlines()
    file.write_text(f"{lines[0]}\n{change(lines[1])}\n")  # type: ignore[operator]
    with pytest.raises(TuningError, match=f"is damaged in line 2: .*{message}"):
        load_records(file)


def test_unusable_targets_and_explorers() -> None:
    with pytest.raises(TuningError, match="the explorer is 'anealing'; did you mean 'annealing'"):
        accel.tune(product, VTA, explorer="anealing", jobs=1)
    with pytest.raises(TuningError, match="the target is int; it must be a template"):
        accel.tune(3, VTA)  # type: ignore[arg-type]
    with pytest.raises(TuningError, match="the template declares no knobs"):
        accel.tune(lambda: None, VTA)  # type: ignore[arg-type,return-value]
    with pytest.raises(TuningError, match="no such file"):
        accel.build(accel.gemm(8, 8, 8), VTA, tuned="missing.jsonl")
