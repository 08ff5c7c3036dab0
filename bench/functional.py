"""Measure micro-ops per second, next to a plain C++ loop over the same micro-ops.

    python bench/functional.py [--vectors DIR] [--json] [--repeat 5]

| program | |
|---|---|
| a convolution layer | a matrix product of 3136 x 64 x 576 on ``vta``, as our compiler emits it |
| the same number of micro-ops with random indices | no pattern helps |
| the vector with the most micro-ops | from another VTA compiler |

Columns are seconds of functional execution, without and with the timing model. The C++ loop, compiled by
``g++ -O2``, executes only the GEMM micro-ops, without memory, ALU or checks. The fastest of several runs
counts.
"""

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import accel
from accel.core.config import PAGE_BYTES
from accel.core.instruction_access import loop_shape
from accel.core.isa import Finish, Gemm, Instruction, Load, Loops, Memory, decode_uops, encode, encode_uops
from accel.proof.uop_memory import UopMemory
from accel.run.replay import find_programs, load_any
from accel.sim.functional.micro_op_patterns import all_indices
from accel.sim.functional.scratchpads import Scratchpads

LAYER = (3136, 64, 576)
"""M, N and K of a 3x3 convolution with 64 channels on a 56 x 56 image."""

CPP = r"""
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

template <class T> std::vector<T> all(const char* path) {
    std::FILE* file = std::fopen(path, "rb");
    std::fseek(file, 0, SEEK_END);
    std::vector<T> data(std::ftell(file) / sizeof(T));
    std::rewind(file);
    if (std::fread(data.data(), sizeof(T), data.size(), file) != data.size()) return {};
    std::fclose(file);
    return data;
}

struct Uop { int32_t dst, src, wgt; };

int main(int, char** argv) {
    auto uops = all<Uop>(argv[1]);
    auto inp = all<int8_t>(argv[2]);
    auto wgt = all<int8_t>(argv[3]);
    auto acc = all<int32_t>(argv[4]);
    auto begin = std::chrono::steady_clock::now();
    for (const Uop& u : uops)
        for (int b = 0; b < BATCH; ++b)
            for (int o = 0; o < OUT; ++o) {
                int32_t sum = 0;
                for (int k = 0; k < IN; ++k)
                    sum += inp[(u.src * BATCH + b) * IN + k] * wgt[(u.wgt * OUT + o) * IN + k];
                acc[(u.dst * BATCH + b) * OUT + o] += sum;
            }
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    int32_t check = 0;
    for (int32_t value : acc) check ^= value;
    std::printf("%.9f %d\n", seconds.count(), check);
}
"""


def compiled() -> accel.Program:
    return accel.build(accel.gemm(*LAYER, shift=8), "vta")


