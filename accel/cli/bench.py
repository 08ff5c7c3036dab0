from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from accel.base.atomic_files import check_targets, is_device, write_atomically
from accel.base.errors import AccelError
from accel.base.run_choices import Epilogue
from accel.benchmarks import (
    NETWORKS,
    Row,
    Task,
    default_epilogue,
    layers_of,
    measure,
    network_energy,
    report,
)
from accel.benchmarks.layer_table import COLUMNS, table_lines
from accel.benchmarks.markdown_page import markdown_page
from accel.cli.energy_tables import show_energy
from accel.cli.shared_options import check_name, config_file, machine_text, parse_settings
from accel.cli.stdout import wrote
from accel.cli.terminal_output import FiguresTable, print_json, progress_bar, show, text_table
from accel.compiler.target.machine import machine
from accel.run.result import SCHEMA_VERSION
from accel.sweeps.executors import in_processes, in_this_process

if TYPE_CHECKING:
    from rich.table import Table

_SUFFIX = ".md"


def bench(
    network: str,
    config: str,
    settings: tuple[str, ...],
    epilogue: Epilogue | None,
    output: Path | None,
    jobs: int,
    mapping: str | None,
    energy: bool,
    seed: int,
    as_json: bool,
) -> int:
    check_name("network", network, NETWORKS)
    target = machine(config, **parse_settings(settings))
    if output is not None:
        check_targets({"-o": output}, config_file(config))
        if output.suffix != _SUFFIX and not is_device(output):
            raise AccelError(f"the page is to be written to {str(output)!r}; the name must end in {_SUFFIX}")
    chosen = epilogue or default_epilogue(target.config)
    layers = layers_of(network, chosen)
    tasks = [Task(layer=one, config=target.config, seed=seed, mapping=mapping) for one in layers]
    rows = _measured(tasks, jobs)
    found = report(network, target.config, rows, epilogue=chosen)
    faults = [row for row in rows if row["error"] is not None]
    if output is not None and not faults:
        given = [] if epilogue is None else [f"--epilogue {epilogue}"]
        given += [] if mapping is None else [f"--mapping {mapping}"]
        asked = " ".join([network, f"--config {config}", *(f"--set {one}" for one in settings), *given])
        write_atomically(output, markdown_page(found, target.config, asked).encode())
    used = network_energy(rows, target.config) if energy and not faults else None
    if as_json:
        more = {} if used is None else {"energy": used.to_dict()}
        print_json({"schema_version": SCHEMA_VERSION, **found, **more})
    else:
        show(_table(f"{network} on {machine_text(target.config)}", rows), wide=True)
        show_energy(used)
        notes = [("AT FAULT", f"{row['name']}: {row['error']['message']}") for row in faults]
        if notes:
            show("", FiguresTable(notes))
        if output is not None and not faults:
            wrote(output)
    return 1 if faults else 0


def _measured(tasks: list[Task], jobs: int) -> list[Row]:
    found: dict[int, Row] = {}
    with progress_bar("layers") as progress:
        for index, row in _outcomes(tasks, jobs):
            found[index] = row
            if progress is not None:
                progress(len(found), len(tasks))
    return [found[index] for index in range(len(tasks))]


def _outcomes(tasks: list[Task], jobs: int) -> Iterator[tuple[int, Row]]:
    return in_this_process(measure, tasks) if jobs == 1 else in_processes(measure, tasks, jobs)


def _table(title: str, rows: list[Row]) -> "Table":
    table = text_table(title, header_style="bold")
    for column in COLUMNS:
        table.add_column(column.heading, justify="left" if column.left else "right")
    *layers, last = table_lines(rows)
    for cells in layers:
        table.add_row(*cells)
    table.add_section()
    table.add_row(*last)
    return table
