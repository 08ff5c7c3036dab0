"""Packages run by their C driver on the functional model: host operators, data layouts
and errors."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import accel
from accel.base.errors import GraphError
from accel.core.fault_causes import Cause
from accel.core.registers import REGISTERS
from accel.deployment.deployment_plan import deploy_network, deploy_program, example_run
from accel.deployment.deployment_steps import Deployment
from accel.deployment.host_steps import lacks
from accel.deployment.package_folder import package_files
from accel.graph.elementwise_operators import (
    Add,
    Binary,
    ChannelTable,
    Clip,
    Dequantize,
    Mul,
    Quantize,
    Requantize,
    Softmax,
)
from accel.graph.graph import Graph
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import Array, Quantization, Tensor
from accel.graph.movement_operators import Concat, Identity, Pad, Reshape, Slice, Transpose
from accel.graph.pooling_operators import AveragePool
from accel.graph.quantize_values import dequantize, quantize
from accel.network.digits import INPUT, OUTPUT, as_images, digits_network, digits_pictures
from accel.network.model_files import DEFAULT_MACHINE
from accel.network.network import Network
from accel.network.network_program import NetworkProgram
from accel.run.program import Program
from tests.deployment.driver import BASE, Driver, Model, build, library
from tests.network.networks import MACHINE, Small, windows

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "deploy-to-firmware.md"
HOST = Path(__file__).parent / "host.c"
PICTURE = Quantization.of(0.02, 30)


def channels_last() -> Graph:
    """Class probabilities, and their integers, of a picture with channels last.

    It has all operators that move values, tables, and uint8 weights that need two int8 each.
    """
    small = Small((1, 6, 5, 3), dtype="uint8")
    builder = small.builder
    builder.emit(Transpose(permutation=(0, 3, 1, 2)), ["x"], "first")
    builder.emit(Pad(begin=(0, 0, 1, 0), end=(0, 0, 0, 2), value=7), ["first"], "padded")
    builder.emit(Slice(starts=(0, 2, 0, 1), sizes=(1, 2, 7, 6), steps=(1, -1, 1, 1)), ["padded"], "part")
    builder.emit(Requantize(), ["part"], "again", dtype="int8", quantization=Quantization.of(0.07, -5))
    small.conv("again", "a", 5, weights=("uint8", 3))
    small.mean("a", "m")
    builder.emit(Reshape(sizes=(1, 5)), ["m"], "f")
    builder.constant("two", np.array([[1, -2]], np.int8), builder.tensors["f"].quantization)
    builder.emit(Concat(axis=1), ["f", "two"], "seven")
    builder.emit(Softmax(axes=(1,)), ["seven"], "y", quantization=Quantization.of(1 / 256, -128))
    builder.emit(Identity(), ["x"], "same")
    looked_up = []
    for channels in (1, 3):
        entries = small.rng.integers(-128, 128, (channels, 256)).astype(np.int8)
        names = ["x", builder.constant(f"entries{channels}", entries)]
        looked_up.append(builder.emit(ChannelTable(axis=3), names, f"looked_up{channels}", dtype="int8"))
    return small.graph("y", "f", "same", "two", "a", *looked_up)


def floats() -> Graph:
    """Float32 inputs, several scales, and a Softmax of floats."""
    small = Small((1, 3, 4, 4))
    small.builder.input(Tensor(name="numbers", shape=(1, 3, 4, 4), dtype="float32"))
    quantization = Quantization.of(np.float32([0.5, 0.01, 3e-39]), [3, -128, 0], axis=1)
    small.builder.emit(Quantize(), ["numbers"], "q", dtype="int8", quantization=quantization)
    small.builder.emit(Dequantize(), ["q"], "d", dtype="float32")
    small.builder.emit(Softmax(axes=(2, 3)), ["d"], "s")
    small.conv("x", "a", 4)
    return small.graph("d", "s", "a")


def sums_and_means() -> Graph:
    """Broadcasting functions of two operands, and averages of windows, of integers and of floats."""
    small = Small((2, 3, 6, 5))
    builder, zero = small.builder, Quantization.of(0.04, -7)
    builder.input(Tensor(name="numbers", shape=(2, 3, 6, 5), dtype="float32"))
    row = small.rng.integers(-128, 128, (3, 1, 5), np.int8)
    builder.constant("row", row, Quantization.of(0.03, 2))
    builder.emit(Mul(), ["x", "row"], "product", quantization=Quantization.of(0.11, 5))
    builder.emit(Add(), ["product", "row"], "sum", quantization=zero)
    builder.constant("one", np.array([[-77]], np.int8), Quantization.of(0.9, 1))
    builder.emit(Add(), ["one", "product"], "shifted", quantization=zero)
    builder.emit(Requantize(), ["x"], "u", dtype="uint8", quantization=PICTURE)
    builder.emit(Add(), ["u", "x"], "mixed", dtype="uint8", quantization=PICTURE)
    builder.emit(Add(), ["numbers", "numbers"], "twice")
    builder.emit(Mul(), ["twice", "numbers"], "square")
    builder.emit(Binary(function="Sub"), ["square", "numbers"], "rest")
    for source, counted in (("sum", True), ("rest", False)):
        pool = AveragePool(windows=windows(3, stride=2, pad=1), count_padding=counted)
        quantization = zero if counted else None
        builder.emit(pool, [source], f"mean_{source}", quantization=quantization)
    small.conv("mean_sum", "a", 4, kernel=1)
    in_float32 = {
        "float_product": (Mul(in_float32=True), ["x", "row"]),
        "float_sum": (Add(in_float32=True), ["one", "product"]),
        "float_mean": (AveragePool(windows=windows(2, stride=2), in_float32=True), ["product"]),
    }
    for name, (operator, operands) in in_float32.items():
        builder.emit(operator, operands, name, quantization=zero)
    return small.graph("a", "mean_sum", "shifted", "mixed", "mean_rest", "square", *in_float32)


def two_programs() -> Graph:
    """Two convolutions, with an operator between them that the machine does not support."""
    small = Small((2, 3, 5, 6))
    small.conv("x", "a", 6)
    small.builder.emit(Transpose(permutation=(0, 2, 1, 3)), ["a"], "t")
    small.conv("t", "b", 4)
    return small.graph("b")


def strips() -> Graph:
    """Pictures in strips: the host packs the first layer's, and the machine exchanges rows."""
    small = Small((1, 3, 16, 9), dtype="uint8")
    small.conv("x", "a", 8, kernel=5, stride=2, pad=2)
    small.conv("a", "b", 8, pad=1)
    small.mean("b", "m")
    return small.graph("m")


