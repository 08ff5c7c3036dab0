"""Random quantized networks compared with ONNX Runtime. A failing network is minimized and printed.

    python -m tests.formats.campaign [--count 2000] [--seed 0] [--machine vta-int8]

Each network is read as QOperator and as QDQ, evaluated in numpy, exported again, and compared tensor by
tensor. With a machine it is also compiled and run on the simulator.
"""

import argparse
from collections import Counter

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings

from accel.formats.onnx_import import import_model
from accel.network.network import Network
from tests.formats.generated import feeds, generate, models
from tests.formats.test_generated import NETWORKS, assert_equal


def campaign(count: int, seed: int, machine: str | None = None) -> Counter[str]:
    """Check `count` random networks.

    Returns:
        How often each operator occurred, and the number of values that differ by the order of multiply-adds.

    Raises:
        Exception: a network differs or cannot be read; raised for the smallest one found.
    """
    found: Counter[str] = Counter()

    @hypothesis.seed(seed)
    @settings(
        max_examples=count,
        derandomize=False,
        database=None,
        deadline=None,
        print_blob=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(NETWORKS)
    def one(network: tuple[list[str], int]) -> None:
        kinds, number = network
        found["reordered values"] += assert_equal(kinds, number)
        if machine is not None:
            made = generate(kinds, number)
            graph = import_model(models(made)[number % 2])
            Network(graph=graph).build(machine).run(feeds(made)).raise_if_wrong()
        found["networks"] += 1
        found.update(kinds)

    one()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=2000, help="number of networks")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random choices")
    parser.add_argument("--machine", help="also compile for this configuration and simulate")
    chosen = parser.parse_args()
    found = campaign(chosen.count, chosen.seed, chosen.machine)
    for name in ("networks", "reordered values"):
        print(f"{name}: {found.pop(name, 0)}")
    print(", ".join(f"{count} {kind}" for kind, count in sorted(found.items())))


if __name__ == "__main__":
    main()
