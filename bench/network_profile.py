"""Measure where the compilation of a network spends its time.

    python bench/network_profile.py MODEL.onnx [...] [--config NAME] [--json]

Each model is compiled in a new process without the cache. Seconds are processor time. A step that runs within
another one counts for the inner one only, so the steps sum up to the process.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

from accel.__main__ import GC_THRESHOLDS
from accel.base.result_cache import OFF, VARIABLE
from accel.network.model_files import DEFAULT_MACHINE

STEPS = {
    "choice of plans": ("accel.compiler.plans.planner", "_find"),
    "nests and their passes": ("accel.compiler.codegen.compile_schedule", "run_passes"),
    "instructions": ("accel.compiler.codegen.compile_schedule", "Emission"),
    "reordering": ("accel.compiler.codegen.compile_schedule", "reorder"),
    "tokens and encoding of layers": ("accel.compiler.codegen.compile_schedule", "linked_stream"),
    "dependences of the chain": ("accel.network.chain_waits", "_dependences"),
    "simulation of token strategies": ("accel.network.chain_waits", "simulate_timing"),
    "proof": ("accel.run.program", "check_program"),
}
"""Steps with the module that calls them, and their names there."""


class Clock:
    """Processor seconds by step. The innermost step counts."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._steps: list[str] = []
        self._since = 0.0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self._count()
        self._steps.append(name)
        yield
        self._count()
        self._steps.pop()

    def _count(self) -> None:
        now = time.process_time()
        if self._steps:
            name = self._steps[-1]
            self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since
        self._since = now

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            with self.step(name):
                return function(*arguments, **options)

        return call


def profile(model: Path, config: str) -> dict[str, float]:
    """Compile a model in this process, which has only just begun, and return the seconds of each step."""
    gc.set_threshold(*GC_THRESHOLDS)
    clock = Clock()
    clock.seconds["start of Python, numpy"] = time.process_time()
    with clock.step("imports"):
        import_module("accel.network.network_build")
        import_module("accel.formats.onnx_import")
    network_module = import_module("accel.network.network")
    with clock.step("reading of the model"):
        network = network_module.read_network(model)
    patches = [
        patch.object(import_module(module), name, clock.timed(step, getattr(import_module(module), name)))
        for step, (module, name) in STEPS.items()
    ]
    with clock.step("all other"):
        for one in patches:
            one.start()
        network.build(config)
    return clock.seconds


def measure(model: Path, config: str) -> dict[str, float]:
    """Return the seconds of each step of compiling a model in a new process."""
    script = (
        f"import json, runpy; found = runpy.run_path({__file__!r}); from pathlib import Path; "
        f"print(json.dumps(found['profile'](Path({str(model)!r}), {config!r})))"
    )
    environment = os.environ | {VARIABLE: OFF}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.strip().splitlines()[-1])
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--config", default=DEFAULT_MACHINE)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {f"{model.parent.name}/{model.name}": measure(model, options.config) for model in options.models}
    if options.json:
        print(json.dumps({"config": options.config, "seconds": found}, indent=2))
        return
    steps = list(dict.fromkeys(step for seconds in found.values() for step in seconds))
    print("| step | " + " | ".join(found) + " |")
    print("|---|" + "---:|" * len(found))
    for step in steps:
        print(f"| {step} | " + " | ".join(f"{seconds.get(step, 0):.2f}" for seconds in found.values()) + " |")
    print("| sum | " + " | ".join(f"{sum(seconds.values()):.2f}" for seconds in found.values()) + " |")


if __name__ == "__main__":
    main()
