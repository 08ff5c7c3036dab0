"""``python -m tests.lockstep.machines_campaign``: random machines on simulator and hardware.

Each machine has random blocks, scratchpads, timing and features, half of them also random ALU operations, and
executes random programs, every second one on hostile memory. It is built once, in about 10 seconds.
"""

import argparse
import json
import sys
import time
from random import Random

from accel.base.errors import ConfigError
from accel.core.alu_operations import STOCK_NAMES, register
from accel.core.config import Config
from tests.lockstep.fuzz import FOLDER, Fuzzer, reproducer
from tests.random_lane_expressions import random_operation
from tests.strategies import FEATURES, machine_with, random_timing

_MAX_BLOCK_BITS = 3
_MAX_LANES = 16
"""With random operations, a model of 64 lanes is compiled for minutes."""
_MAX_DEPTH_BITS = 7


def random_operations(rng: Random, number: int) -> tuple[str, ...]:
    """Return names of operations: most of VTA's and, for half of the machines, one to eleven random ones."""
    own = [random_operation(rng, f"r{number}_{n}") for n in range(rng.choice((0, rng.randint(1, 11))))]
    stock = [name for name in STOCK_NAMES if name == "add" or rng.random() < 0.8]
    return (*stock, *(register(one).name for one in own))


def random_machine(rng: Random, number: int) -> Config:
    """Return a machine of any generation."""
    operations = random_operations(rng, number)
    while True:
        batch, block_in, block_out = (1 << rng.randint(0, _MAX_BLOCK_BITS) for _ in range(3))
        block_out = rng.choice((block_in, block_out))
        batch = min(batch, _MAX_LANES // block_out)
        depths = [1 << rng.randint(1, _MAX_DEPTH_BITS) for _ in range(4)]
        post = rng.randint(0, 1)
        features = {name: rng.choice(values) for name, values in FEATURES.items()} if post else {}
        try:
            found = machine_with(
                (batch, block_in, block_out),
                depths,
                name=f"machine {number}",
                alu_ops=operations,
                post=post,
                **features,
            )
            return random_timing(rng, found)
        except ConfigError:
            continue


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=20)
    parser.add_argument(
        "--programs", type=int, default=1000, help="Programs for each machine, a multiple of 100."
    )
    parser.add_argument("--seed", type=int, default=0, help="Number of the first machine.")
    arguments = parser.parse_args()
    programs = cycles = 0
    begin = time.monotonic()
    for number in range(arguments.seed, arguments.seed + arguments.machines):
        config = random_machine(Random(number), number)
        fuzzer = Fuzzer({config.name: config}, float("inf"), hostile=bool(number % 2))
        for part in range(0, arguments.programs, 100):
            if not fuzzer.run_round(number * arguments.programs + part):
                assert fuzzer.failure is not None
                print(f"{config.label} differs; --seed {number} --machines 1 repeats it")
                print(f"the program is in {reproducer(*fuzzer.failure, FOLDER)}")
                sys.exit(1)
        programs += fuzzer.programs
        cycles += fuzzer.cycles
        print(f"{config.label}: {programs:,} programs, {cycles:,} cycles", flush=True)
    seconds = round(time.monotonic() - begin)
    found = {"machines": arguments.machines, "programs": programs, "cycles": cycles, "seconds": seconds}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
