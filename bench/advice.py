"""Follow the advice that reports give, and compare predicted with measured cycles.

    python bench/advice.py [MODEL.onnx]...

Runs are two layers, a matrix product, the network of digits and the given models. Each follows the best
advice that changes only the timing, and the best that needs another compilation. The table is Markdown.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import accel
from accel.benchmarks.benchmark_networks import default_epilogue, layers_of
from accel.network.digits import digits_network
from accel.network.network import Network
from accel.network.network_advice import advise_network
from accel.run.machine_advice import Advice, AdviceReport, advise

SMALL = {"inp_bytes": "4KiB", "wgt_bytes": "4KiB", "acc_bytes": "4KiB", "bus_bits": 64}
LAYERS = (("mobilenet", "dw2", "vta-int8"), ("resnet18", "C4", "vta"))
NETWORKS = "vta-int8"
"""Machine on which networks run."""


class Followed(NamedTuple):
    run: str
    cycles: int
    advice: Advice
    measured: int

    def __str__(self) -> str:
        one = self.advice
        run, said = f"{self.run}, {self.cycles:,} cycles", f"`{one.change}`: {one.reason}"
        return f"| {run} | {said} | {one.cycles:,}, {one.how} | {self.measured:,} |"


def best(found: AdviceReport) -> list[Advice]:
    kinds = ([one for one in found.advice if one.recompiled is kind] for kind in (False, True))
    return [one for kind in kinds for one in kind[:1]]


def of_program(name: str, workload: accel.Workload, config: accel.Config) -> Iterator[Followed]:
    program = accel.build(workload, config)
    result = program.run(check=False)
    for one in best(advise(result)):
        other = config.override({one.field: one.then})
        again = accel.build(workload, other) if one.recompiled else program.with_timing(other)
        yield Followed(name, result.cycles, one, again.run(check=False).cycles)


def of_network(name: str, network: Network) -> Iterator[Followed]:
    program = network.build(NETWORKS)
    result = program.run(check=False, record=True)
    for one in best(advise_network(program, result)):
        setting = {one.field: one.then}
        other = program.config.override(setting)
        again = network.build(other) if one.recompiled else program.with_timing(setting)
        yield Followed(name, result.cycles or 0, one, again.run(check=False).cycles or 0)


def rows(models: list[Path]) -> Iterator[Followed]:
    small = accel.machine("gemm8x8", **SMALL).config
    yield from of_program(
        "the product of 128 x 128 x 128 on small scratchpads", accel.gemm(128, 128, 128, shift=8), small
    )
    for network, name, machine in LAYERS:
        config = accel.machine(machine).config
        layer = next(one for one in layers_of(network, default_epilogue(config)) if one.name == name)
        yield from of_program(f"{network} {name} on {machine}", layer.workload(), config)
    yield from of_network(f"digits on {NETWORKS}", digits_network())
    for path in models:
        yield from of_network(f"{path.parent.name} on {NETWORKS}", accel.load_onnx(path))


def main() -> None:
    parser = argparse.ArgumentParser(prog="advice", description=__doc__)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL.onnx")
    print("| run | advice | predicted | measured |")
    print("|---|---|---:|---:|")
    for row in rows(parser.parse_args().models):
        print(row, flush=True)


if __name__ == "__main__":
    main()
