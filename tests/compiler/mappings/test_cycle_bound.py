"""The lower bound on cycles: below every program, and close to good ones."""

from random import Random

import pytest

import accel
from accel.base.errors import AccelError
from accel.compiler.mappings.cycle_bound import lower_bound

SMALL = {"vta": {"inp_bytes": 4096, "wgt_bytes": 32768, "acc_bytes": 16384}, "tiny": {}, "tiny-int8": {}}


def workload(rng: Random) -> accel.Workload:
    """Return a random product, convolution or pooling."""
    kernel, stride = rng.choice([1, 2, 3]), rng.choice([1, 2])
    sizes = rng.randint(1, 2), rng.randint(1, 40), rng.randint(kernel, 11), rng.randint(kernel, 11)
    kind = rng.choice(["product", "convolution", "depthwise", "maxima", "means"])
    if kind == "product":
        return accel.gemm(*(rng.randint(1, 60) for _ in range(3)), shift=4, bias=rng.random() < 0.5)
    if kind == "convolution":
        padding = rng.randint(0, kernel // 2)
        return accel.conv2d(*sizes, rng.randint(1, 40), kernel, stride=stride, padding=padding, shift=4)
    if kind == "depthwise":
        return accel.conv2d(*sizes, sizes[1], kernel, stride=stride, groups=sizes[1], shift=4)
    pool = accel.max_pool2d if kind == "maxima" else accel.avg_pool2d
    return pool(*sizes, kernel=kernel, stride=stride)


@pytest.mark.parametrize("machine", SMALL)
def test_no_program_is_faster_than_its_bound(machine: str) -> None:
    chosen, rng, built = accel.machine(machine, **SMALL[machine]), Random(machine), 0
    for _ in range(16):
        one = workload(rng)
        try:
            cycles = accel.build(one, chosen, mapping="plain").run(check=False).cycles
        except AccelError:  # the workload does not fit
            continue
        built += 1
        assert lower_bound(one, chosen.config).cycles <= cycles
    assert built > 8


def test_the_busiest_resource_decides() -> None:
    config = accel.machine("vta").config
    edges = lower_bound(accel.gemm(1, 16, 16), config).cycles
    slots = 512 * 32 * (32 + 3) - 2048  # a shift and two clips; the first tile's resets need no operands
    assert lower_bound(accel.gemm(512, 512, 512, shift=8), config).cycles == pytest.approx(
        slots + 16384 + edges, rel=0.01
    )
    weights = 1024 * 1024 / 8
    assert lower_bound(accel.gemm(1, 1024, 1024), config).cycles == pytest.approx(weights + edges, rel=0.01)


def test_lanes_can_be_the_bound() -> None:
    """Two lanes requantize two values per cycle."""
    layer = accel.conv2d(1, 64, 28, 28, 64, 1, shift=6)
    values = 64 * 28 * 28
    two, eight = (lower_bound(layer, accel.machine("vta-int8", post_lanes=n).config).cycles for n in (2, 8))
    assert values / 2 < two < values / 2 + 500
    assert eight < 0.6 * two  # the slots of the products