def tables() -> Graph:
    """A function, and a product of pictures with a value of each channel."""
    small = Small((1, 12, 7, 5), dtype="uint8")
    small.sigmoid(small.conv("x", "a", 20), "s")
    small.mean("s", "m")
    small.sigmoid(small.conv("m", "f", 20, kernel=1), "g")
    small.builder.emit(Mul(), ["s", "g"], "p", dtype="uint8", quantization=Quantization.of(1 / 250, 0))
    small.conv("p", "y", 8, pad=1)
    return small.graph("y")


NETWORKS = (channels_last, floats, sums_and_means, two_programs)
PROGRAMS: dict[str, tuple[accel.Workload, str]] = {
    "pixels": (accel.conv2d(N=1, IC=9, H=5, W=4, OC=17, kernel=1, stride=2), "gemm8x8"),
    "folded_bias": (accel.gemm(3, 9, 5, bias=True, shift=5), "tiny"),
    "merged_groups": (accel.conv2d(N=1, IC=6, H=5, W=4, OC=12, kernel=3, padding=1, groups=6), "vta"),
    "requantized": (
        accel.conv2d(N=1, IC=5, H=4, W=5, OC=7, kernel=2, bias=True, quantized=accel.Quantized(scale=0.01)),
        "tiny-int8",
    ),
}


def random_inputs(graph: Graph, seed: int) -> dict[str, Array]:
    """Random integers of all values, and floats that are difficult to round."""
    rng = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        if tensor.dtype == "float32":
            values = rng.uniform(-4, 4, tensor.shape)
            odd = np.array([0.25, -0.75, 1.25, np.inf, -np.inf, np.nan, 3e38, 1e-40])
            values.reshape(-1)[: len(odd)] = odd
            found[name] = values.astype(np.float32)
        else:
            bounds = np.iinfo(tensor.dtype)
            found[name] = rng.integers(bounds.min, bounds.max, tensor.shape, tensor.dtype, endpoint=True)
    return found


