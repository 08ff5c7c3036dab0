"""Output of ``--explain``: plans that the analytical model compared."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from accel.cli.adaptive_table import Column, adaptive_table
from accel.cli.terminal_output import text_table
from accel.compiler.codegen.reorder_passes import PassEffect
from accel.compiler.mappings.mapping_choice import ComparedMapping
from accel.compiler.plans.plan_candidate import Candidate
from accel.compiler.plans.plan_search import PREFETCH_PENALTY, TIE_SHARE
from accel.compiler.plans.planner import Planner, TileSide
from accel.core.config import Config

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_SHOWN = 10
"""Plans in the table, plus the best of each other number of virtual threads."""


def candidates_table(
    candidates: list[Candidate[Any]], planner: Planner[Any, Any], config: Config, width: int | None = None
) -> "RenderableType":
    """Return a table of candidates, the best first. A ``width`` of None is any width."""
    return adaptive_table(_columns(candidates, planner, config), width)


def choice_reason(candidates: Sequence[Candidate[Any]]) -> str:
    """Explain a choice although another one is predicted to be faster. Empty if none is, or if plans were
    simulated."""
    chosen, *others = candidates
    faster = [one for one in others if one.prediction.cycles < chosen.prediction.cycles]
    if not faster or chosen.simulated_cycles is not None:
        return ""
    fastest = min(faster, key=lambda one: one.prediction.cycles)
    share = chosen.prediction.cycles / fastest.prediction.cycles - 1
    cycles = f"chosen although another plan is predicted to take {round(fastest.prediction.cycles):,} cycles"
    saved = fastest.read_bytes - chosen.read_bytes
    if share <= TIE_SHARE and saved >= 0:
        return (
            f"{cycles}, {share:.2%} fewer: predictions within {TIE_SHARE:.1%} count as equal, and this plan "
            f"reads {saved:,} bytes fewer from DRAM"
        )
    return (
        f"{cycles}, {share:.1%} fewer: that plan prefetches, and predictions of such plans count as "
        f"{PREFETCH_PENALTY:.0%} longer, because they are less reliable (--measure simulates both)"
    )


def mappings_table(compared: Sequence[ComparedMapping]) -> "Table":
    """The chosen mapping comes first. One that was ruled out shows its lower bound."""
    table = text_table(header_style="bold")
    for number, heading in enumerate(("", "mapping", "input bytes", "times", "predicted cycles")):
        table.add_column(heading, justify="right" if number > 1 else "left", no_wrap=True)
    for number, one in enumerate(compared):
        predicted, least = one.predicted_cycles, f"at least {one.least_cycles:,}"
        table.add_row(
            "" if number else "chosen",
            one.name,
            f"{one.data_bytes:,}",
            f"{one.factor:.3g}",
            least if predicted is None else f"{predicted:,}",
        )
    return table


def passes_table(effects: Sequence[PassEffect]) -> "Table":
    table = text_table(header_style="bold")
    for heading in ("reorder pass", "effect"):
        table.add_column(heading, no_wrap=True)
    for one in effects:
        table.add_row(one.name, str(one))
    return table


def _columns(candidates: list[Candidate[Any]], planner: Planner[Any, Any], config: Config) -> list[Column]:
    best = _best(candidates)
    plans = [candidate_dict(candidate, planner, config) for _, candidate in best]

    shown_keys = [
        side.key
        for side in planner.sides
        if side.always_shown or _longest(side, plans) > side.block_elements(config)
    ]

    def sides(part: str) -> list[str]:
        return [
            " x ".join(str(plan[key]) for key in shown_keys if key.startswith(f"{part}_")) for plan in plans
        ]

    def shares(unit: str) -> list[str]:
        return [f"{plan['predicted_busy'][unit]:.1%}" for plan in plans]

    found = [
        Column(heading="", cells=["chosen" if not number else f"{number + 1}." for number, _ in best]),
        Column(heading="tile", cells=sides("tile")),
        Column(heading="step", cells=sides("step")),
        Column(heading="threads", cells=[str(plan["threads"]) for plan in plans]),
        Column(
            heading="along",
            cells=["-" if plan["threads"] == 1 else plan["threads_along"] for plan in plans],
            least=1,
        ),
        Column(heading="outermost", cells=[plan["outermost"] for plan in plans], least=2),
        Column(
            heading="identity",
            cells=["yes" if plan["identity_products"] else "" for plan in plans],
            least=2,
        ),
        Column(heading="DRAM reads", cells=[f"{plan['read_bytes']:,}" for plan in plans]),
        Column(heading="predicted cycles", cells=[f"{plan['predicted_cycles']:,}" for plan in plans]),
        Column(heading="simulated", cells=[_simulated(plan) for plan in plans]),
        Column(heading="GEMM and ALU", cells=shares("compute"), least=3),
        Column(heading="loads", cells=shares("load"), least=4),
        Column(heading="stores", cells=shares("store"), least=5),
        Column(heading="busiest", cells=[plan["busiest"] for plan in plans], least=6, is_text=True),
    ]
    return [column for column in found if any(column.cells)]


def _simulated(plan: dict[str, Any]) -> str:
    cycles = plan["simulated_cycles"]
    return "" if cycles is None else f"{cycles:,}"


def _longest(side: TileSide, plans: Sequence[dict[str, Any]]) -> int:
    return max((plan[side.key] for plan in plans), default=0)


def _best(candidates: list[Candidate[Any]]) -> list[tuple[int, Candidate[Any]]]:
    numbered = list(enumerate(candidates))
    seen: set[int] = set()
    shown = []
    for number, candidate in numbered:
        if number < _SHOWN or candidate.plan.threads not in seen:
            shown.append((number, candidate))
        seen.add(candidate.plan.threads)
    return shown


def candidate_dict(candidate: Candidate[Any], planner: Planner[Any, Any], config: Config) -> dict[str, Any]:
    """Sizes are in elements, traffic in bytes."""
    plan, prediction = candidate.plan, candidate.prediction
    return {
        **planner.tile_sizes(plan, config),
        "outermost": planner.outermost(plan),
        "threads": plan.threads,
        "threads_along": planner.threads_along(plan),
        "identity_products": planner.identity_products(plan),
        "read_bytes": candidate.read_bytes,
        "predicted_cycles": round(prediction.cycles),
        "predicted_busy": {
            "compute": prediction.compute / prediction.cycles,
            "load": prediction.load / prediction.cycles,
            "store": prediction.store / prediction.cycles,
        },
        "bound_by": prediction.bound,
        "busiest": prediction.busiest,
        "simulated_cycles": candidate.simulated_cycles,
    }


def chosen_rows(chosen: dict[str, Any], planner: Planner[Any, Any], config: Config) -> list[tuple[str, str]]:
    shown_sides = [
        side for side in planner.sides if side.always_shown or chosen[side.key] > side.block_elements(config)
    ]
    sizes = " x ".join(str(chosen[side.key]) for side in shown_sides)
    names = " x ".join(side.short_name for side in shown_sides)
    threads = str(chosen["threads"])
    along = f" along {chosen['threads_along']}" if chosen["threads"] > 1 else ""
    return [
        ("tile", f"{sizes} ({names})"),
        ("threads", threads + along),
        ("predicted", f"{chosen['predicted_cycles']:,} cycles, busiest unit {chosen['busiest']}"),
        *([("simulated", f"{_simulated(chosen)} cycles")] if chosen["simulated_cycles"] else []),
    ]
