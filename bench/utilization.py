"""Measure how close matrix products come to the GEMM core's limit, by epilogue and by number of threads.

    python bench/utilization.py [--config NAME] [--size M N K] [--json]

| column | program |
|---|---|
| serial | the machine dispatches an instruction only after the previous one has retired |
| V = 1 | decoupled, with one buffer set |
| V = 2, V = 4 | decoupled, with virtual threads |

Each uses the default schedule, ``serial`` that of V = 1. The bound is the share of GEMM in the compute unit's
slots, without stalls. The reset, the shift and both clips each take a pass over the accumulators, and so does
a bias outside of the reset.
"""

import argparse
import json
from typing import Any

import accel
from accel.compiler.plans.gemm_model import gemm_shape

EPILOGUES: dict[str, dict[str, Any]] = {
    "none": {},
    "shift, saturation": {"shift": 12},
    "bias, shift, saturation": {"shift": 12, "bias": True},
    "bias, shift, ReLU": {"shift": 12, "bias": True, "relu": True},
}
MODES = ("serial", "V = 1", "V = 2", "V = 4")


def rows(config: str, sizes: tuple[int, int, int]) -> list[dict[str, Any]]:
    machine = accel.machine(config)
    found = []
    for epilogue, options in EPILOGUES.items():
        workload = accel.gemm(*sizes, **options)
        shape = gemm_shape(workload, machine.config)
        for mode in MODES:
            threads = 1 if mode == "serial" else int(mode.rpartition(" ")[2])
            program = accel.build(workload, machine, vthreads=threads)
            if mode == "serial":
                program = program.with_timing(machine.config.override({"serial": 1}))
            result = program.run()
            result.raise_if_wrong()
            found.append(
                {
                    "epilogue": epilogue,
                    "mode": mode,
                    "cycles": result.cycles,
                    "utilization": result.utilization,
                    "bound": shape.depth / (shape.depth + shape.passes),
                    "instructions": len(program.instructions),
                    "compile_seconds": program.compile_seconds,
                    "simulate_seconds": result.simulate_seconds,
                }
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config", default="gemm8x8")
    parser.add_argument("--size", type=int, nargs=3, default=(1024, 1024, 1024), metavar=("M", "N", "K"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = rows(options.config, tuple(options.size))
    if options.json:
        print(json.dumps({"rows": found}, indent=2))
        return
    print(
        f"{'epilogue':<26}{'mode':<8}{'cycles':>12}{'utilization':>13}{'bound':>8}{'of bound':>10}"
        f"{'instructions':>14}{'compile s':>11}{'simulate s':>12}"
    )
    for row in found:
        print(
            f"{row['epilogue']:<26}{row['mode']:<8}{row['cycles']:>12,}{row['utilization']:>13.4f}"
            f"{row['bound']:>8.4f}{row['utilization'] / row['bound']:>10.1%}{row['instructions']:>14,}"
            f"{row['compile_seconds']:>11.3f}{row['simulate_seconds']:>12.3f}"
        )


if __name__ == "__main__":
    main()