class Packages:
    """Several packages in one library."""

    def __init__(self, folder: Path) -> None:
        self.networks: dict[str, NetworkProgram] = {
            one.__name__: Network(graph=one()).build(MACHINE) for one in NETWORKS
        }
        self.networks["digits"] = digits_network().build(MACHINE)
        self.networks["strips"] = Network(graph=strips()).build("gemm8x8-int8")
        self.networks["tables"] = Network(graph=tables()).build(DEFAULT_MACHINE)
        self.programs: dict[str, Program] = {
            name: accel.build(workload, machine, mapping="pixels" if name == "pixels" else "auto")
            for name, (workload, machine) in PROGRAMS.items()
        }
        self.deployments: dict[str, Deployment] = {
            name: deploy_network(one, name) for name, one in self.networks.items()
        } | {name: deploy_program(one, name) for name, one in self.programs.items()}
        self.folder = folder
        self.library: ctypes.CDLL = library(folder, *self.deployments.values())

    def driver(self, name: str, model: Model | None = None) -> Driver:
        deployment = self.deployments[name]
        return Driver(deployment, self.library, model or Model(deployment.config))

    def loaded(self, name: str, model: Model | None = None) -> Driver:
        found = self.driver(name, model)
        assert (found.load(), found.check()) == (0, 0)
        return found


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    return Packages(tmp_path_factory.mktemp("packages"))


@pytest.mark.parametrize("name", [*(one.__name__ for one in NETWORKS), "strips", "tables"])
def test_networks(name: str, packages: Packages) -> None:
    """Outputs equal the graph's, and depend only on the inputs of their own run."""
    graph = packages.networks[name].graph
    driver = packages.loaded(name)
    for seed in range(3):
        inputs = random_inputs(graph, seed)
        status, outputs = driver.run(inputs)
        assert status == 0
        with np.errstate(all="ignore"):
            wanted = {**graph.constants, **evaluate(graph, inputs)}
        assert list(outputs) == list(graph.outputs)
        for one, array in outputs.items():
            assert np.array_equal(array, wanted[one], equal_nan=array.dtype == np.float32), one
    streams = len(packages.deployments[name].streams)
    assert driver.device.cycles == 7 * streams


def test_digits(packages: Packages) -> None:
    images = as_images(digits_pictures()[0])[::33]
    driver = packages.loaded("digits")
    for image in images[:, None]:
        status, outputs = driver.run({INPUT: image})
        wanted = evaluate(packages.networks["digits"].graph, {INPUT: image})[OUTPUT]
        assert (status, outputs[OUTPUT].tolist()) == (0, wanted.tolist())


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, packages: Packages) -> None:
    program = packages.programs[name]
    driver = packages.loaded(name)
    inputs = program.random_inputs(1)
    status, outputs = driver.run(inputs)
    assert status == 0
    for one, array in program.reference(inputs).items():
        assert np.array_equal(outputs[one], array)


def test_numbers_of_a_tensor(packages: Packages) -> None:
    tensor = packages.networks["channels_last"].graph.tensors["x"]
    found = packages.library.accel_quantize, packages.library.accel_dequantize
    place = accel_tensor(packages.library, "channels_last")
    numbers = random_inputs(packages.networks["floats"].graph, 1)["numbers"].reshape(-1)
    numbers = np.resize(numbers, tensor.shape)
    values, again = np.zeros(tensor.shape, np.uint8), np.zeros(tensor.shape, np.float32)
    assert found[0](place, ctypes.c_void_p(numbers.ctypes.data), ctypes.c_void_p(values.ctypes.data)) == 0
    assert np.array_equal(values, quantize(numbers, tensor))
    assert found[1](place, ctypes.c_void_p(values.ctypes.data), ctypes.c_void_p(again.ctypes.data)) == 0
    assert np.array_equal(again, dequantize(values, tensor))
    place = accel_tensor(packages.library, "digits")  # float32 has no scale
    assert found[0](place, ctypes.c_void_p(numbers.ctypes.data), ctypes.c_void_p(values.ctypes.data)) < 0


def accel_tensor(compiled: ctypes.CDLL, name: str) -> ctypes.c_void_p:
    """The first input of a package: the sixth member of ``accel_network``, each as long as a
    pointer."""
    return ctypes.c_void_p((ctypes.c_void_p * 6).in_dll(compiled, f"{name}_network")[5])


