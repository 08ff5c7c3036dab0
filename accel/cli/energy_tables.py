"""Tables of the energy of a run."""

from typing import TYPE_CHECKING, Any

from accel.cli.adaptive_table import shorten
from accel.cli.run_request import RunRequest
from accel.cli.terminal_output import FiguresTable, show, text_table
from accel.energy.energy_report import EnergyReport
from accel.energy.energy_text import energy_cells, ranking_lines, unit_of

if TYPE_CHECKING:
    from rich.table import Table

    from accel.network.network_result import NetworkResult
    from accel.run.result import Result

_NAME_WIDTH = 40


def energy_json(result: "Result | NetworkResult", request: RunRequest) -> dict[str, Any]:
    return {"energy": result.energy().to_dict()} if request.energy else {}


def show_energy(report: EnergyReport | None) -> None:
    """Print energies by component and layer, and rankings."""
    if report is None:
        return
    unit, name = unit_of(report.total.nominal)
    table = _table(f"energy in {name} by component, from counts of accesses", "component")
    for part, energy in report.components.items():
        if energy.high:
            table.add_row(part, *energy_cells(energy, unit))
    table.add_section()
    table.add_row("total", *energy_cells(report.total, unit))
    show(table)
    if report.parts:
        layers = _table(f"energy in {name} by layer", "layer")
        for layer, one in report.parts:
            layers.add_row(shorten(layer, _NAME_WIDTH), *energy_cells(one.total, unit))
        show(layers)
    rankings = ranking_lines(report)
    rows = [("for all published energies" if not n else "", line) for n, line in enumerate(rankings)]
    if rows:
        show(FiguresTable(rows))


def _table(title: str, heading: str) -> "Table":
    table = text_table(title, header_style="bold")
    table.add_column(heading)
    for column in ("low", "nominal", "high"):
        table.add_column(column, justify="right")
    return table