def patternless(count: int) -> accel.Program:
    """Return a program with random indices, in which no two instructions are equal."""
    config = accel.machine("vta").config
    rng = np.random.default_rng(0)
    depths = (config.acc_depth, config.inp_depth, config.wgt_depth)
    instructions: list[Instruction] = []
    words = []
    for begin in range(0, count, config.uop_depth):
        size = min(config.uop_depth, count - begin)
        columns = [rng.integers(0, depth, size) for depth in depths]
        words.append(encode_uops(np.stack(columns, axis=1), config).astype("<u4").tobytes())
        instructions.append(Load(memory=Memory.UOP, dram_base=begin, y_size=1, x_size=size, x_stride=size))
        instructions.append(Gemm(uop_end=size))
    instructions.append(Finish())
    data = b"".join(words)
    offset = -(-len(data) // PAGE_BYTES) * PAGE_BYTES
    code = encode(instructions, config)
    return accel.Program(config=config, code=code, code_offset=offset, segments=((0, data),))


def uop_count(program: accel.Program) -> int:
    return sum(one.uop_count for one in program.instructions if isinstance(one, Loops))


def largest(folder: str) -> Path:
    return max(find_programs([Path(folder)]), key=lambda path: uop_count(load_any(path)))


def gemm_indices(program: accel.Program) -> npt.NDArray[np.int32]:
    """Return dst, src and wgt of every GEMM micro-op."""
    memory = UopMemory(program.config, program.dram())
    found = [np.zeros((0, 3), dtype=np.int64)]
    for instruction in program.instructions:
        memory.load(instruction)
        if isinstance(instruction, Gemm) and not instruction.reset and instruction.uop_count:
            words = memory.words(instruction)
            assert words is not None
            uops = decode_uops(words, program.config)
            found.append(all_indices(uops, loop_shape(instruction, program.config), 0, instruction.uop_count))
    return np.concatenate(found).astype(np.int32)


def plain_loop(program: accel.Program, repeat: int) -> tuple[int, float] | None:
    """Return micro-ops and seconds, or None without g++."""
    if shutil.which("g++") is None:
        return None
    config, indices = program.config, gemm_indices(program)
    pads = Scratchpads.random(config, 0)
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder) / "loop.cpp", Path(folder) / "loop"
        source.write_text(CPP)
        sizes = {"BATCH": config.batch, "IN": config.block_in, "OUT": config.block_out}
        defines = [f"-D{name}={value}" for name, value in sizes.items()]
        subprocess.run(["g++", "-O2", *defines, str(source), "-o", str(binary)], check=True)
        files = []
        for name, array in (("uops", indices), ("inp", pads.inp), ("wgt", pads.wgt), ("acc", pads.acc)):
            files.append(str(Path(folder) / name))
            Path(files[-1]).write_bytes(np.ascontiguousarray(array).tobytes())
        runs = [subprocess.run([str(binary), *files], check=True, capture_output=True) for _ in range(repeat)]
    return len(indices), min(float(run.stdout.split()[0]) for run in runs)


def measure(name: str, program: accel.Program, repeat: int) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": name,
        "instructions": len(program.instructions),
        "uops": uop_count(program),
    }
    for backend in ("functional", "sim"):
        seconds = []
        for _ in range(repeat):
            ready, dram = program.prepared()
            pads = Scratchpads.random(program.config, 0)
            begin = time.perf_counter()
            ready.execute(dram, pads, backend=backend).raise_if_bad()
            seconds.append(time.perf_counter() - begin)
        row[f"{backend}_seconds"] = min(seconds)
        row[f"{backend}_uops_per_second"] = row["uops"] / min(seconds)
    plain = plain_loop(program, repeat)
    row["plain_uops"], row["plain_seconds"] = plain or (None, None)
    row["plain_uops_per_second"] = None if plain is None else plain[0] / max(plain[1], 1e-9)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vectors", metavar="DIR", help="folder of conformance vectors")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    layer = compiled()
    programs = {"layer on vta": layer, "no patterns": patternless(uop_count(layer))}
    if options.vectors:
        path = largest(options.vectors)
        programs[path.name] = load_any(path)
    found = [measure(name, program, options.repeat) for name, program in programs.items()]
    if options.json:
        print(json.dumps({"rows": found}, indent=2))
        return
    print(f"{'':<18} {'instructions':>12} {'micro-ops':>10} {'function s':>11} {'M uop/s':>8}", end="")
    print(f" {'timed s':>9} {'M uop/s':>8} {'C++ s':>9} {'M uop/s':>8}")
    for row in found:
        print(f"{row['name']:<18} {row['instructions']:>12,} {row['uops']:>10,}", end="")
        for kind, width in (("functional", 12), ("sim", 10), ("plain", 10)):
            seconds, rate = row[f"{kind}_seconds"], row[f"{kind}_uops_per_second"]
            both = (
                f"{'-':>{width}} {'-':>8}" if seconds is None else f"{seconds:>{width}.5f} {rate / 1e6:>8.2f}"
            )
            print(both, end="")
        print()


if __name__ == "__main__":
    main()
