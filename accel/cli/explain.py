"""How a default schedule was chosen: the plans that an analytical model compared."""

from collections.abc import Callable
from typing import Any

from rich.table import Table

from accel.compiler.plans.candidate import Candidate
from accel.compiler.plans.conv_schedule import ConvPlan
from accel.compiler.plans.gemm_plans import GemmPlan
from accel.compiler.plans.pool_schedule import PoolPlan
from accel.core.config import Config

_SHOWN = 10
"""Plans that the table has, and the best one for each other number of virtual threads."""


def candidates_table(candidates: list[Candidate[Any]], config: Config) -> Table:
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
        tile, step = (
            " x ".join(str(n) for name, n in figures.items() if name.startswith(part))
            for part in ("tile_", "step_")
        )
        table.add_row(
            "chosen" if not number else f"{number + 1}.",
            tile,
            step,
            str(figures["threads"]),
            along,
            figures["outermost"],
            f"{figures['read_bytes']:,}",
            f"{figures['predicted_cycles']:,}",
            *(f"{busy:.1%}" for busy in figures["predicted_busy"].values()),
            figures["bound_by"],
        )
    return table


def _best(candidates: list[Candidate[Any]]) -> list[tuple[int, Candidate[Any]]]:
    numbered = list(enumerate(candidates))
    seen: set[int] = set()
    shown = []
    for number, candidate in numbered:
        if number < _SHOWN or candidate.plan.threads not in seen:
            shown.append((number, candidate))
        seen.add(candidate.plan.threads)
    return shown


def candidate_dict(candidate: Candidate[Any], config: Config) -> dict[str, Any]:
    """A candidate as plain data; sizes in elements of the tensors, traffic in bytes."""
    plan, prediction = candidate.plan, candidate.prediction
    sizes = _SIZES[type(plan)](plan, config)
    return {
        **sizes,
        "read_bytes": candidate.read_bytes,
        "predicted_cycles": round(prediction.cycles),
        "predicted_busy": {
            "compute": prediction.compute / prediction.cycles,
            "load": prediction.load / prediction.cycles,
            "store": prediction.store / prediction.cycles,
        },
        "bound_by": prediction.bound,
    }


def _gemm_sizes(plan: GemmPlan, config: Config) -> dict[str, Any]:
    inner = "n" if plan.outer == "rows" else "m"
    return {
        "tile_m": plan.rows * config.batch,
        "tile_n": plan.columns * config.block_out,
        "step_k": plan.depth * config.block_in,
        "outermost": "m" if plan.outer == "rows" else "n",
        "threads": plan.threads,
        "threads_along": "k" if plan.thread_axis == "depth" else inner,
    }


def _pool_sizes(plan: PoolPlan, config: Config) -> dict[str, Any]:
    return {
        "tile_c": plan.channels * config.block_out,
        "tile_h": plan.rows,
        "tile_w": plan.columns,
        "outermost": "c" if plan.thread_axis == "rows" else "h",
        "threads": plan.threads,
        "threads_along": {"channels": "c", "rows": "h"}[plan.thread_axis],
    }


def _conv_sizes(plan: ConvPlan, config: Config) -> dict[str, Any]:
    return {
        "tile_oc": plan.channels * config.block_out,
        "tile_h": plan.rows,
        "tile_w": plan.columns,
        "step_ic": plan.depth * config.block_in,
        "step_kh": plan.kernel_rows,
        "outermost": "oc" if plan.outer == "channels" else "pixels",
        "threads": plan.threads,
        "threads_along": {"channels": "oc", "rows": "h", "depth": "ic", "groups": "groups"}[plan.thread_axis],
    }


_SIZES: dict[type, Callable[[Any, Config], dict[str, Any]]] = {
    GemmPlan: _gemm_sizes,
    ConvPlan: _conv_sizes,
    PoolPlan: _pool_sizes,
}
