"""Tune the layers of benchmark networks, and write the schedules that win into the records of the package.

    python bench/stock_records.py TRIALS.jsonl [--network NAME ...] [--machine NAME ...] [--trials 16]

Trials are appended to TRIALS.jsonl. After an interruption, the same command continues there. Without the
options, all networks are tuned on ``vta``, ``vta-int8`` and ``vta-npu``, which takes hours.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import accel
from accel.base.atomic_files import write_atomically
from accel.base.run_choices import BENCHMARKS
from accel.benchmarks.benchmark_networks import default_epilogue, layers_of
from accel.core.config import load_config
from accel.run.tuning_records import STOCK_FILE, Record, record_key

MACHINES = ("vta", "vta-int8", "vta-npu")
MIN_GAIN = 0.005
"""Share of the default schedule's cycles that a record saves at least."""


def winners(networks: Sequence[str], machines: Sequence[str], trials: int, records: Path) -> Iterator[Record]:
    """Yield the records of layers whose fastest schedule saves enough, each layer once."""
    known = set()
    for machine in machines:
        config = load_config(machine)
        for network in networks:
            for layer in layers_of(network, default_epilogue(config)):
                workload = layer.workload()
                key = record_key(workload.name, [workload.output], config)
                if key.identity in known:
                    continue
                known.add(key.identity)
                found = accel.tune(workload, machine, trials=trials, records=records, jobs=1)
                default = found.default_cycles or found.cycles
                gain = 1 - found.cycles / default
                print(
                    f"{machine} {network} {layer.name}: {default:,} to {found.cycles:,}, {gain:.2%}",
                    flush=True,
                )
                if gain >= MIN_GAIN:
                    yield Record(key=key, cycles=found.cycles, mapping=found.mapping, steps=found.steps)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("records", type=Path, metavar="TRIALS.jsonl")
    parser.add_argument("--network", action="append", choices=BENCHMARKS, help="repeatable")
    parser.add_argument("--machine", action="append", help="repeatable")
    parser.add_argument("--trials", type=int, default=16)
    chosen = parser.parse_args(arguments)
    every = winners(chosen.network or BENCHMARKS, chosen.machine or MACHINES, chosen.trials, chosen.records)
    lines = sorted(record.to_line() for record in every)
    target = Path(__file__).parents[1] / "accel" / "run" / STOCK_FILE.name  # not the installed copy
    write_atomically(target, "".join(f"{line}\n" for line in lines).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
