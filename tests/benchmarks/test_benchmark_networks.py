"""The lists of layers compared with published numbers of the networks."""

import numpy as np
import pytest

from accel.benchmarks import NETWORKS, Layer, Task, default_epilogue, layers_of, measure
from accel.compiler.target.machine import machine

BLOCK = 16 * 16


def macs(layer: Layer) -> int:
    """MACs of a layer, including those on padding."""
    sizes = layer.parameters
    if layer.operator == "gemm":
        return int(sizes["M"] * sizes["N"] * sizes["K"])
    if layer.operator == "dense":
        return int(sizes["IC"] * sizes["OC"])
    height = (sizes["H"] + 2 * sizes["padding"] - sizes["kernel"]) // sizes["stride"] + 1
    per_output = sizes["IC"] // sizes.get("groups", 1) * sizes["kernel"] ** 2
    return int(height**2 * sizes["OC"] * per_output)


def test_resnet18_has_the_layers_that_vta_measures() -> None:
    """The expected value is VTA's published lower bound at 256 multiply-accumulates per cycle."""
    layers = NETWORKS["resnet18"]
    assert sum(one.repeats * macs(one) for one in layers) == 6_623_232 * BLOCK
    assert [one.repeats for one in layers] == [4, 1, 1, 3, 1, 1, 3, 1, 1, 3]


@pytest.mark.parametrize(
    ("network", "millions"),
    [("resnet50", 4089), ("mobilenet-v2", 301), ("resnet18-whole", 1814), ("bert-base", 11174)],
)
def test_other_networks_are_the_published_ones(network: str, millions: int) -> None:
    layers = [one for one in NETWORKS[network] if "pool" not in one.operator]
    assert round(sum(one.repeats * macs(one) for one in layers) / 1e6) == millions
    assert [one.entry for one in layers] == [one.parameters.get("IC") == 3 for one in layers]
    assert len({one.name for one in layers}) == len(layers)


def test_mobilenet_is_the_published_one() -> None:
    """569 million multiply-accumulates and 4.2 million parameters."""
    layers = NETWORKS["mobilenet"]
    assert sum(one.repeats * macs(one) for one in layers) == 568_740_352
    weights = 0
    for one in layers:
        sizes = one.parameters
        taps = sizes["kernel"] ** 2 if one.operator == "conv2d" else 1
        weights += one.repeats * sizes["OC"] * (sizes["IC"] // sizes.get("groups", 1) * taps + 1)
    assert round(weights / 1e6, 1) == 4.2
    assert sum(one.repeats for one in layers) == 1 + 2 * 13 + 1


@pytest.mark.parametrize("network", sorted(NETWORKS))
def test_layers_have_an_epilogue_and_bias(network: str) -> None:
    for one in NETWORKS[network]:
        if "pool" in one.operator:
            continue
        workload = one.workload()
        assert workload.bias is not None
        assert workload.epilogue.shift == 8
        assert workload.epilogue.clip == (0, 127) or workload.epilogue.relu


# --- scales per channel --------------------------------------------------------------------------------


@pytest.mark.parametrize("network", sorted(NETWORKS))
def test_scaled_layers_compute_the_same_sums(network: str) -> None:
    for one, plain in zip(layers_of(network, "scale"), layers_of(network, "shift"), strict=True):
        workload = one.workload()
        assert plain == next(layer for layer in NETWORKS[network] if layer.name == one.name)
        assert (one.name, one.repeats, one.operator) == (plain.name, plain.repeats, plain.operator)
        assert workload.output.shape == plain.workload().output.shape
        if one.operator == "max_pool2d":
            continue
        assert one.quantized is not None
        assert one.quantized.output_zero == one.quantized.input_zero == -20
        if "pool" not in one.operator:
            assert workload.bias is not None
            assert one.quantized.clip == (-20, 110)


def test_scales_depend_on_the_layer_and_spread() -> None:
    """Each channel has its own scale, within about a factor of e. The scales are the same each time."""
    (first, again), second = (
        (layers_of("resnet18", "scale")[0] for _ in range(2)),
        layers_of("resnet18", "scale")[4],
    )
    assert first.quantized is not None
    assert second.quantized is not None
    assert first.quantized == again.quantized
    scales = np.log(first.quantized.scales)
    assert len(scales) == 64
    assert 0.4 < scales.std() < 0.8
    assert len(set(second.quantized.scales)) == 256
    assert first.all_parameters["scale"] == list(first.quantized.scales)
    assert "shift" not in first.all_parameters


def test_the_default_epilogue_has_scales_if_the_machine_requantizes() -> None:
    assert default_epilogue(machine("vta").config) == "shift"
    assert default_epilogue(machine("vta-int8").config) == "scale"


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("C3", 0.985, None),
        ("C9", 0.985, None),
        ("C4", None, 27_500),
        ("C7", None, 27_500),
        ("C10", None, 27_500),
    ],
)
def test_layers_are_close_to_the_limit(name: str, least: float | None, most: int | None) -> None:
    """These layers of ResNet-18 are not bound by products alone: operands use up to 95 % of the bus."""
    layer = next(one for one in layers_of("resnet18", "scale") if one.name == name)
    row = measure(Task(layer=layer, config=machine("vta-int8").config))
    assert row["error"] is None
    assert row["modes"]["chosen"]["mismatches"] == 0
    assert least is None or row["roofline_cycles"] >= least * row["cycles"]
    assert most is None or row["cycles"] <= most
