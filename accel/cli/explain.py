"""How a default schedule was chosen: the plans that the analytical model compared."""

from typing import Any

from rich.table import Table

from accel.compiler.default import Candidate
from accel.config import Config

_SHOWN = 10
"""Plans that the table has, and the best one for each other number of virtual threads."""


def candidates_table(candidates: list[Candidate], config: Config) -> Table:
    """The best candidates, best first."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("", "tile", "step", "threads", "along", "outermost", "DRAM reads", "predicted cycles"):
        table.add_column(name, justify="right")
    for name in ("GEMM and ALU", "loads", "stores"):
        table.add_column(name, justify="right")
    table.add_column("bound by")
    for number, candidate in _best(candidates):
        figures = candidate_dict(candidate, config)
        along = "-" if figures["threads"] == 1 else figures["threads_along"]
        table.add_row(
            "chosen" if not number else f"{number + 1}.",
            f"{figures['tile_m']} x {figures['tile_n']}",
            str(figures["step_k"]),
            str(figures["threads"]),
            along,
            figures["outermost"],
            f"{figures['read_bytes']:,}",
            f"{figures['predicted_cycles']:,}",
            *(f"{busy:.1%}" for busy in figures["predicted_busy"].values()),
            figures["bound_by"],
        )
    return table


def _best(candidates: list[Candidate]) -> list[tuple[int, Candidate]]:
    numbered = list(enumerate(candidates))
    seen: set[int] = set()
    shown = []
    for number, candidate in numbered:
        if number < _SHOWN or candidate.plan.threads not in seen:
            shown.append((number, candidate))
        seen.add(candidate.plan.threads)
    return shown


def candidate_dict(candidate: Candidate, config: Config) -> dict[str, Any]:
    """A candidate as plain data; sizes in elements of the tensors, traffic in bytes."""
    plan, prediction = candidate.plan, candidate.prediction
    inner = "n" if plan.outer == "rows" else "m"
    return {
        "tile_m": plan.rows * config.batch,
        "tile_n": plan.columns * config.block_out,
        "step_k": plan.depth * config.block_in,
        "outermost": "m" if plan.outer == "rows" else "n",
        "threads": plan.threads,
        "threads_along": "k" if plan.thread_axis == "depth" else inner,
        "read_bytes": candidate.read_bytes,
        "predicted_cycles": round(prediction.cycles),
        "predicted_busy": {
            "compute": prediction.compute / prediction.cycles,
            "load": prediction.load / prediction.cycles,
            "store": prediction.store / prediction.cycles,
        },
        "bound_by": prediction.bound,
    }
