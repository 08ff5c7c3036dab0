"""Measure how the cost of compiling and simulating grows with size.

    python bench/growth.py [--json] [--profile] [--largest N]

Rows are matrix products N x N x N on ``gemm8x8`` with the default schedule, and about 100,000 instructions: a
256 x 256 x 256 product with one block per copy. Columns are seconds for compiling, the token check, the
timing model and functional execution, in total and per instruction. ``--profile`` prints the modules that
take the time, in percent.
"""

import argparse
import cProfile
import json
import pstats
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import accel
from accel import te
from accel.proof.check_program import check_program
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.simulator import simulate
from accel.sim.timing.timing_model import simulate_timing

SIZES = (256, 512, 1024, 2048, 4096)
STEPS = ("compile", "check", "timing", "function")
_ROOT = Path(__file__).resolve().parents[1]
_SHOWN = 5
"""Number of modules that a profile prints."""


def one_block_per_copy(size: int, machine: accel.Machine) -> te.Schedule:
    """Return the published schedule, which has the most instructions."""
    A, B = te.placeholder((size, size), name="A"), te.placeholder((size, size), name="B")
    k = te.reduce_axis((0, size), name="k")
    C = te.compute((size, size), lambda y, x: te.sum(A[k, y] * B[k, x], axis=k), name="C", dtype="int8")
    s = te.create_schedule(C.op)
    y, x = s[C].op.axis
    _, _, _, yi, _, _ = s[C].tile(y, x, k, 8, 8, 8)
    sums = s.cache_write(C, machine.acc_buffer)
    s.cache_read(A, machine.inp_buffer)
    s.cache_read(B, machine.wgt_buffer)
    s[sums].tensorize(yi, machine.gemm)
    return s


class _Clock:
    def __init__(self, profile: bool) -> None:
        self.seconds: dict[str, float] = {}
        self.profiles: dict[str, dict[str, float]] = {}
        self._profile = profile

    def run(self, step: str, action: Callable[[], Any]) -> Any:
        begin = time.perf_counter()
        result = action()
        self.seconds[step] = time.perf_counter() - begin
        if self._profile:
            profiler = cProfile.Profile()
            profiler.runcall(action)
            self.profiles[step] = _shares(pstats.Stats(profiler))
        return result


def _shares(stats: Any) -> dict[str, float]:
    spent: Counter[str] = Counter()
    for (file, _, _), (_, _, own, _, _) in stats.stats.items():
        path = Path(file).resolve()
        if path.is_relative_to(_ROOT):
            name = str(path.relative_to(_ROOT))
        else:
            name = "numpy's Python" if "numpy" in file else "built in" if file == "~" else "Python's library"
        spent[name] += own
    total = sum(spent.values())
    return {name: own / total for name, own in spent.most_common(_SHOWN)}


def measure(name: str, compiled: Callable[[], accel.Program], profile: bool) -> dict[str, Any]:
    clock = _Clock(profile)
    program = clock.run("compile", compiled)
    instructions, config = program.instructions, program.config
    clock.run("check", lambda: check_program(program))  # program.check() would return the build's report
    timing = clock.run("timing", lambda: simulate_timing(instructions, config, address=program.code_offset))
    dram, pads = program.dram(), Scratchpads.random(config, 0)
    clock.run(
        "function",
        lambda: simulate(instructions, config, dram, pads, address=program.code_offset, timed=False),
    )
    # a build includes a token check
    clock.seconds["compile"] -= clock.seconds["check"]
    return {
        "name": name,
        "instructions": len(instructions),
        "cycles": timing.cycles,
        "seconds": clock.seconds,
        "profile": clock.profiles,
    }


def rows(largest: int, profile: bool) -> list[dict[str, Any]]:
    machine = accel.machine("gemm8x8")
    found = []
    for size in SIZES:
        if size <= largest:
            workload = accel.gemm(size, size, size, shift=12)
            found.append(measure(f"{size}^3", lambda w=workload: accel.build(w, machine), profile))
    schedule = one_block_per_copy(256, machine)
    found.append(measure("one block per copy", lambda: accel.build(schedule, machine), profile))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    options = parser.parse_args()
    found = rows(options.largest, options.profile)
    if options.json:
        print(json.dumps({"rows": found}, indent=2))
        return
    header = f"{'':<19}{'instructions':>13}{'cycles':>13}" + "".join(f"{step + ' s':>12}" for step in STEPS)
    print(header + "".join(f"{step + ' us/i':>15}" for step in STEPS))
    for row in found:
        line = f"{row['name']:<19}{row['instructions']:>13,}{row['cycles']:>13,}"
        line += "".join(f"{row['seconds'][step]:>12.3f}" for step in STEPS)
        line += "".join(f"{row['seconds'][step] / row['instructions'] * 1e6:>15.1f}" for step in STEPS)
        print(line)
    for row in found:
        for step, shares in row["profile"].items():
            words = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
            print(f"{row['name']:<19} {step:<9} {words}")


if __name__ == "__main__":
    main()