def test_values_that_a_program_was_not_compiled_for(packages: Packages) -> None:
    inputs = packages.programs["folded_bias"].random_inputs()
    inputs["bias"][0] = np.iinfo(np.int32).max
    driver = packages.loaded("folded_bias")
    status, _ = driver.run(inputs)
    assert driver.message(status) == "an input has a value that the program was not compiled for"


# --- errors ----------------------------------------------------------------------------------------


def test_another_machine_is_refused(packages: Packages) -> None:
    for name, message in (
        ("id", "there is no accelerator, or one with another register map"),
        ("version", "there is no accelerator, or one with another register map"),
        ("block_in", "the program was compiled for a machine with another geometry"),
        ("post", "the program was compiled for a machine with another geometry"),
    ):
        model = Model(packages.deployments["digits"].config)
        model.words[REGISTERS[name].offset] += 1
        driver = packages.driver("digits", model)
        assert driver.message(driver.load()) == message
    model = Model(packages.deployments["digits"].config)
    model.refused.add(REGISTERS["post"].offset)  # machines with ``post=0`` lack it
    driver = packages.driver("digits", model)
    assert driver.message(driver.load()) == message


def test_damage_in_memory(packages: Packages) -> None:
    model = Model(packages.deployments["digits"].config)
    driver = packages.loaded("digits", model)
    entry = model.memory.index(packages.deployments["digits"].streams[0].image.code)
    model.memory[entry] = 7  # an opcode that does not exist
    assert driver.message(driver.check()) == "memory differs from the loaded content"
    status, _ = driver.run({INPUT: np.zeros((1, 1, 28, 28), np.float32)})
    assert (status, driver.device.fault_index) == (Cause.OPCODE, 0)
    assert driver.message(status) == Cause.OPCODE.doc


STOPPED = "the run took too long and was stopped"
HUNG = "the memory bus does not accept an offered transfer; it needs a reset"


@pytest.mark.parametrize(
    ("hangs", "message"), [("busy", STOPPED), ("unanswered", STOPPED), ("offering", HUNG)]
)
def test_time_runs_out(
    hangs: Literal["busy", "unanswered", "offering"], message: str, packages: Packages
) -> None:
    model = Model(packages.deployments["digits"].config)
    model.hangs = hangs
    driver = packages.loaded("digits", model)
    driver.device.max_polls = 5
    driver.device.bus_timeout = 1234
    image = {INPUT: np.zeros((1, 1, 28, 28), np.float32)}
    assert driver.message(driver.run(image)[0]) == message
    assert model.value("bus_timeout") == 1234
    model.hangs = ""
    if hangs == "offering":
        assert driver.message(driver.run(image)[0]) == "a run is in progress"
    else:
        assert driver.run(image)[0] == 0
        assert model.starts == 2


@pytest.mark.parametrize("cause", [0, 0x8000, 0xFFFFFFFF])
def test_an_error_without_a_cause_is_an_error(cause: int, packages: Packages) -> None:
    """A run that failed never returns 0 or another status, whatever the cause register holds."""
    model = Model(packages.deployments["digits"].config)
    driver = packages.loaded("digits", model)
    model.forced_cause = cause
    status, _ = driver.run({INPUT: np.zeros((1, 1, 28, 28), np.float32)})
    assert driver.message(status) == "the machine reports an error without a known cause"


@pytest.mark.parametrize("missing", ["read_register", "write_register", "read_memory", "write_memory"])
def test_missing_callbacks_are_reported(missing: str, packages: Packages) -> None:
    """Every function that needs a callback reports that it is missing. None calls address 0."""
    driver = packages.loaded("digits")
    driver.without(missing)
    functions = {
        "load": driver.load,
        "check": driver.check,
        "run": lambda: driver.run({INPUT: np.zeros((1, 1, 28, 28), np.float32)})[0],
        "stop": driver.stop,
    }
    needs = {
        "read_register": {"load", "run", "stop"},
        "write_register": {"run", "stop"},
        "read_memory": {"check", "run"},
        "write_memory": {"load", "run"},
    }
    for name, function in functions.items():
        expected = "an argument is missing or out of range" if name in needs[missing] else "success"
        assert driver.message(function()) == expected, name


