"""Compare the planner's default with the optimum of its own space, which is simulated in full.

    python bench/plan_optimum.py [--machine NAME] [--layer TEXT] [--journal FILE] [--jobs N] [--json]

Each of 40 small layers is compiled for each of five machines. Every plan of the planner's space is simulated,
except those that a lower bound excludes: a plan takes at least one cycle for each beat that it reads, and at
least one for each slot of the compute unit. So the optimum is exact.

| column | meaning |
|---|---|
| plans | plans of the space, and how many of them are simulated |
| default, optimum | simulated cycles |
| loss | cycles of the default beyond the optimum |

Results go to a journal, where an interrupted run continues.
"""

import argparse
import json
import statistics
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import accel
from accel.base.records import as_dict
from accel.compiler.codegen.compile_schedule import compile_schedule
from accel.compiler.operators.default_schedule import find_candidates, planner_of
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.plan_candidate import Candidate
from accel.run.measured_plans import simulated_cycles

MACHINES = ("tiny", "vta", "gemm8x8", "ecp5-int8", "vta-npu")


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer whose channels are counted in blocks of the machine, so that spaces have similar sizes.

    Attributes:
        inputs, outputs: input and output channels in blocks. Those of ``ragged`` layers are three fewer.
        rows: rows of a product, or 0 for windows.
        size, kernel, stride: of pictures and windows.
    """

    operator: str
    inputs: int
    outputs: int
    rows: int = 0
    size: int = 0
    kernel: int = 1
    stride: int = 1
    is_ragged: bool = False
    is_depthwise: bool = False

    @property
    def name(self) -> str:
        ragged = ", ragged" if self.is_ragged else ""
        if self.operator == "gemm":
            return f"gemm {self.rows}, {self.inputs} to {self.outputs}{ragged}"
        what = "max" if self.operator == "max_pool2d" else "depthwise" if self.is_depthwise else "conv"
        window = f"{self.kernel}x{self.kernel} by {self.stride}"
        return f"{what} {self.size}x{self.size}, {window}, {self.inputs} to {self.outputs}{ragged}"

    def workload(self, config: accel.Config) -> Workload:
        """Return the layer with the usual epilogue of a machine: a shift, or a scale with ``post=1``."""
        inputs = self.inputs * config.block_in - 3 * self.is_ragged
        outputs = self.outputs * config.block_out - 3 * self.is_ragged
        if self.operator == "max_pool2d":
            return accel.max_pool2d(1, outputs, self.size, self.size, self.kernel, stride=self.stride)
        epilogue: dict[str, Any] = {"quantized": accel.Quantized(scale=0.01)} if config.post else {"shift": 7}
        if self.operator == "gemm":
            return accel.gemm(self.rows, outputs, inputs, **epilogue)
        window: dict[str, Any] = {"stride": self.stride, "padding": self.kernel // 2}
        if self.is_depthwise:
            inputs, window = outputs, window | {"groups": outputs}
        return accel.conv2d(1, inputs, self.size, self.size, outputs, self.kernel, **window, **epilogue)


def _layers() -> Iterator[Layer]:
    for rows, outputs, inputs in (
        *((8, 1, 1), (16, 1, 2), (16, 2, 1), (8, 2, 2), (4, 2, 3), (1, 4, 4)),
        *((1, 3, 6), (24, 1, 1), (12, 3, 1), (6, 1, 4), (9, 2, 2)),
    ):
        yield Layer(operator="gemm", rows=rows, outputs=outputs, inputs=inputs)
    yield Layer(operator="gemm", rows=5, outputs=2, inputs=2, is_ragged=True)
    for inputs, size, outputs, kernel, stride in (
        *((1, 4, 1, 3, 1), (1, 6, 1, 3, 1), (1, 6, 2, 3, 2), (2, 4, 1, 3, 1), (1, 3, 2, 3, 1)),
        *((1, 8, 1, 3, 2), (1, 5, 1, 5, 1), (1, 7, 1, 5, 2), (2, 3, 2, 3, 1), (1, 6, 1, 7, 1)),
        *((1, 5, 1, 1, 1), (2, 4, 1, 1, 1), (1, 4, 2, 1, 1), (2, 4, 2, 1, 2), (3, 3, 1, 1, 1)),
        (1, 8, 1, 1, 1),
    ):
        yield Layer(
            operator="conv2d", inputs=inputs, size=size, outputs=outputs, kernel=kernel, stride=stride
        )
    yield Layer(operator="conv2d", inputs=1, size=5, outputs=1, kernel=3, is_ragged=True)
    yield Layer(operator="conv2d", inputs=2, size=3, outputs=1, kernel=1, is_ragged=True)
    for blocks, size, stride in ((1, 5, 1), (1, 8, 2), (2, 3, 1)):
        yield Layer(
            operator="conv2d", inputs=blocks, outputs=blocks, size=size, kernel=3, stride=stride,
            is_depthwise=True,
        )  # fmt: skip
    for blocks, size, kernel, stride in (
        *((1, 8, 2, 2), (2, 8, 2, 2), (1, 12, 3, 2), (1, 6, 3, 1), (4, 4, 2, 2), (1, 10, 2, 1)),
        (3, 6, 3, 3),
    ):
        yield Layer(
            operator="max_pool2d", inputs=blocks, outputs=blocks, size=size, kernel=kernel, stride=stride
        )


LAYERS = tuple(_layers())


def compare(layer: Layer, name: str) -> dict[str, Any]:
    """Return the figures of a layer on a machine, or the error of a layer that does not fit."""
    machine = accel.machine(name)
    config = machine.config
    row: dict[str, Any] = {"layer": layer.name, "machine": name}
    try:
        workload = layer.workload(config)
        found = find_candidates(workload, config)
    except accel.AccelError as error:
        return row | {"error": str(error)}
    planner = planner_of(workload)
    features = planner.features(workload, config)
    plans: dict[Any, Candidate[Any]] = {}
    for one in [*found, *planner.enumerate(features, config)]:
        plans.setdefault(one.plan, one)

    def simulate(plan: Any) -> int:
        image = compile_schedule(planner.schedule(workload, machine, plan), config)
        return simulated_cycles(image)

    default = optimum = simulate(found[0].plan)
    best, simulated, failed = found[0].plan, 1, 0
    for one in sorted(plans.values(), key=lambda one: one.prediction.cycles):
        if one.plan == found[0].plan or max(one.read_bytes / config.bus_bytes, slots(features)) >= optimum:
            continue
        try:
            cycles = simulate(one.plan)
        except accel.AccelError:
            failed += 1
            continue
        simulated += 1
        if cycles < optimum:
            optimum, best = cycles, one.plan
    return row | {
        "plans": len(plans),
        "simulated": simulated,
        "failed": failed,
        "default": default,
        "optimum": optimum,
        "default_plan": as_dict(found[0].plan),
        "optimal_plan": as_dict(best),
        "predicted_default": found[0].prediction.cycles,
        "predicted_optimum": plans[best].prediction.cycles,
    }


def slots(features: Any) -> int:
    """Return the slots of the compute unit that every plan needs, or 0 for poolings."""
    return int(getattr(features, "slots", 0))


def differences(row: dict[str, Any]) -> str:
    """Return the choices in which the optimal plan differs from the default."""
    default, best = row["default_plan"], row["optimal_plan"]
    return ", ".join(
        f"{name} {default[name]} -> {best[name]}" for name in default if default[name] != best[name]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--machine", action="append", choices=MACHINES)
    parser.add_argument("--layer", default="", help="only layers whose name contains TEXT")
    parser.add_argument("--journal", type=Path, default=Path("plan_optimum.journal.jsonl"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    lines = options.journal.read_text().splitlines() if options.journal.exists() else []
    known = {(row["layer"], row["machine"]): row for row in map(json.loads, lines)}
    wanted = [
        (layer, name)
        for layer in LAYERS
        for name in options.machine or MACHINES
        if options.layer in layer.name
    ]
    missing = [(layer, name) for layer, name in wanted if (layer.name, name) not in known]
    with ProcessPoolExecutor(options.jobs) as pool, options.journal.open("a") as file:
        for row in pool.map(compare, *zip(*missing, strict=True)) if missing else ():
            known[row["layer"], row["machine"]] = row
            file.write(f"{json.dumps(row)}\n")
            file.flush()
    rows = [known[layer.name, name] for layer, name in wanted]
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    report(rows)


def report(rows: list[dict[str, Any]]) -> None:
    """Print a line for each machine, and the losses above 1 %."""
    head = f"{'machine':<12}{'layers':>7}{'plans':>8}{'simulated':>11}"
    print(f"{head}{'median':>9}{'mean':>8}{'worst':>8}{'> 1 %':>7}")
    valid = [row for row in rows if "error" not in row]
    for name in dict.fromkeys(row["machine"] for row in valid):
        own = [row for row in valid if row["machine"] == name]
        losses = [loss(row) for row in own]
        print(
            f"{name:<12}{len(own):>7}{sum(row['plans'] for row in own):>8,}"
            f"{sum(row['simulated'] for row in own):>11,}{statistics.median(losses):>9.2%}"
            f"{statistics.mean(losses):>8.2%}{max(losses):>8.1%}{sum(one > 0.01 for one in losses):>7}"
        )
    for row in sorted(valid, key=loss, reverse=True):
        if loss(row) > 0.01:
            print(
                f"{row['machine']}, {row['layer']}: {row['default']:,} instead of {row['optimum']:,} cycles "
                f"({loss(row):.1%}; predicted {row['predicted_default']:,.0f} and "
                f"{row['predicted_optimum']:,.0f}): {differences(row)}"
            )
    for row in rows:
        if "error" in row:
            print(f"{row['machine']}, {row['layer']}: {row['error']}")


def loss(row: dict[str, Any]) -> float:
    """Return the share of cycles that the default takes beyond the optimum."""
    return float(row["default"] / row["optimum"] - 1)


if __name__ == "__main__":
    main()
