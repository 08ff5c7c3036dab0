"""The lists of layers, against what is known of the networks."""

import pytest

from accel.benchmarks import NETWORKS, Layer

BLOCK = 16 * 16


def macs(layer: Layer) -> int:
    """Multiply-accumulates of a layer, those with padding too."""
    sizes = layer.parameters
    if layer.operator == "gemm":
        return int(sizes["M"] * sizes["N"] * sizes["K"])
    if layer.operator == "dense":
        return int(sizes["IC"] * sizes["OC"])
    height = (sizes["H"] + 2 * sizes["padding"] - sizes["kernel"]) // sizes["stride"] + 1
    per_output = sizes["IC"] // sizes.get("groups", 1) * sizes["kernel"] ** 2
    return int(height**2 * sizes["OC"] * per_output)


def test_resnet18_is_what_vta_measures() -> None:
    """Its published limit at 256 multiply-accumulates a cycle."""
    layers = NETWORKS["resnet18"]
    assert sum(one.repeats * macs(one) for one in layers) == 6_623_232 * BLOCK
    assert [one.repeats for one in layers] == [4, 1, 1, 3, 1, 1, 3, 1, 1, 3]


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
        workload = one.workload()
        assert workload.bias is not None
        assert workload.epilogue.shift == 8
        assert workload.epilogue.clip == (0, 127) or workload.epilogue.relu
