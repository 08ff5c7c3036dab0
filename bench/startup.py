"""Measure whole processes: imports, reading a model, compiling it, compiling it again, and running.

    python bench/startup.py [MODEL ...] [--config NAME] [--repeat N] [--python PATH] [--json]

Seconds are processor time of the process and its children, the least of ``--repeat`` runs. Every run of a row
is a new process. ``compile`` has no cache, ``again`` reads the cache that the run before it has filled.
``--python`` is another interpreter, for example one with an earlier release. The row of a command that fails
is empty.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from accel.network.digits import MODEL


def processor_seconds(command: Sequence[str], environment: Mapping[str, str], repeat: int) -> float | None:
    """Return the least processor seconds of a command, or None if it fails."""
    found = []
    for _ in range(repeat):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            return None
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def measure(models: Sequence[Path], config: str, python: str, repeat: int) -> dict[str, float | None]:
    accel = [python, "-m", "accel"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "ACCEL_CACHE": str(Path(folder, "cache"))}
        without = {**environment, "ACCEL_CACHE": "off"}
        program, network = str(Path(folder, "gemm.accel")), str(Path(folder, "network.accel"))
        gemm = ["compile", "gemm", "-m", "64", "-n", "64", "-k", "64", "--shift", "8", "-o", program]
        rows = {
            "import accel": ([python, "-c", "import accel"], without),
            "accel --help": ([*accel, "--help"], without),
            "accel compile gemm, 64 x 64 x 64": ([*accel, *gemm], without),
            "accel run, 64 x 64 x 64": ([*accel, "run", program], without),
        }
        for model in models:
            name = f"{model.parent.name}/{model.name}"
            onnx = [*accel, "compile", "onnx", str(model), "--config", config, "-o", network]
            load = "accel.load_tflite" if model.suffix == ".tflite" else "accel.load_onnx"
            rows[f"read {name}"] = ([python, "-c", f"import accel; {load}({str(model)!r})"], without)
            rows[f"compile {name}"] = (onnx, without)
            rows[f"again {name}"] = (onnx, environment)
        found = {}
        for name, (command, variables) in rows.items():
            if name.startswith("again"):
                subprocess.run(command, env=variables, capture_output=True, check=False)
            found[name] = processor_seconds(command, variables, repeat)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", type=Path, default=[MODEL], metavar="MODEL")
    parser.add_argument("--config", default="vta-int8")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.models, options.config, options.python, options.repeat)
    if options.json:
        print(json.dumps({"seconds": found}, indent=2))
        return
    for name, seconds in found.items():
        print(f"{name:<60}{'' if seconds is None else f'{seconds:8.2f}'}")


if __name__ == "__main__":
    main()
