"""Measure the gain of each reorder pass: cycles with the pass off over cycles with all passes on.

    python bench/reorder_passes.py
    python bench/reorder_passes.py --machines vta vta-int8 --networks resnet18 --together PASS PASS

Machines are those of bench/roofline.py. Each layer is compiled once with all passes and once without each
pass. A gain of 1.0 % means that programs without the pass take 1.0 % more cycles, in the geometric mean over
layers. The mean over machines gives each machine the same weight.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

import accel
from accel.base.errors import AccelError
from accel.base.records import as_dict
from accel.benchmarks import NETWORKS, default_epilogue, layers_of
from accel.compiler.codegen.compile_schedule import reorder_effects
from accel.compiler.codegen.reorder_passes import PASS_NAMES
from accel.compiler.mappings.mapped_build import compile_mapped
from accel.compiler.mappings.mapping_choice import choose_mapping
from accel.compiler.ops.workload import Workload
from accel.compiler.target.machine import Machine
from accel.run.measured_plans import simulated_cycles

sys.path.insert(0, str(Path(__file__).parent))
from roofline import MACHINES

DEFAULT_NETWORKS = ("resnet18-first", "resnet18", "mobilenet", "gemm")

TOGETHER = "together"
"""The name under which :class:`Point` has the cycles without all passes of ``--together``."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """A layer on a machine.

    Attributes:
        without: the cycles without a pass, by name.
    """

    machine: str
    network: str
    layer: str
    cycles: int
    without: dict[str, int]


def points(
    machines: Sequence[str], networks: Sequence[str], together: Sequence[str], every: int
) -> Iterator[Point]:
    """Yield every ``every``-th layer of all networks on all machines."""
    for name in machines:
        base, changes = MACHINES[name]
        machine = accel.machine(base, **changes)
        known: dict[str, tuple[int, dict[str, int]]] = {}
        for network in networks:
            for layer in list(layers_of(network, default_epilogue(machine.config)))[::every]:
                workload = layer.workload()
                key = f"{workload.name} {workload.parameters}"
                try:
                    if key not in known:
                        known[key] = _cycles(workload, machine, together)
                except AccelError as error:
                    print(f"{name}: {network} {layer.name}: {error}", file=sys.stderr)
                    continue
                cycles, without = known[key]
                point = Point(machine=name, network=network, layer=layer.name, cycles=cycles, without=without)
                print(json.dumps(as_dict(point)), file=sys.stderr, flush=True)
                yield point


def _cycles(workload: Workload, machine: Machine, together: Sequence[str]) -> tuple[int, dict[str, int]]:
    choice = choose_mapping(workload, machine.config)
    schedule = choice.schedule(machine)

    def cycles(without: Sequence[str]) -> int:
        return simulated_cycles(compile_mapped(choice.mapping, schedule, machine.config, without=without))

    effects = reorder_effects(schedule, machine.config)
    changing = {one.name for one in effects if one.moved or one.removed or one.added or one.waits}
    whole = cycles(())
    found = {name: cycles([name]) if name in changing else whole for name in PASS_NAMES}
    if together:
        found[TOGETHER] = cycles(together) if changing & set(together) else whole
    return whole, found


def gain(found: Sequence[Point], name: str) -> float:
    """Return the geometric mean of cycles without a pass over cycles with it, minus 1."""
    return exp(sum(log(one.without[name] / one.cycles) for one in found) / len(found)) - 1


def mean_gain(found: Sequence[Point], name: str) -> float:
    machines = dict.fromkeys(one.machine for one in found)
    gains = (gain([one for one in found if one.machine == machine], name) for machine in machines)
    return exp(sum(log(1 + one) for one in gains) / len(machines)) - 1


def table(found: Sequence[Point]) -> str:
    """Return gains in percent, with a row for each machine and for all."""
    names = list(found[0].without)
    lines = [f"| machine | layers | {' | '.join(names)} |", f"|---|---:|{'---:|' * len(names)}"]
    for machine in dict.fromkeys(one.machine for one in found):
        here = [one for one in found if one.machine == machine]
        cells = [machine, str(len(here)), *(f"{100 * gain(here, name):.2f}" for name in names)]
        lines.append(f"| {' | '.join(cells)} |")
    means = [f"**{100 * mean_gain(found, name):.3f}**" for name in names]
    lines.append(f"| all | {len(found)} | {' | '.join(means)} |")
    lines += ["", "Largest differences of a layer, in percent:", ""]
    for name in names:
        best = max(found, key=lambda one: one.without[name] / one.cycles)
        worst = min(found, key=lambda one: one.without[name] / one.cycles)
        texts = [
            f"{100 * (one.without[name] / one.cycles - 1):+.2f} ({one.machine}: {one.network} {one.layer})"
            for one in (best, worst)
        ]
        lines.append(f"- {name}: {texts[0]}, {texts[1]}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--machines", nargs="*", choices=MACHINES, default=list(MACHINES))
    parser.add_argument("--networks", nargs="*", choices=NETWORKS, default=list(DEFAULT_NETWORKS))
    parser.add_argument(
        "--every",
        type=int,
        default=1,
        metavar="N",
        help="measure every N-th layer; with an even N, no depthwise layer of MobileNet is measured",
    )
    parser.add_argument(
        "--together",
        nargs="*",
        choices=PASS_NAMES,
        default=[],
        help="also measure with all of these passes off",
    )
    parser.add_argument("--json", type=Path, help="write all points to this file")
    options = parser.parse_args()
    found = list(points(options.machines, options.networks, options.together, options.every))
    if options.json is not None:
        options.json.write_text(json.dumps([as_dict(one) for one in found], indent=1))
    print(table(found))


if __name__ == "__main__":
    main()
