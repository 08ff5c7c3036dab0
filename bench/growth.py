"""How the cost of compiling and simulating grows with size.

    python bench/growth.py [--json] [--profile STEP] [--largest N]

Rows: matrix products N x N x N on gemm8x8 with the default schedule, and one of about 100,000 instructions
(a 256 x 256 x 256 product of one tile per copy). Columns: seconds for compiling, the token check, the timing
model and functional execution, and each of them per instruction. All rows come from one run on one machine;
what counts is how they compare.
"""

import argparse
import cProfile
import json
import pstats
import time
from collections.abc import Callable
from typing import Any

import accel
from accel import te
from accel.compiler.build import compile_schedule
from accel.compiler.default import default_schedule
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.simulator import simulate
from accel.sim.timing.model import simulate_timing

SIZES = (256, 512, 1024, 2048, 4096)
STEPS = ("compile", "check", "timing", "function")


def one_tile_per_copy(size: int, machine: accel.Machine) -> te.Schedule:
    """The schedule of the published listing, which has the most instructions for its size."""
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


def measure(name: str, make: Callable[[], accel.Program], profile: str | None) -> dict[str, Any]:
    """Seconds of each step for one program."""
    profiler = cProfile.Profile()

    def timed(step: str, action: Callable[[], Any]) -> tuple[float, Any]:
        if step == profile:
            profiler.enable()
        begin = time.perf_counter()
        result = action()
        seconds = time.perf_counter() - begin
        if step == profile:
            profiler.disable()
        return seconds, result

    compile_seconds, program = timed("compile", make)
    instructions = program.instructions
    check_seconds, _ = timed("check", program.check)
    timing_seconds, timing = timed(
        "timing", lambda: simulate_timing(instructions, program.config, address=program.code_offset)
    )
    dram = program.dram()
    pads = Scratchpads.random(program.config, 0)
    function_seconds, _ = timed(
        "function",
        lambda: simulate(instructions, program.config, dram, pads, address=program.code_offset, timed=False),
    )
    if profile is not None:
        print(f"--- {name}: {profile}")
        pstats.Stats(profiler).sort_stats("tottime").print_stats(12)
    seconds = dict(
        zip(STEPS, (compile_seconds, check_seconds, timing_seconds, function_seconds), strict=True)
    )
    return {"name": name, "instructions": len(instructions), "cycles": timing.cycles, "seconds": seconds}


def rows(largest: int, profile: str | None) -> list[dict[str, Any]]:
    """All measurements."""
    machine = accel.machine("gemm8x8")
    found = []
    for size in SIZES:
        if size <= largest:
            workload = accel.gemm(size, size, size, shift=12)
            found.append(measure(f"{size}^3", lambda w=workload: _compiled(w, machine), profile))
    schedule = one_tile_per_copy(256, machine)
    found.append(measure("one tile per copy", lambda: _from_schedule(schedule, machine), profile))
    return found


def _compiled(workload: accel.Workload, machine: accel.Machine) -> accel.Program:
    return _from_schedule(default_schedule(workload, machine), machine)


def _from_schedule(schedule: te.Schedule, machine: accel.Machine) -> accel.Program:
    image = compile_schedule(schedule, machine.config)
    return accel.Program(**{name: getattr(image, name) for name in image.__dataclass_fields__})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--profile", choices=STEPS)
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    options = parser.parse_args()
    found = rows(options.largest, options.profile)
    if options.json:
        print(json.dumps({"rows": found}, indent=2))
        return
    header = f"{'':<18} {'instructions':>12} {'cycles':>12}" + "".join(f"{step + ' s':>12}" for step in STEPS)
    print(header + "".join(f"{step + ' us/i':>14}" for step in STEPS))
    for row in found:
        line = f"{row['name']:<18} {row['instructions']:>12,} {row['cycles']:>12,}"
        line += "".join(f"{row['seconds'][step]:>12.3f}" for step in STEPS)
        line += "".join(f"{row['seconds'][step] / row['instructions'] * 1e6:>14.1f}" for step in STEPS)
        print(line)


if __name__ == "__main__":
    main()
