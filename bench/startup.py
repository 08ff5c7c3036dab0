"""Measure whole processes: imports, reading a model, compiling it, compiling it again, and running.

    python bench/startup.py [MODEL ...] [--config NAME] [--repeat N] [--before PYTHON] [--vela PATH] [--json]

Seconds are processor time of the process and its children on one core, the least of ``--repeat`` runs, and in
the rows "elapsed" what a clock shows with all cores. Every run is a new process. ``compile`` has no cache,
``again`` reads a cache that an earlier run has filled. The cell of a command that fails is empty.

``--before`` is an interpreter with an earlier release or commit. Its runs and those of this one take turns,
so that the ratio of the two is meaningful on a machine that others use. ``--vela`` is the compiler of Arm's
Ethos-U, for models of TensorFlow Lite; its programs are for another accelerator.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from accel.network.digits import MODEL

NOW, BEFORE, VELA = "now", "before", "vela"


@dataclass(frozen=True, kw_only=True)
class Process:
    """A command to measure.

    Attributes:
        uses_cache: whether it runs once before, to fill the cache.
        has_all_cores: whether it may use all cores, and its time is measured by a clock.
    """

    row: str
    column: str
    command: Sequence[str]
    environment: Mapping[str, str]
    uses_cache: bool = False
    has_all_cores: bool = False

    def run(self) -> bool:
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores if self.has_all_cores else {min(cores)})  # children inherit it
        done = subprocess.run(self.command, env=self.environment, capture_output=True, check=False)
        os.sched_setaffinity(0, cores)
        return not done.returncode

    def seconds(self) -> float | None:
        """Return None if the command fails."""
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        if not self.run():
            return None
        if self.has_all_cores:
            return time.perf_counter() - begin
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def processes(
    models: Sequence[Path], config: str, column: str, python: str, folder: Path
) -> Iterator[Process]:
    """Iterate over the processes of one interpreter.

    Args:
        folder: for files and the cache of this interpreter.
    """
    accel = [python, "-m", "accel"]
    safe = {"PYTHONSAFEPATH": "1"}  # the interpreter's accel, not that of the working directory
    environment = {**os.environ, **safe, "ACCEL_CACHE": str(folder / "cache")}
    without = {**environment, "ACCEL_CACHE": "off"}
    program, network = str(folder / "gemm.accel"), str(folder / "network.accel")
    gemm = ["compile", "gemm", "-m", "64", "-n", "64", "-k", "64", "--shift", "8", "-o", program]
    rows = {
        "import accel": [python, "-c", "import accel"],
        "accel --help": [*accel, "--help"],
        "accel compile gemm, 64 x 64 x 64": [*accel, *gemm],
        "accel run, 64 x 64 x 64": [*accel, "run", program],
    }
    for row, command in rows.items():
        yield Process(row=row, column=column, command=command, environment=without)
    for model in models:
        name = model_name(model)
        onnx = [*accel, "compile", "onnx", str(model), "--config", config, "-o", network]
        load = "accel.load_tflite" if model.suffix == ".tflite" else "accel.load_onnx"
        read = [python, "-c", f"import accel; {load}({str(model)!r})"]
        yield Process(row=f"read {name}", column=column, command=read, environment=without)
        yield Process(row=f"compile {name}", column=column, command=onnx, environment=without)
        yield Process(
            row=f"compile {name}, elapsed",
            column=column,
            command=onnx,
            environment=without,
            has_all_cores=True,
        )
        yield Process(
            row=f"again {name}", column=column, command=onnx, environment=environment, uses_cache=True
        )


def vela_processes(models: Sequence[Path], vela: str, folder: Path) -> Iterator[Process]:
    """Iterate over the compilations of TensorFlow Lite's models by Vela."""
    for model in models:
        if model.suffix == ".tflite":
            command = [vela, str(model), "--output-dir", str(folder)]
            row = f"compile {model_name(model)}"
            yield Process(row=row, column=VELA, command=command, environment=os.environ)


def model_name(model: Path) -> str:
    return f"{model.parent.name}/{model.name}"


def measure(every: Sequence[Process], repeat: int) -> dict[str, dict[str, float | None]]:
    """Return the least seconds by row and column. The columns of a row take turns."""
    found: dict[str, dict[str, float | None]] = {}
    rows: dict[str, list[Process]] = {}
    for one in every:
        rows.setdefault(one.row, []).append(one)
    for row, columns in rows.items():
        for one in columns:
            if one.uses_cache:
                one.run()
        runs = [(one.column, one.seconds()) for _ in range(repeat) for one in columns]
        found[row] = {
            one.column: min((s for column, s in runs if column == one.column and s is not None), default=None)
            for one in columns
        }
    return found


def table(found: Mapping[str, Mapping[str, float | None]], columns: Sequence[str]) -> Iterator[str]:
    """Iterate over the lines of a table in Markdown."""
    yield "| process | " + " | ".join(f"{one}, s" for one in columns) + " | ratio |"
    yield "|---|" + "---:|" * (len(columns) + 1)
    for row, seconds in found.items():
        cells = ["" if seconds.get(one) is None else f"{seconds[one]:.2f}" for one in columns]
        now, before = seconds.get(NOW), seconds.get(BEFORE)
        ratio = "" if now is None or not before else f"{now / before:.2f}"
        yield f"| {row} | {' | '.join(cells)} | {ratio} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", type=Path, default=[MODEL], metavar="MODEL")
    parser.add_argument("--config", default="vta-int8")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--before", metavar="PYTHON", help="an interpreter with an earlier release")
    parser.add_argument("--vela", metavar="PATH", help="the command 'vela'")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    columns = {} if options.before is None else {BEFORE: options.before}
    columns[NOW] = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        every: list[Process] = []
        for column, python in columns.items():
            own = Path(folder, column)
            own.mkdir()
            every += processes(options.models, options.config, column, python, own)
        if options.vela is not None:
            every += vela_processes(options.models, options.vela, Path(folder))
        found = measure(every, options.repeat)
    if options.json:
        print(json.dumps({"seconds": found}, indent=2))
        return
    shown = [*columns, *([] if options.vela is None else [VELA])]
    print(*table(found, shown), sep="\n")


if __name__ == "__main__":
    main()
