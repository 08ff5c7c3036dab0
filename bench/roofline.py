"""Measure how close layers come to their lower bounds on many machines: geometric means, and the weakest
layers.

    python bench/roofline.py
    python bench/roofline.py --networks resnet18 mobilenet --machines vta vta-int8 --json points.json
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

import accel
from accel.base.errors import AccelError
from accel.base.records import as_dict
from accel.benchmarks import NETWORKS, Layer, default_epilogue, layers_of
from accel.compiler.mappings.cycle_bound import lower_bound
from accel.compiler.mappings.mapping_choice import find_mapping
from accel.core.config import Config

MACHINES: dict[str, tuple[str, dict[str, int | str]]] = {
    "vta": ("vta", {}),
    "gemm8x8": ("gemm8x8", {}),
    "ecp5": ("ecp5", {}),
    "32x32, 64 bits": ("vta", {"block_in": 32, "block_out": 32, "bus_bits": 64}),
    "32x32, 128 bits": ("vta", {"block_in": 32, "block_out": 32, "bus_bits": 128}),
    "64x64, 512 bits": ("vta", {"block_in": 64, "block_out": 64, "bus_bits": 512}),
    "16x16x16, 256 bits": ("vta", {"batch": 16, "bus_bits": 256}),
    "vta, latency 500": ("vta", {"read_latency": 500}),
    "vta, 8 KiB": ("vta", {"inp_bytes": 8192, "wgt_bytes": 65536, "acc_bytes": 32768}),
    "vta, 256 bits": ("vta", {"bus_bits": 256}),
    "vta-int8": ("vta-int8", {}),
    "gemm8x8-int8": ("gemm8x8-int8", {}),
    "ecp5-int8": ("ecp5-int8", {}),
}
"""A named machine and the fields that differ from it."""
FEW = ("resnet18-first", "resnet18", "mobilenet", "bert-base")
_LATENCIES = 40
"""Layers with a bound below this number of read latencies are short: filling and draining takes most of their
time, so they are not listed among the weakest."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """A layer on a machine.

    Attributes:
        cycles, plain_cycles: with the chosen mapping, and with ``plain``.
        roofline, plain_roofline: the bound from real products and bytes, divided by the cycles.
        slots: the bound from slots and bytes of the mapped operator, divided by the cycles.
        packed: as ``slots``, with bytes in DRAM, including zeros that fill blocks and scales next to biases.
        least: cycles that any program of the mapped operator needs.
        reachable: the largest value of ``slots`` that ``least`` allows.
        short: whether that bound is below 40 read latencies.
    """

    machine: str
    network: str
    layer: str
    mapping: str
    cycles: int
    plain_cycles: int
    roofline: float
    plain_roofline: float
    slots: float
    packed: float
    least: float
    reachable: float
    short: bool


def points(machines: list[str], networks: list[str], mapping: str, measure: int | None) -> Iterator[Point]:
    """Yield and print every layer on every machine. Equal layers of a network count once."""
    for machine in machines:
        base, changes = MACHINES[machine]
        config = accel.machine(base, **changes).config
        for network in networks:
            for layer in layers_of(network, default_epilogue(config)):
                found = _point(machine, config, network, layer, mapping, measure)
                if found is not None:
                    print(json.dumps(as_dict(found)), file=sys.stderr, flush=True)
                    yield found


def _point(
    machine: str, config: Config, network: str, layer: Layer, mapping: str, measure: int | None
) -> Point | None:
    workload = layer.workload()
    try:
        result = accel.build(workload, config, mapping=mapping, measure=measure).run(check=False)
        plain = result
        if result.image.mapping != "plain":
            plain = accel.build(workload, config, mapping="plain").run(check=False)
    except AccelError as error:
        print(f"{machine}: {network} {layer.name}: {error}", file=sys.stderr)
        return None
    bound = result.slot_bound_cycles or 0.0
    least = lower_bound(find_mapping(workload, result.image.mapping).workload, config).cycles
    return Point(
        machine=machine,
        network=network,
        layer=layer.name,
        mapping=result.image.mapping,
        cycles=result.cycles,
        plain_cycles=plain.cycles,
        roofline=result.roofline_fraction or 1.0,
        plain_roofline=plain.roofline_fraction or 1.0,
        slots=result.slot_roofline_fraction or 1.0,
        packed=max(bound, _packed_bytes(result) / config.bus_bytes) / (result.cycles or 1),
        least=least,
        reachable=min(1.0, bound / least),
        short=bound < _LATENCIES * config.read_latency,
    )


def _packed_bytes(result: accel.Result) -> int:
    """Return the bytes of inputs and constants in DRAM, at most those that a program loads."""
    tensors = sum(one.nbytes for one in result.image.tensors if one.role != "output")
    others = ("uop", "out", "instructions")
    loaded = sum(nbytes for kind, nbytes in result.bytes_by_kind.items() if kind not in others)
    return min(tensors, loaded)


def mean(values: list[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


def table(found: list[Point]) -> str:
    """Return means for each machine, and the weakest layers."""
    lines = [
        "| machine | layers | mapped | roofline, plain | roofline | slots and bytes | reachable "
        "| weakest layer |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for machine in dict.fromkeys(one.machine for one in found):
        here = [one for one in found if one.machine == machine]
        long = [one for one in here if not one.short] or here
        worst = min(long, key=lambda one: one.slots)
        means = (
            mean([getattr(one, name) for one in here])
            for name in ("plain_roofline", "roofline", "slots", "reachable")
        )
        cells = [
            *(machine, str(len(here)), str(sum(one.mapping != "plain" for one in here))),
            *(f"{value:.3f}" for value in means),
            f"{worst.network} {worst.layer}: {worst.slots:.3f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    weak = sorted((one for one in found if not one.short), key=lambda one: one.slots)[:12]
    lines += [
        "",
        "| machine | layer | mapping | cycles | roofline | slots and bytes | as packed | reachable |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for one in weak:
        cells = [one.machine, f"{one.network} {one.layer}", one.mapping, f"{one.cycles:,}"]
        cells += [f"{value:.3f}" for value in (one.roofline, one.slots, one.packed, one.reachable)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--machines", nargs="*", choices=MACHINES, default=list(MACHINES))
    parser.add_argument("--networks", nargs="*", choices=NETWORKS, default=list(FEW))
    parser.add_argument("--mapping", default="auto", help="as of accel compile")
    parser.add_argument(
        "--measure",
        type=int,
        metavar="N",
        help="simulate the N most promising plans of each, take the fastest",
    )
    parser.add_argument("--json", type=Path, help="write all points to this file")
    options = parser.parse_args()
    found = list(points(options.machines, options.networks, options.mapping, options.measure))
    if options.json is not None:
        options.json.write_text(json.dumps([as_dict(one) for one in found], indent=1))
    print(table(found))


if __name__ == "__main__":
    main()
