"""Search spaces are read from files, and mistakes in them are reported."""

from pathlib import Path
from typing import Any

import pytest

from accel.base.errors import AccelError, SweepError
from accel.explore import load_exploration
from accel.explore.exploration_tasks import LayerRun, NetworkRun
from tests.expect import refused
from tests.explore.spaces import GEMM, small

EXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "experiments" / "explore").glob("*.toml"))


def test_domains() -> None:
    space = small(
        field={
            "batch": {"powers_of_two": [1, 5]},
            "outstanding": {"integers": [2, 9], "step": 3},
            "bus_bits": {"choices": [128, 64]},
            "inp_bytes": {"choices": ["1KiB", "4KiB"]},
        }
    ).space
    assert {name: (one.values, one.is_ordered) for name, one in space.domains.items()} == {
        "batch": ((1, 2, 4), True),
        "outstanding": ((2, 5, 8), True),
        "bus_bits": ((128, 64), False),
        "inp_bytes": ((1024, 4096), True),
    }


def test_workloads() -> None:
    spec = small(
        workload=[
            {"network": "gemm", "weight": 2.5},
            {"name": "conv2d", "ic": 8, "oc": 8, "size": 4, "kernel": [3, 1], "bias": True, "label": "small"},
        ]
    )
    network, layer = spec.workloads
    assert (network.name, network.weight, network.command) == ("gemm", 2.5, ("accel", "bench", "gemm"))
    assert network.make(spec.space.base, "simulated") == NetworkRun(
        network="gemm", config=spec.space.base, timing="simulated"
    )
    assert layer.name == "small"
    assert " ".join(layer.command) == ("accel compile conv2d --ic 8 --oc 8 --size 4 --kernel 3,1 --bias")
    assert isinstance(layer.make(spec.space.base, "predicted"), LayerRun)


def test_a_workload_with_operations() -> None:
    spec = small(workload=[{"name": "gemm", "m": 8, "n": 8, "k": 8, "operations": ["max=3", "add=channel"]}])
    (layer,) = spec.workloads
    assert " ".join(layer.command).endswith("--k 8 --operations max=3,add=channel")
    assert isinstance(layer.make(spec.space.base, "predicted"), LayerRun)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_spaces_of_the_documentation_load(path: Path) -> None:
    spec = load_exploration(path)
    assert spec.name == path.stem
    assert spec.space.size >= spec.trials


FIELD = {"batch": {"powers_of_two": [1, 2]}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tirals": 3}, "a search space has 'tirals'; did you mean 'trials'?"),
        ({"title": "a\nb"}, "title is 'a\\nb'; it must be a line of text"),
        ({"config": None}, "config is null; it must be the base machine's name or file, as 'ecp5-int8'"),
        ({"field": {}}, "the space has no field; give one, as field.block_in.powers_of_two = [4, 32]"),
        ({"field": {"blok_in": {}}}, "'blok_in' is not a configuration field; did you mean 'block_in'?"),
        ({"field": {"batch": 2}}, "field batch is 2; it must be a table, as { powers_of_two = [4, 32] }"),
        ({"field": {"batch": {"range": [1, 2]}}}, None),
        (
            {"field": {"batch": {"choices": [1], "step": 2}}},
            "field batch has choices, step; give one of integers, powers_of_two, choices, and step with "
            "integers only",
        ),
        ({"field": {"batch": {"choices": []}}}, "choices of batch is []; it must be a list of values"),
        (
            {"field": {"batch": {"choices": ["x"]}}},
            "batch is 'x'; it must be an integer, as 64, 0x40 or 64KiB",
        ),
        ({"field": {"batch": {"choices": [1, 1]}}}, "choices of batch has a value twice; give each once"),
        (
            {"field": {"batch": {"integers": [4, 1]}}},
            "integers of batch is [4, 1]; it must be the least and the largest value",
        ),
        (
            {"field": {"batch": {"powers_of_two": [0, 4]}}},
            "powers_of_two of batch is [0, 4]; both must be at least 1",
        ),
        (
            {"field": {"batch": {"powers_of_two": [5, 7]}}},
            "powers_of_two of batch is [5, 7]; it contains no value",
        ),
        (
            {"field": {"mem_size": {"integers": [1, 1 << 40]}}},
            "mem_size has more than 100,000 values; give a larger step",
        ),
        (
            {"field": FIELD, "derived": {"batch": "1"}},
            "batch is a field of the space and derived; give one of them",
        ),
        ({"derived": {"inp_bytes": "inp"}}, None),
        ({"constraints": "batch < 2"}, "constraints is 'batch < 2'; it must be a list of texts"),
        ({"limit": {"blocks": 3}}, None),
        ({"limit": {"block_rams": 0}}, "the limit of block_rams is 0; it must be a positive number"),
        ({"objectives": []}, "objectives is empty; give at least one"),
        ({"objectives": ["cycles", "cycles"]}, "the objective cycles is given twice; give each once"),
        (
            {"objectives": ["energy"]},
            'energy is counted in programs, and timing is predicted; write timing = "simulated"',
        ),
        (
            {"limit": {"energy_low:gemm": 5}, "timing": "estimated"},
            'energy_low:gemm is counted in programs, and timing is estimated; write timing = "simulated"',
        ),
        ({"objectives": ["cycle"]}, "'cycle' is not an objective; did you mean 'cycles'?"),
        ({"timing": "guessed"}, None),
        ({"sampler": "nsga"}, "sampler is 'nsga'; did you mean 'nsga2'?"),
        ({"trials": 0}, "trials is 0; it must be a positive integer"),
        ({"seed": -1}, "seed is -1; it must be an integer from 0 on"),
        ({"workload": []}, "the space has no workload; give one, as [[workload]] with network = 'resnet18'"),
        (
            {"workload": [{}]},
            "a workload needs a name, as 'conv2d', or a network, as 'resnet18', and not both",
        ),
        ({"workload": [GEMM, GEMM]}, "two workloads are called 'gemm'; give one a label"),
        ({"workload": [GEMM | {"weight": -1}]}, "weight is -1; it must be a positive number"),
        ({"workload": [{"name": "gem"}]}, "'gem' is not a workload; did you mean 'gemm'?"),
        ({"workload": [{"network": "resnet8"}]}, None),
        (
            {"workload": [{"network": "gemm", "M": 2}]},
            "a workload with a network has 'M'; only weight and label are known",
        ),
        (
            {"workload": [{"network": "no.onnx"}]},
            "network 'no.onnx' cannot be read: No such file or directory",
        ),
    ],
    ids=str,
)
def test_mistakes_are_reported(changes: dict[str, Any], message: str | None) -> None:
    with pytest.raises(AccelError) as error:
        small(**changes)
    assert error.value.exit_code == 2
    assert message is None or str(error.value) == message


def test_unreadable_files(tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    with refused(SweepError, f"search space {str(path)!r} cannot be read: No such file or directory"):
        load_exploration(path)
    path.write_bytes(b"\xff")
    with refused(SweepError, f"search space {str(path)!r} is not a text file"):
        load_exploration(path)
    path.write_text("a = ")
    with pytest.raises(SweepError, match="is not TOML"):
        load_exploration(path)


def test_a_network_file_needs_simulation(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"")
    network = [{"network": str(tmp_path / "net.onnx")}]
    with refused(SweepError, 'timing is predicted, and a network is in a file; write timing = "simulated"'):
        small(workload=network)
    (workload,) = small(workload=network, timing="simulated").workloads
    assert workload.name == "net"
