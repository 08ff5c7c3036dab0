"""How a default schedule was chosen: the plans that an analytical model compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import JustifyMethod
from rich.table import Table

from accel.compiler.mappings.choose import Compared
from accel.compiler.plans.candidate import Candidate
from accel.compiler.plans.planner import Planner, Side
from accel.core.config import Config

_SHOWN = 10
"""Plans that the table has, and the best one for each other number of virtual threads."""
_GAP = 2
"""Columns of a terminal between those of the table."""


@dataclass(frozen=True, kw_only=True)
class _Column:
    """A heading, and a cell for each plan.

    Attributes:
        least: how soon it is left out where the terminal is narrow; 0: never.
    """

    heading: str
    cells: list[str]
    least: int = 0

    def width(self, *, folded: bool) -> int:
        """Columns of the terminal, with the heading in one line or a word in each."""
        words = self.heading.split(" ") if folded else [self.heading]
        return max(map(len, (*words, *self.cells)))


def candidates_table(
    candidates: list[Candidate[Any]], planner: Planner[Any, Any], config: Config, width: int | None = None
) -> Table:
    """The best candidates, best first; numbers are never cut, rather are columns left out.

    Args:
        candidates: best first.
        planner: whose they are.
        config: the machine.
        width: of the terminal; as wide as need be if None.
    """
    columns = _columns(candidates, planner, config)
    folded = width is not None and _width(columns, folded=False) > width
    while folded and width is not None and _width(columns, folded=True) > width:
        last = max(columns, key=lambda column: column.least)
        if not last.least:
            break
        columns.remove(last)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        heading = column.heading.replace(" ", "\n") if folded else column.heading
        justify: JustifyMethod = "left" if column.heading == "bound by" else "right"
        table.add_column(heading, justify=justify, no_wrap=True, vertical="bottom")
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*row)
    return table


def mappings_table(compared: Sequence[Compared]) -> Table:
    """The mappings that were looked at, the chosen one first; of those that a bound ruled out, the bound."""
    table = Table(box=None, pad_edge=False, header_style="bold")
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


def _width(columns: list[_Column], *, folded: bool) -> int:
    return sum(column.width(folded=folded) + _GAP for column in columns) - _GAP


def _columns(candidates: list[Candidate[Any]], planner: Planner[Any, Any], config: Config) -> list[_Column]:
    best = _best(candidates)
    plans = [candidate_dict(candidate, planner, config) for _, candidate in best]

    told = [side.key for side in planner.sides if side.told or _longest(side, plans) > side.elements(config)]

    def sides(part: str) -> list[str]:
        return [" x ".join(str(plan[key]) for key in told if key.startswith(f"{part}_")) for plan in plans]

    def shares(unit: str) -> list[str]:
        return [f"{plan['predicted_busy'][unit]:.1%}" for plan in plans]

    found = [
        _Column(heading="", cells=["chosen" if not number else f"{number + 1}." for number, _ in best]),
        _Column(heading="tile", cells=sides("tile")),
        _Column(heading="step", cells=sides("step")),
        _Column(heading="threads", cells=[str(plan["threads"]) for plan in plans]),
        _Column(
            heading="along",
            cells=["-" if plan["threads"] == 1 else plan["threads_along"] for plan in plans],
            least=1,
        ),
        _Column(heading="outermost", cells=[plan["outermost"] for plan in plans], least=2),
        _Column(
            heading="identity",
            cells=["yes" if plan["identity_products"] else "" for plan in plans],
            least=2,
        ),
        _Column(heading="DRAM reads", cells=[f"{plan['read_bytes']:,}" for plan in plans]),
        _Column(heading="predicted cycles", cells=[f"{plan['predicted_cycles']:,}" for plan in plans]),
        _Column(heading="simulated", cells=[_simulated(plan) for plan in plans]),
        _Column(heading="GEMM and ALU", cells=shares("compute"), least=3),
        _Column(heading="loads", cells=shares("load"), least=4),
        _Column(heading="stores", cells=shares("store"), least=5),
        _Column(heading="bound by", cells=[plan["bound_by"] for plan in plans]),
    ]
    return [column for column in found if any(column.cells)]


def _simulated(plan: dict[str, Any]) -> str:
    cycles = plan["simulated_cycles"]
    return "" if cycles is None else f"{cycles:,}"


def _longest(side: Side, plans: Sequence[dict[str, Any]]) -> int:
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
    """A candidate as plain data; sizes in elements of the tensors, traffic in bytes."""
    plan, prediction = candidate.plan, candidate.prediction
    return {
        **planner.sizes(plan, config),
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
        "simulated_cycles": candidate.simulated,
    }


def chosen_rows(chosen: dict[str, Any], planner: Planner[Any, Any], config: Config) -> list[tuple[str, str]]:
    """What to say of the plan that was chosen, from :func:`candidate_dict`."""
    told = [side for side in planner.sides if side.told or chosen[side.key] > side.elements(config)]
    sizes = " x ".join(str(chosen[side.key]) for side in told)
    names = " x ".join(side.short for side in told)
    threads = str(chosen["threads"])
    along = f" along {chosen['threads_along']}" if chosen["threads"] > 1 else ""
    return [
        ("tile", f"{sizes} ({names})"),
        ("threads", threads + along),
        ("predicted", f"{chosen['predicted_cycles']:,} cycles, bound by {chosen['bound_by']}"),
        *([("simulated", f"{_simulated(chosen)} cycles")] if chosen["simulated_cycles"] else []),
    ]
