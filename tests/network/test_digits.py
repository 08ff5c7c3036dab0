"""The network for digits, its files, and its runs on every backend."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel.base.errors import ScheduleError
from accel.base.records import replace
from accel.compiler.mappings.mapping_choice import MappingChoice
from accel.core.config import Config
from accel.deployment.deployment_plan import deploy_network
from accel.formats.compare_with_runtime import compare
from accel.formats.onnx_import import load_onnx
from accel.formats.onnx_runtime import run_onnx_runtime
from accel.graph.graph_evaluation import evaluate
from accel.hw.engines.engine_driver import Engine
from accel.network.digits import (
    COUNT,
    GRAPH,
    INPUT,
    MODEL,
    OUTPUT,
    PICTURES,
    as_images,
    digits_network,
    digits_pictures,
)
from accel.network.network_program import NetworkProgram
from accel.run.measured_plans import measure_plans
from accel.views import Timeline
from tests.deployment.driver import BASE, Driver, Hardware, library
from tests.expect import refused
from tests.lockstep.builds import BUILDS, opened
from tests.network.networks import MACHINE
from tests.tools import needs

LARGEST = 32_000
"""Size limit of each file, in bytes."""
RIGHT = 95


@pytest.fixture(scope="module")
def program() -> NetworkProgram:
    return digits_network().build(MACHINE, strict=True)


def test_the_files_are_small() -> None:
    assert all(path.stat().st_size <= LARGEST for path in (GRAPH, MODEL, PICTURES))


def test_the_graph_is_the_model() -> None:
    model, graph = load_onnx(MODEL), digits_network().graph
    assert (graph.nodes, graph.tensors) == (model.nodes, model.tensors)
    assert (graph.inputs, graph.outputs) == (model.inputs, model.outputs) == ((INPUT,), (OUTPUT,))
    assert graph.constants.keys() == model.constants.keys()
    assert all(np.array_equal(graph.constants[name], values) for name, values in model.constants.items())


def test_pictures_and_classes() -> None:
    pictures, classes = digits_pictures()
    assert (pictures.shape, pictures.dtype, classes.dtype) == ((COUNT, 28, 28), np.uint8, np.uint8)
    assert np.bincount(classes).tolist() == [COUNT // 10] * 10


def test_it_reads_digits() -> None:
    """A batch of all pictures, compared with ONNX Runtime's scores."""
    pictures, classes = digits_pictures()
    images = as_images(pictures)
    graph = load_onnx(MODEL, batch=COUNT)
    scores = evaluate(graph, {INPUT: images})[OUTPUT]
    assert (scores.argmax(1) == classes).sum() >= RIGHT
    assert compare(graph, {INPUT: images}).first is None
    theirs = run_onnx_runtime(MODEL.read_bytes(), {INPUT: images}, [OUTPUT])[OUTPUT]
    assert np.array_equal(theirs.argmax(1), scores.argmax(1))
    assert np.isclose(theirs, scores, atol=0.5).all()  # the order of an addition's multiply-adds


def test_layers_with_measured_plans_take_fewer_cycles(program: NetworkProgram) -> None:
    other = digits_network().build(MACHINE, strict=True, measure=8)
    usual, measure_plans = program.run(), other.run()
    assert measure_plans.cycles < usual.cycles
    assert not measure_plans.mismatches
    parts = [part for part in other.parts if part.program is not None]
    assert all(part.alone == part.program.run(check=False).cycles for part in parts)
    with refused(ScheduleError, "measure is 0; it must be a positive integer"):
        digits_network().build(MACHINE, measure=0)


def test_a_layer_overlaps_if_it_takes_fewer_cycles_than_its_busiest_unit(program: NetworkProgram) -> None:
    layer = program.run().layers[4]
    assert layer.name == "conv4_quant"
    assert layer.nominal_cycles == 42 * 42
    assert layer.busy is not None
    for cycles, overlaps in ((round(layer.busy), False), (round(layer.busy) - 1, True)):
        changed = replace(layer, cycles=cycles)
        assert changed.overlaps == overlaps
        assert changed.utilization == 42 * 42 / cycles


def test_measured_plans_that_make_the_network_slower_are_discarded(
    program: NetworkProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measurement in isolation can choose such plans. Here it chooses the slowest."""

    def worst(choice: MappingChoice, *arguments: Any) -> MappingChoice:
        found = measure_plans(choice, *arguments)
        simulated = [one for one in found.candidates if one.simulated_cycles is not None]
        return replace(found, candidates=simulated[::-1])

    monkeypatch.setattr("accel.network.placement.measure_plans", worst)
    found = digits_network().build(MACHINE, measure=8)
    assert [chain.program.code for chain in found.chains] == [one.program.code for one in program.chains]


def test_the_machine_executes_all_products(program: NetworkProgram) -> None:
    assert program.host_macs == 0
    assert len(program.chains) == 1


@pytest.mark.parametrize("backend", ["functional", "sim"])
def test_on_the_simulators(backend: str, program: NetworkProgram) -> None:
    pictures, classes = digits_pictures()
    for index in (0, COUNT // 2):
        result = program.run({INPUT: as_images(pictures[index : index + 1])}, backend=backend)
        result.raise_if_wrong()
        assert result.outputs[OUTPUT].argmax() == classes[index]


def test_the_timeline_in_the_tutorial_is_current(tmp_path: Path) -> None:
    network = digits_network()
    (chain,) = network.build().chains
    Timeline(chain.with_constants(network.graph).run(record=True)).save(tmp_path / "digits.svg")
    documented = Path(__file__).parents[2] / "docs" / "learn" / "digits.svg"
    assert documented.read_text(encoding="utf-8") == (tmp_path / "digits.svg").read_text(encoding="utf-8")


def test_on_the_hardware(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A small machine, with the cycles of the simulator, also as a package driven by C."""
    needs("verilator")
    config = BUILDS["int8"].override({"mem_size": 1 << 20})

    def shared(asked: Config, *_: object, **__: object) -> Engine:
        assert asked.hardware == config.hardware
        return opened(config)

    monkeypatch.setattr("accel.run.backends.rtl_backend.open_engine", shared)
    program = digits_network().build(config)
    images = as_images(digits_pictures()[0][:1])
    ran = {backend: program.run({INPUT: images}, backend=backend) for backend in ("sim", "rtl")}
    for result in ran.values():
        result.raise_if_wrong()
    assert ran["rtl"].cycles == ran["sim"].cycles
    layers = [[layer.cycles for layer in ran[backend].layers] for backend in ("rtl", "sim")]
    assert layers[0] == layers[1]
    assert np.array_equal(ran["rtl"].outputs[OUTPUT], ran["sim"].outputs[OUTPUT])
    deployment = deploy_network(program, "digits")
    with opened(config) as engine:
        port = Hardware(engine, config, BASE, deployment.memory_bytes)
        driver = Driver(deployment, library(tmp_path, deployment), port)
        assert (driver.load(), driver.check()) == (0, 0)
        for image, backend in ((images, "sim"), (as_images(digits_pictures()[0][-1:]), "functional")):
            status, outputs = driver.run({INPUT: image})
            wanted = program.run({INPUT: image}, backend=backend).outputs
            assert (status, driver.device.cycles) == (0, ran["sim"].cycles)
            assert deployment.streams[0].cycles == ran["sim"].cycles
            assert np.array_equal(outputs[OUTPUT], wanted[OUTPUT])
