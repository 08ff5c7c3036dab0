"""Print the critical path of each layer of a network by cause, for each machine, as a Markdown table.

    python bench/critical.py [--network NAME] [--config MACHINE]... [--json]

In the JSON, ``seconds`` is the processor time of finding a path, and ``instructions`` the length of the
program.
"""

import argparse
import json
import time
from typing import Any

import accel
from accel.benchmarks.benchmark_networks import NETWORKS, default_epilogue, layers_of
from accel.benchmarks.measure_layers import Task
from accel.run.critical_path import critical_path, shares, shares_text
from accel.sim.timing.timing_model import simulate_timing

CONFIGS = ("vta", "vta-int8")
_MOST = 3
"""Largest number of causes that are printed for a layer."""


def measure(network: str, config: str) -> list[dict[str, Any]]:
    machine = accel.machine(config).config
    rows = []
    for layer in layers_of(network, default_epilogue(machine)):
        image = Task(layer=layer, config=machine).build()
        address = machine.mem_base + image.code_offset
        run = simulate_timing(image.instructions, machine, address=address)
        begin = time.process_time()
        path = critical_path(run, image)
        seconds = time.process_time() - begin
        assert path is not None
        found = shares(path)
        assert sum(one.cycles for one in found) == run.cycles
        rows.append(
            {
                "config": config,
                "layer": layer.name,
                "cycles": run.cycles,
                "instructions": len(image.instructions),
                "seconds": seconds,
                "text": shares_text(found, _MOST),
                "causes": [one.to_dict() for one in found],
            }
        )
    return rows


def table(found: dict[str, list[dict[str, Any]]]) -> str:
    """Return a row for each layer, two columns for each machine."""
    configs = list(found)
    heads = ["layer", *(text for config in configs for text in (f"cycles on `{config}`", "critical path"))]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|---|" * len(configs)]
    for rows in zip(*found.values(), strict=True):
        cells = [rows[0]["layer"], *(text for row in rows for text in (f"{row['cycles']:,}", row["text"]))]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="critical", description=__doc__)
    parser.add_argument("--network", choices=NETWORKS, default="resnet18")
    parser.add_argument("--config", action="append", help=f"a machine (default: {', '.join(CONFIGS)})")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {config: measure(options.network, config) for config in options.config or CONFIGS}
    print(json.dumps(found) if options.json else table(found))


if __name__ == "__main__":
    main()
