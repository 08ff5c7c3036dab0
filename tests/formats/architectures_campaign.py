"""Small architectures, quantized by ONNX Runtime with many settings and compared with ONNX Runtime.

    python -m tests.formats.architectures_campaign [--count 15] [--seed 0] [--only NAME,...]
        [--machine vta-int8]

Each network of `tests/formats/architectures.py` is quantized with `count` random settings, read, and compared
tensor by tensor. Its outputs are also compared with ONNX Runtime's outputs for the quantized file itself.
With a machine it is also compiled and run on the simulator. Networks that ONNX Runtime does not quantize, or
quantizes and then refuses to run, are counted separately.
"""

import argparse
import sys
from collections import Counter
from zlib import crc32

import numpy as np

from accel.base.errors import AccelError
from accel.formats.compare_with_runtime import compare
from accel.formats.onnx_file import OLDEST_OPSET
from accel.formats.onnx_import import import_model
from accel.formats.onnx_runtime import open_onnx_runtime
from accel.graph.graph_evaluation import evaluate
from accel.network.network import Network
from tests.formats.architectures import ARCHITECTURES, build
from tests.formats.quantizer import Setting, quantize
from tests.formats.runtime import Array, onnx

TYPES = ("QInt8", "QUInt8")
CALIBRATION = range(3)
RUN = 5
"""Seed of the compared input."""
CLOSE = 0.1
"""Allowed distance from ONNX Runtime's outputs for the file, relative to the largest value of the output,
where parts of the network are float32 or not exact. In QDQ, ONNX Runtime may round a mean halfway between
two integers in either direction. Later layers carry the difference on, and Softmax enlarges it."""


def draw(name: str, count: int, seed: int) -> list[tuple[int, Setting]]:
    """Draw opsets and settings for an architecture. They depend on nothing but the arguments."""
    rng = np.random.default_rng([seed, crc32(name.encode())])

    def chance(share: float) -> bool:
        return bool(rng.random() < share)

    def one() -> tuple[int, Setting]:
        opset = int(rng.integers(OLDEST_OPSET, onnx.defs.onnx_opset_version() + 1))
        data = str(rng.choice(TYPES))
        same = data == "QInt8" and not chance(0.1)  # the quantizer refuses int8 data with uint8 weights
        return opset, Setting(
            form=str(rng.choice(["QDQ", "QOperator"])),
            data=data,
            weights=data if same else str(rng.choice(TYPES)),
            per_channel=chance(0.5),
            reduce_range=chance(0.3),
            symmetric_data=chance(0.3),
            symmetric_weights=chance(0.6),
        )

    return [one() for _ in range(count)]


def check(name: str, opset: int, setting: Setting, machine: str | None = None) -> Counter[str]:
    """Check one architecture with one setting, and on a machine if one is given. Return counts of the
    results.

    Raises:
        AccelError: the network cannot be read, or a value differs.
    """
    network = build(name, opset)
    source = network.model()
    (feeds,) = network.samples([RUN])
    try:
        content = quantize(source, network.samples(CALIBRATION), setting)
    except ValueError:  # the quantizer does not combine these types
        return Counter({"refused by ONNX Runtime's quantizer": 1})
    try:
        theirs = open_onnx_runtime(content)(feeds)
    except AccelError:
        return Counter({f"quantized, but refused by ONNX Runtime, in opset {opset}": 1})
    graph = import_model(content)
    comparison = compare(graph, feeds)
    comparison.raise_if_bad()
    found = Counter(
        {
            "compared": 1,
            "tensors": len(comparison.tensors),
            "values": comparison.values,
            "values that differ by the order of multiply-adds": comparison.reordered,
        }
    )
    exact = setting.form == "QOperator" and not any(one.largest for one in comparison.tensors)
    found.update(_outputs(evaluate(graph, feeds), theirs, exact=exact))
    if machine is not None:
        program = Network(graph=graph).build(machine)
        program.run(feeds).raise_if_wrong()
        found.update(
            {"compiled and run": 1, "layers on the machine": sum(len(one.parts) for one in program.chains)}
        )
    return found


def _outputs(found: dict[str, Array], theirs: dict[str, Array], *, exact: bool) -> Counter[str]:
    """Compare the outputs with those of the quantized file.

    Raises:
        AccelError: they differ by more than is allowed.
    """
    differing = 0
    for name, wanted in theirs.items():
        distance = np.abs(found[name].astype(np.float64) - wanted)
        wrong = int((distance > 0).sum())
        differing += wrong
        allowed = 0.0 if exact else CLOSE * float(np.abs(wanted).max(initial=0))
        if not distance.max(initial=0) <= allowed:
            raise AccelError(
                f"output {name!r} differs from that of the file in {wrong} of {wanted.size} values, "
                f"by up to {distance.max():g} where the largest is {np.abs(wanted).max():g}"
            )
    return Counter(
        {
            "outputs' values": sum(one.size for one in theirs.values()),
            "outputs' values rounded otherwise": differing,
        }
    )


def campaign(
    names: list[str], count: int, seed: int, machine: str | None = None
) -> tuple[Counter[str], list[str]]:
    """Check `count` settings of each architecture.

    Returns:
        Counts of the results, and one message for each failure.
    """
    found: Counter[str] = Counter()
    failures = []
    for name in names:
        for opset, setting in draw(name, count, seed):
            found["networks"] += 1
            try:
                found.update(check(name, opset, setting, machine))
            except Exception as error:
                failures.append(f"{name}, opset {opset}, {setting}: {type(error).__name__}: {error}")
                print(failures[-1], file=sys.stderr, flush=True)
    return found, failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=15, help="number of settings for each architecture")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random choices")
    parser.add_argument("--only", metavar="NAME,...", help="check only these architectures")
    parser.add_argument("--machine", help="also compile for this configuration and simulate")
    chosen = parser.parse_args()
    names = chosen.only.split(",") if chosen.only else list(ARCHITECTURES)
    for name in names:
        if name not in ARCHITECTURES:
            parser.error(f"{name!r} is not an architecture; there are {', '.join(ARCHITECTURES)}")
    found, failures = campaign(names, chosen.count, chosen.seed, chosen.machine)
    print(f"architectures: {len(names)}")
    for what, number in sorted(found.items()):
        print(f"{what}: {number}")
    print(f"failed: {len(failures)}")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
