"""Compare the cycles that the analytical model predicts with simulated cycles, over many shapes and plans.

    python bench/predictions.py [--plans N] [--json]

For each product and machine, the script simulates the chosen plan and others, from best to worst.

| column | meaning |
|---|---|
| error | relative error of the chosen plan |
| worst | largest error of all plans |
| rank | rank correlation of predicted and simulated cycles within a row |
| loss | how much slower the chosen plan is than the fastest simulated one |
"""

import argparse
import json
from typing import Any

import numpy as np

import accel
from accel.compiler.codegen.compile_schedule import compile_schedule
from accel.compiler.operators.default_schedule import find_candidates
from accel.compiler.plans.gemm_plan import GemmPlan
from accel.compiler.plans.gemm_schedule import gemm_schedule
from accel.compiler.plans.plan_candidate import Candidate
from accel.sim.timing.timing_model import simulate_timing

PRODUCTS: list[tuple[int, int, int, dict[str, Any]]] = [
    (256, 256, 256, {"shift": 8}),
    (512, 512, 512, {"shift": 10, "bias": True}),
    (100, 300, 77, {"shift": 6, "bias": True}),
    (1, 1000, 512, {}),
    (4096, 64, 32, {"relu": True}),
    (33, 17, 129, {"shift": 6}),
    (5, 4096, 1, {"bias": True}),
    (784, 128, 256, {"shift": 8, "bias": True, "transpose_a": True}),
    (64, 64, 4096, {"shift": 12, "transpose_b": True}),
]
CONFIGS = ("gemm8x8", "vta", "tiny")


def spread(found: list[Candidate[GemmPlan]], count: int) -> list[Candidate[GemmPlan]]:
    """Select the first plan, the best for each number of threads, and others at even distances."""
    chosen = {0}
    for threads in {c.plan.threads for c in found}:
        chosen.add(next(n for n, c in enumerate(found) if c.plan.threads == threads))
    chosen.update(np.linspace(0, len(found) - 1, count).astype(int).tolist())
    return [found[n] for n in sorted(chosen)]


def measure(config: str, M: int, N: int, K: int, options: dict[str, Any], plans: int) -> dict[str, Any]:
    machine = accel.machine(config)
    workload = accel.gemm(M, N, K, **options)
    predicted, simulated = [], []
    for candidate in spread(find_candidates(workload, machine.config), plans):
        image = compile_schedule(gemm_schedule(workload, machine, candidate.plan), machine.config)
        run = simulate_timing(image.instructions, image.config, address=image.code_offset)
        predicted.append(round(candidate.prediction.cycles))
        simulated.append(run.cycles)
    return {"config": config, "size": [M, N, K], "predicted": predicted, "simulated": simulated}


def errors(row: dict[str, Any]) -> np.ndarray:
    return np.array(row["predicted"]) / np.array(row["simulated"]) - 1


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Return Spearman's rank correlation."""
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]


def summary(rows: list[dict[str, Any]]) -> dict[str, float]:
    predicted = np.concatenate([row["predicted"] for row in rows])
    simulated = np.concatenate([row["simulated"] for row in rows])
    error = np.abs(predicted / simulated - 1)
    chosen = np.array([errors(row)[0] for row in rows])
    return {
        "plans": len(predicted),
        "rank_correlation": rank_correlation(predicted, simulated),
        "median_error": float(np.median(error)),
        "worst_error": float(error.max()),
        "worst_error_of_chosen": float(np.abs(chosen).max()),
        "worst_loss": max(row["simulated"][0] / min(row["simulated"]) - 1 for row in rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plans", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measure(config, *product, options.plans) for config in CONFIGS for product in PRODUCTS]
    if options.json:
        print(json.dumps({"rows": rows, "summary": summary(rows)}, indent=2))
        return
    print(
        f"{'machine':<9}{'size':<18}{'plans':>5}{'predicted':>12}{'simulated':>12}{'error':>8}{'worst':>8}"
        f"{'rank':>7}{'loss':>7}"
    )
    for row in rows:
        size = "x".join(map(str, row["size"]))
        error = errors(row)
        rank = rank_correlation(np.array(row["predicted"]), np.array(row["simulated"]))
        loss = row["simulated"][0] / min(row["simulated"]) - 1
        print(
            f"{row['config']:<9}{size:<18}{len(error):>5}{row['predicted'][0]:>12,}{row['simulated'][0]:>12,}"
            f"{error[0]:>8.1%}{max(error, key=abs):>8.1%}{rank:>7.2f}{loss:>7.1%}"
        )
    total = summary(rows)
    print(
        f"{total['plans']} plans: rank correlation {total['rank_correlation']:.4f}, median error "
        f"{total['median_error']:.1%}, worst {total['worst_error']:.1%} (of chosen plans "
        f"{total['worst_error_of_chosen']:.1%}), worst loss {total['worst_loss']:.1%}"
    )


if __name__ == "__main__":
    main()