def test_refusals_of_the_machine(packages: Packages) -> None:
    model = Model(packages.deployments["digits"].config)
    driver = packages.loaded("digits", model)
    image = {INPUT: np.zeros((1, 1, 28, 28), np.float32)}
    model.refused.add(REGISTERS["mem_size"].offset)
    assert driver.message(driver.run(image)[0]) == "a register cannot be read or written"
    driver.device.base = 100
    assert driver.message(driver.load()) == "an argument is missing or out of range"
    assert driver.message(-99) == "no such status"


def test_unsupported_operators_are_refused() -> None:
    small = Small((1, 3, 4, 4), dtype="uint8")
    small.builder.emit(Dequantize(), ["x"], "d", dtype="float32")
    small.builder.emit(Binary(function="Div"), ["d", "d"], "quotient")
    small.builder.emit(Quantize(), ["quotient"], "q", dtype="uint8", quantization=PICTURE)
    small.conv("x", "a", 4)
    first = Network(graph=small.graph("a", "q")).build(MACHINE)
    needed = r"'quotient': the driver has no Div of float32; cutting \(--cut\) hands out their operands"
    with pytest.raises(GraphError, match=needed):
        deploy_network(first, "p")
    found = deploy_network(first, "p", cut=True)
    assert [one.name for one in found.outputs] == ["a", "d"]
    assert dict(found.left_out) == {
        "quotient": "the driver has no Div of float32",
        "q": "it depends on 'quotient'",
    }
    small.conv("q", "b", 4)
    second = Network(graph=small.graph("a", "b")).build(MACHINE)
    with pytest.raises(GraphError, match=needed):
        deploy_network(second, "p")
    with pytest.raises(GraphError, match="the machine needs what 'quotient' makes"):
        deploy_network(second, "p", cut=True)


def test_reasons_name_the_type_of_the_values() -> None:
    """Min and Max take any type, so that the driver lacks, for example, a Min of uint8."""
    small = Small((1, 3, 4, 4), dtype="uint8")
    small.builder.emit(Binary(function="Min"), ["x", "x"], "least", dtype="uint8", quantization=PICTURE)
    small.builder.emit(Dequantize(), ["x"], "d", dtype="float32")
    small.builder.emit(Binary(function="Max"), ["d", "d"], "largest")
    small.builder.emit(Clip(low=0.0, high=1.0), ["d"], "clipped")
    graph = small.graph("least", "largest", "clipped")
    reasons = {node.output: lacks(graph, node) for node in graph.nodes}
    assert reasons == {
        "least": "the driver has no Min of uint8",
        "d": None,
        "largest": "the driver has no Max of float32",
        "clipped": "the driver has no Clip of float32",
    }


# --- as other tools see it -------------------------------------------------------------------------


def test_sanitizers_find_nothing(packages: Packages, tmp_path: Path) -> None:
    """The program is all C. It runs the package's example run, with the machine's writes
    recorded before."""
    deployment = packages.deployments["digits"]
    run = example_run(packages.networks["digits"])
    model = Model(deployment.config)
    assert packages.loaded("digits", model).run(run)[0] == 0
    files = package_files(deployment, embed=True, example=run)
    files["host.c"] = HOST.read_bytes()
    files["after"] = model.read_memory(BASE, deployment.memory_bytes)
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    program = build(tmp_path, "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    done = subprocess.run([program, tmp_path / "after"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "success\n", "")


def test_the_page_compiles(packages: Packages, tmp_path: Path) -> None:
    """The main program in docs/how-to/deploy-to-firmware.md."""
    (code,) = re.findall(r"^```c\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    for name, data in package_files(packages.deployments["digits"], embed=True).items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "main.c").write_text(code)
    build(tmp_path, target="main")


def test_the_driver_compiles_with_clang(packages: Packages) -> None:
    if shutil.which("clang") is None:
        pytest.skip("there is no clang")
    build(packages.folder, "-fsyntax-only", compiler="clang")


def test_headers_are_cplusplus(packages: Packages) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++")
    text = "".join(f'#include "{name}.h"\n' for name in packages.deployments)
    (packages.folder / "all.cpp").write_text(text)
    folders = [f"-I{packages.folder / name}" for name in packages.deployments]
    flags = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    subprocess.run([compiler, *flags, *folders, packages.folder / "all.cpp"], check=True)
