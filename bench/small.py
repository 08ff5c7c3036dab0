"""Measure the time to check and simulate programs of many small instructions.

    python bench/small.py [--instructions 10000,100000,1000000] [--json]

Each program is a matrix product on ``gemm8x8`` with LOAD, LOAD and GEMM for each product of 8 x 8 blocks.
Each size runs in its own process.

Columns are processor seconds for decoding, the token check, timing, function and the report's figures, then
microseconds per instruction in total and relative to the first size, and bytes of memory per instruction.
"""

import argparse
import json
import multiprocessing
import resource
import time
from typing import Any

import numpy as np

import accel
from accel.core.config import PAGE_BYTES
from accel.core.isa import Finish, Gemm, Instruction, Load, Memory, Store, encode, encode_uops
from accel.proof.check_program import check_program
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.simulator import simulate
from accel.sim.timing.timing_model import simulate_timing

STEPS = ("decode", "check", "timing", "function", "figures")
KIB = 1024
SEED = 0


def product(blocks: int) -> accel.Program:
    """Return the product of two square matrices of ``blocks`` a side, which follow each other in DRAM."""
    config = accel.machine("gemm8x8").config
    element = config.inp_element_bytes
    first = PAGE_BYTES // element
    """First block of the first matrix, in elements. The micro-ops lie before it."""
    count = blocks * blocks
    block: dict[str, Any] = {"y_size": 1, "x_size": 1, "x_stride": 1}
    left = [Load(memory=Memory.INP, dram_base=first + n, pop_next=True, **block) for n in range(count)]
    right = [
        Load(memory=Memory.WGT, dram_base=first + count + n, push_next=True, **block) for n in range(count)
    ]
    results = [
        Store(dram_base=first + 2 * count + n, pop_prev=True, push_prev=True, **block) for n in range(count)
    ]
    reset = Gemm(reset=True, uop_end=1, pop_next=True)
    step = Gemm(uop_end=1, pop_prev=True, push_prev=True)
    last = Gemm(uop_end=1, pop_prev=True, push_prev=True, push_next=True)
    body: list[Instruction] = [Load(memory=Memory.UOP, **block)]
    for i in range(blocks):
        for j in range(blocks):
            body.append(reset)
            for k in range(blocks):
                body += (left[i * blocks + k], right[j * blocks + k], step if k < blocks - 1 else last)
            body.append(results[i * blocks + j])
    body.append(Finish())
    body[1] = Gemm(reset=True, uop_end=1)
    body[2] = Load(memory=Memory.INP, dram_base=first, **block)
    distinct = list({id(one): one for one in body}.values())
    coded = encode(distinct, config)
    words = {id(one): coded[16 * n : 16 * n + 16] for n, one in enumerate(distinct)}
    data = np.random.default_rng(SEED).integers(0, 256, 2 * count * element, dtype=np.uint8).tobytes()
    offset = -(-(first + 3 * count) * element // PAGE_BYTES) * PAGE_BYTES
    return accel.Program(
        config=config,
        code=b"".join(words[id(one)] for one in body),
        code_offset=offset,
        segments=((0, encode_uops([(0, 0, 0)], config).tobytes()), (first * element, data)),
    )


def blocks_for(instructions: int) -> int:
    return max(1, round((instructions / 3) ** (1 / 3)))


def measure(instructions: int) -> dict[str, Any]:
    """Return the figures of one size, in a fresh process."""
    measure_program(product(2))  # imports, and caches for the machine
    program = product(blocks_for(instructions))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = measure_program(program)
    used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * KIB
    return found | {"bytes_per_instruction": used / found["instructions"]}


def measure_program(program: accel.Program) -> dict[str, Any]:
    config, address = program.config, program.config.mem_base + program.code_offset
    dram, pads = program.dram(), Scratchpads.random(program.config, SEED)
    marks = [time.process_time()]
    decoded = program.instructions
    marks.append(time.process_time())
    check_program(program).raise_if_bad()
    marks.append(time.process_time())
    timing = simulate_timing(decoded, config, address=address)
    marks.append(time.process_time())
    simulate(decoded, config, dram, pads, address=address, timed=False).raise_if_bad()
    marks.append(time.process_time())
    assert timing.unit_cycles
    marks.append(time.process_time())
    seconds = dict(zip(STEPS, np.diff(marks).tolist(), strict=True))
    return {"instructions": len(decoded), "cycles": timing.cycles, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--instructions", default="10000,100000,1000000", help="sizes, separated by commas")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    for size in map(int, options.instructions.split(",")):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            row = pool.apply(measure, (size,))
        each = sum(row["seconds"].values()) / row["instructions"]
        base = rows[0]["seconds_per_instruction"] if rows else each
        rows.append(row | {"seconds_per_instruction": each, "ratio": each / base})
    if options.json:
        print(json.dumps({"rows": rows}, indent=2))
        return
    head = "".join(f"{step + ' s':>12}" for step in STEPS)
    print(f"{'instructions':>12}{'cycles':>12}{head}{'us each':>9}{'ratio':>7}{'bytes each':>12}")
    for row in rows:
        line = f"{row['instructions']:>12,}{row['cycles']:>12,}"
        line += "".join(f"{row['seconds'][step]:>12.3f}" for step in STEPS)
        line += f"{row['seconds_per_instruction'] * 1e6:>9.2f}{row['ratio']:>7.2f}"
        print(line + f"{row['bytes_per_instruction']:>12,.0f}")


if __name__ == "__main__":
    main()
