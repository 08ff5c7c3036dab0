"""Compare the speed of the hardware in each engine with the simulator, and check that their cycles are equal.

    python bench/engines.py [--engine NAME ...] [--repeat 3] [--json]

The program is a matrix product with bias, 3136 x 64 x 576 on ``vta``. Models are built before the first run,
which is not timed, and tracing is off. The simulator computes timing and function. Amaranth's own simulator
(pysim) runs only the first 3,000 cycles, once. The time of one cycle, which fills the scratchpads, is
subtracted. The fastest run of all other engines counts.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from functional import LAYER

import accel
from accel.core.fault_causes import Cause
from accel.hw.engines.engine_driver import Engine
from accel.hw.engines.open_engine import ENGINES, open_engine
from accel.image.dram import Dram
from accel.run.backends.rtl_backend import run_on_hardware
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.simulator import simulate

SLOW = {"pysim": 3000}
"""Cycle limit of engines that would need minutes for the whole program."""


def layer() -> accel.Program:
    return accel.build(accel.gemm(*LAYER, bias=True, shift=8, relu=True), "vta")


def fastest(repeat: int, start: Callable[[], Any], run: Callable[[Any], int]) -> tuple[int, float]:
    """Return cycles and seconds of a run after a first one."""
    cycles = run(start())
    seconds = []
    for _ in range(repeat):
        prepared = start()
        begin = time.perf_counter()
        cycles = run(prepared)
        seconds.append(time.perf_counter() - begin)
    return cycles, min(seconds)


def measure(engines: list[str], repeat: int) -> list[dict[str, Any]]:
    program = layer()
    config = program.config
    pads = Scratchpads.random(config, seed=0)
    address = config.mem_base + program.code_offset

    def in_simulator(dram: Dram) -> int:
        return simulate(program.instructions, config, dram, pads.copy(), address=address).timing.cycles

    rows = []
    cycles, seconds = fastest(repeat, program.dram, in_simulator)
    rows.append({"what": "simulator", "cycles": cycles, "seconds": seconds})
    for name in engines:
        engine = open_engine(config, name)

        def in_hardware(dram: Dram, limit: int = 1 << 40, engine: Engine = engine) -> int:
            engine.reset()
            run = run_on_hardware(program, dram, pads, engine, max_cycles=limit)
            if run.cause is Cause.LIMIT:
                return limit
            assert run.cause is Cause.NONE, run.cause
            assert run.cycles == cycles, f"{run.cycles} cycles, in the simulator {cycles}"
            return run.cycles

        if name in SLOW:
            _, least = fastest(1, program.dram, partial(in_hardware, limit=1))
            done, seconds = fastest(1, program.dram, partial(in_hardware, limit=SLOW[name]))
            seconds -= least
        else:
            done, seconds = fastest(repeat, program.dram, in_hardware)
        rows.append({"what": name, "cycles": done, "seconds": seconds})
    for row in rows:
        row["cycles_per_second"] = row["cycles"] / row["seconds"]
        row["ratio"] = rows[0]["cycles_per_second"] / row["cycles_per_second"]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--engine", action="append", choices=list(ENGINES), help="default: all")
    parser.add_argument("--repeat", type=int, default=3, help="timed runs")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    rows = measure(arguments.engine or list(ENGINES), arguments.repeat)
    if arguments.json:
        print(json.dumps({"engines": rows}, indent=2))
        return
    print(f"{'':10} {'cycles':>10} {'seconds':>9} {'cycles/s':>12} {'simulator is':>14}")
    for row in rows:
        print(
            f"{row['what']:10} {row['cycles']:>10,} {row['seconds']:>9.3f} "
            f"{row['cycles_per_second']:>12,.0f} {row['ratio']:>8,.0f} times"
        )


if __name__ == "__main__":
    main()
