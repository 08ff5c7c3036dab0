"""Compile and run ONNX or TensorFlow Lite models, and print one row of a table for each.

    python bench/models.py MODEL... [--machine vta-int8]

Inputs are random: float32 from -1 to 1, indices 0 or 1. The columns: whether all outputs equal ONNX Runtime's
with all optimizations, and otherwise the largest difference relative to the largest value and that between
ONNX Runtime's own modes; programs, share of MACs on the machine, cycles, and seconds to compile.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.progress import track

from accel.base.errors import AccelError
from accel.formats.onnx_runtime import run_onnx_runtime, run_optimized
from accel.network.model_files import is_tflite
from accel.network.network import read_network

Arrays = Mapping[str, npt.NDArray[Any]]


def distance(found: Arrays, wanted: Arrays) -> float:
    """Return the largest difference of an output, relative to its largest value."""
    most = 0.0
    for name, values in wanted.items():
        exact = values.astype(np.float64)
        difference = np.abs(found[name].astype(np.float64) - exact).max(initial=0)
        most = max(most, float(difference / max(np.abs(exact).max(initial=0), 1e-30)))
    return most


def row(path: Path, machine: str) -> str:
    network = read_network(path)
    program = network.build(machine)
    inputs = program.random_inputs()
    result = program.run(inputs)
    equal = "not compared"
    if not is_tflite(path):
        content, names = path.read_bytes(), list(result.outputs)
        wanted, _ = run_optimized(content, inputs, names)
        difference = distance(result.outputs, wanted)
        modes = distance(run_onnx_runtime(content, inputs, names), wanted)
        equal = "yes" if not difference else f"within {difference:.1g} ({modes:.1g})"
    kinds = len(program.chains), f"{program.machine_share:.2%} of {program.macs:,}"
    cycles = "" if result.cycles is None else f"{result.cycles:,}"
    seconds = f"{program.compile_seconds or 0:.1f}"
    wrong = f", {result.wrong} values wrong" if result.wrong else ""
    return f"| {path.stem} | {equal}{wrong} | {kinds[0]} | {kinds[1]} | {cycles} | {seconds} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--machine", default="vta-int8")
    chosen = parser.parse_args()
    rows = [
        "| model | equal | programs | MACs on the machine | cycles | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for path in track(chosen.models, "models"):
        try:
            rows.append(row(path, chosen.machine))
        except AccelError as error:
            rows.append(f"| {path.stem} | {error} | | | | |")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
