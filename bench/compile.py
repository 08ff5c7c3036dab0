"""Measure the time to compile layers: the choice of a plan and the rest, by layer and machine.

    python bench/compile.py [--networks NAME ...] [--machines NAME ...] [--simulate] [--against FILE] [--json]

Seconds are processor time. Each layer has the mapping ``plain``. ``--simulate`` compares simulated cycles
with predicted ones. ``--against FILE`` reads earlier ``--json`` output, and lists every layer whose cycles or
bytes have changed.
"""

import argparse
import json
import time
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import accel
from accel.benchmarks.benchmark_networks import default_epilogue, layers_of
from accel.compiler.codegen.compile_schedule import compile_schedule
from accel.compiler.operators.default_schedule import find_candidates, planner_of
from accel.core.isa import decode
from accel.sim.timing.timing_model import simulate_timing

NETWORKS = ("resnet18", "mobilenet", "gemm")
MACHINES = ("vta", "gemm8x8", "ecp5", "tiny", "vta-int8", "gemm8x8-int8", "ecp5-int8", "tiny-int8")
MORE_MACHINES: dict[str, dict[str, Any]] = {
    "32x32": {"block_in": 32, "block_out": 32, "acc_bytes": 1 << 18},
    "small": {"inp_bytes": 2048, "wgt_bytes": 8192, "acc_bytes": 8192},
}
"""Machines made of ``vta``: the fields that differ."""


def machine_of(name: str) -> accel.Machine:
    """Return a named machine or one of :data:`MORE_MACHINES`."""
    if name in MORE_MACHINES:
        return accel.machine("vta", **MORE_MACHINES[name])
    return accel.machine(name)


def measure(network: str, name: str, *, simulate: bool) -> list[dict[str, Any]]:
    machine, rows = machine_of(name), []
    config = machine.config
    for layer in layers_of(network, default_epilogue(config)):
        workload = layer.workload()
        start = time.process_time()
        found = find_candidates(workload, config)
        planned = time.process_time()
        schedule = planner_of(workload).schedule(workload, machine, found[0].plan)
        image = compile_schedule(schedule, config)
        end = time.process_time()
        row = {
            "network": network,
            "layer": layer.name,
            "machine": name,
            "plan_seconds": planned - start,
            "compile_seconds": end - start,
            "plan": str(found[0].plan),
            "threads": found[0].plan.threads,
            "read_bytes": found[0].read_bytes,
            "predicted": round(found[0].prediction.cycles),
        }
        if simulate:
            instructions = decode(image.code, config)
            row["instructions"] = len(instructions)
            row["cycles"] = simulate_timing(instructions, config, address=image.code_offset).cycles
        rows.append(row)
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return seconds, the share of planning, and errors of predictions."""
    plans = [row["plan_seconds"] for row in rows]
    networks: dict[tuple[str, str], float] = {}
    for row in rows:
        key = row["network"], row["machine"]
        networks[key] = networks.get(key, 0.0) + row["compile_seconds"]
    found: dict[str, Any] = {
        "layers": len(rows),
        "median_plan_seconds": median(plans),
        "most_plan_seconds": max(plans),
        "plan_share": sum(plans) / sum(row["compile_seconds"] for row in rows),
        "most_network_seconds": max(networks.values()),
    }
    if "cycles" in rows[0]:
        errors = [abs(row["predicted"] / row["cycles"] - 1) for row in rows]
        found |= {"median_error": median(errors), "worst_error": max(errors)}
    return found


def changes(rows: list[dict[str, Any]], before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return changed layers as ratios of simulated cycles or bytes, the worst last."""
    old = {(row["network"], row["layer"], row["machine"]): row for row in before}
    found = []
    for row in rows:
        was = old.get((row["network"], row["layer"], row["machine"]))
        if was is not None and (was["cycles"], was["read_bytes"]) != (row["cycles"], row["read_bytes"]):
            found.append(
                {key: row[key] for key in ("network", "layer", "machine", "cycles")}
                | {"cycles_ratio": row["cycles"] / was["cycles"]}
                | {"bytes_ratio": row["read_bytes"] / was["read_bytes"]}
                | {"seconds_ratio": row["plan_seconds"] / was["plan_seconds"]}
            )
    return sorted(found, key=lambda change: change["cycles_ratio"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    parser.add_argument("--machines", nargs="+", default=(*MACHINES, *MORE_MACHINES))
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--against", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    simulate = options.simulate or options.against is not None
    rows = [
        row
        for machine in options.machines
        for network in options.networks
        for row in measure(network, machine, simulate=simulate)
    ]
    before = json.loads(options.against.read_text())["rows"] if options.against else []
    changed = changes(rows, before)
    if options.json:
        print(json.dumps({"rows": rows, "summary": summary(rows), "changes": changed}, indent=2))
        return
    print(f"{'machine':<14}{'network':<12}{'layers':>7}{'planning s':>12}{'most':>8}{'all s':>8}{'share':>8}")
    for machine in options.machines:
        for network in options.networks:
            some = [row for row in rows if (row["machine"], row["network"]) == (machine, network)]
            plan, whole = (sum(row[key] for row in some) for key in ("plan_seconds", "compile_seconds"))
            most = max(row["plan_seconds"] for row in some)
            print(
                f"{machine:<14}{network:<12}{len(some):>7}{plan:>12.2f}{most:>8.2f}{whole:>8.2f}"
                f"{plan / whole:>8.1%}"
            )
    print(", ".join(f"{key} {value:.4g}" for key, value in summary(rows).items()))
    for change in changed:
        print(
            f"{change['machine']:<14}{change['network']:<12}{change['layer']:<8}{change['cycles']:>12,}"
            f"{change['cycles_ratio']:>9.4f} cycles{change['bytes_ratio']:>8.3f} bytes"
        )
    if changed:
        print(
            f"cycles: {geometric_mean([change['cycles_ratio'] for change in changed]):.5f} in geometric mean"
        )


if __name__ == "__main__":
    main()
