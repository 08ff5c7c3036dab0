"""Advice that is followed: what the best changes of a machine are said to make of a run, and what they do.

    python bench/advice.py [MODEL.onnx]...

For layers, a product and the network of digits, and for models that are named, as a table in Markdown: of
each run the best change of the timing, which is followed by running, and the best for which it is compiled
again.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import accel
from accel.benchmarks.networks import default_epilogue, layers_of
from accel.network.advice import advise_network
from accel.network.digits import digits_network
from accel.network.network import Network
from accel.run.advice import Advice, Advised, advise

SMALL = {"inp_bytes": "4KiB", "wgt_bytes": "4KiB", "acc_bytes": "4KiB", "bus_bits": 64}
LAYERS = (("mobilenet", "dw2", "vta-int8"), ("resnet18", "C4", "vta"))
NETWORKS = "vta-int8"
"""The machine of networks."""


class Followed(NamedTuple):
    """A row of the table."""

    run: str
    cycles: int
    advice: Advice
    taken: int

    def __str__(self) -> str:
        one = self.advice
        run, said = f"{self.run}, {self.cycles:,} cycles", f"`{one.change}`: {one.reason}"
        return f"| {run} | {said} | {one.cycles:,}, {one.how} | {self.taken:,} |"


def best(found: Advised) -> list[Advice]:
    """The first of either kind."""
    kinds = ([one for one in found.advice if one.recompiled is kind] for kind in (False, True))
    return [one for kind in kinds for one in kind[:1]]


def of_program(name: str, workload: accel.Workload, config: accel.Config) -> Iterator[Followed]:
    """The best advice for a workload's program."""
    program = accel.build(workload, config)
    result = program.run(check=False)
    for one in best(advise(result)):
        other = config.override({one.field: one.then})
        again = accel.build(workload, other) if one.recompiled else program.with_timing(other)
        yield Followed(name, result.cycles, one, again.run(check=False).cycles)


def of_network(name: str, network: Network) -> Iterator[Followed]:
    """The best advice for a network."""
    program = network.build(NETWORKS)
    result = program.run(check=False, record=True)
    for one in best(advise_network(program, result)):
        setting = {one.field: one.then}
        other = program.config.override(setting)
        again = network.build(other) if one.recompiled else program.with_timing(setting)
        yield Followed(name, result.cycles or 0, one, again.run(check=False).cycles or 0)


def rows(models: list[Path]) -> Iterator[Followed]:
    """What is followed."""
    small = accel.machine("gemm8x8", **SMALL).config
    yield from of_program("the product above", accel.gemm(128, 128, 128, shift=8), small)
    for network, name, machine in LAYERS:
        config = accel.machine(machine).config
        layer = next(one for one in layers_of(network, default_epilogue(config)) if one.name == name)
        yield from of_program(f"{network} {name} on {machine}", layer.workload(), config)
    yield from of_network(f"digits on {NETWORKS}", digits_network())
    for path in models:
        yield from of_network(f"{path.parent.name} on {NETWORKS}", accel.load_onnx(path))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="advice", description=__doc__)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL.onnx")
    print("| run | advice | predicted | taken |")
    print("|---|---|---:|---:|")
    for row in rows(parser.parse_args().models):
        print(row, flush=True)


if __name__ == "__main__":
    main()
