"""``python -m tests.lockstep.operations_campaign``: random sets of operations on simulator and hardware.

Each set has one to eleven operations with random expressions and stages, and some of VTA's. The machine is
built once for a set, which takes half a minute, and executes random programs.
"""

import argparse
import json
import sys
import time
from random import Random

from accel.core.alu_operations import STOCK_NAMES, Operation, register
from accel.core.config import NAMED, Config
from tests.lockstep.fuzz import Fuzzer
from tests.random_lane_expressions import random_operation


def random_machine(rng: Random, number: int) -> tuple[Config, list[Operation]]:
    """Return a machine of any generation with a random set of operations."""
    own = [register(random_operation(rng, f"r{number}_{n}")) for n in range(rng.randint(1, 11))]
    stock = [name for name in STOCK_NAMES if name == "add" or rng.random() < 0.8]
    geometry = {
        "alu_ops": ",".join([*stock, *(one.name for one in own)]),
        "batch": rng.choice((1, 2)),
        "block_out": rng.choice((1, 2, 4)),
        "mul_slots": rng.randint(1, 5),
        "tree_stages": rng.randint(0, 2),
    }
    return NAMED[rng.choice(("tiny", "tiny-int8", "tiny-npu"))].override(geometry), own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=20, help="Sets of operations.")
    parser.add_argument(
        "--programs", type=int, default=1000, help="Programs for each set, a multiple of 100."
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    programs = cycles = operations = 0
    begin = time.monotonic()
    for number in range(arguments.seed, arguments.seed + arguments.sets):
        config, own = random_machine(Random(number), number)
        fuzzer = Fuzzer({f"set {number}": config}, float("inf"), hostile=True)
        for part in range(0, arguments.programs, 100):
            if not fuzzer.run_round(number * arguments.programs + part):
                print(f"set {number} differs: {fuzzer.failure}")
                sys.exit(1)
        programs += fuzzer.programs
        cycles += fuzzer.cycles
        operations += len(own)
        print(f"set {number}: {config.label}; {programs:,} programs, {cycles:,} cycles", flush=True)
    seconds = round(time.monotonic() - begin)
    print(json.dumps({"programs": programs, "cycles": cycles, "operations": operations, "seconds": seconds}))


if __name__ == "__main__":
    main()
