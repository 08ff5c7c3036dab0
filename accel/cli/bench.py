"""``accel bench``: the layers of a network against the machine's limit."""

from collections.abc import Iterator
from pathlib import Path

import click
from rich.table import Table

from accel.base.atomic_files import check_targets, is_device, write_atomically
from accel.base.errors import AccelError
from accel.benchmarks import (
    EPILOGUES,
    NETWORKS,
    Row,
    Task,
    default_epilogue,
    layers_of,
    measure,
    network_energy,
    report,
)
from accel.benchmarks.benchmark_networks import Epilogue
from accel.benchmarks.layer_table import COLUMNS, table_lines
from accel.benchmarks.markdown_page import markdown_page
from accel.cli.declared_options import config_option, json_option, seed_option, set_option
from accel.cli.energy_tables import show_energy
from accel.cli.shared_options import check_name, config_file, machine_text, parse_settings
from accel.cli.stdout import wrote
from accel.cli.terminal_output import figures_table, print_json, progress_bar, show
from accel.compiler.target.machine import machine
from accel.run.result import SCHEMA_VERSION
from accel.sweeps.executors import in_processes, in_this_process

_SUFFIX = ".md"


@click.command()
@click.argument("network", metavar="|".join(NETWORKS))
@config_option("vta")
@set_option("geometry or timing")
@click.option(
    "--epilogue",
    type=click.Choice(EPILOGUES),
    help="The epilogue: a scale for each channel and zero points, or a shift.  [default: scale on "
    "machines with post=1, shift on others]",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE.md", help="Write a Markdown page."
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of processes. With more than one, seconds include waiting for one another.",
)
@click.option(
    "--mapping",
    metavar="NAME",
    help="The mapping of each layer, see 'accel compile'.  [default: auto for layers "
    "with an input from the host, otherwise plain]",
)
@click.option(
    "--energy",
    is_flag=True,
    help="Also print the energy by component and by layer, from counts of accesses and published energies.",
)
@seed_option
@json_option
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
    """Measure a network's layers against the machine's limit.

    Each layer ends with a bias, a shift and saturation to 0..127, or with a bias, a scale for each channel, a
    zero point and saturation. Its result is compared with numpy. The exit code is 1 if any differs. The
    columns serial, V = 1 and chosen V give the utilization of the GEMM core: one instruction after another,
    decoupled with one buffer set, and with the chosen number V of virtual threads. docs/reference/networks.md
    explains all columns.

    \b
    Example:
      accel bench resnet18
      accel bench resnet18 --config vta-int8 --energy
      accel bench gemm --config gemm8x8 --set read_latency=200 --json
    """
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
            show("", figures_table(notes))
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


def _table(title: str, rows: list[Row]) -> Table:
    table = Table(box=None, pad_edge=False, title=title, title_justify="left", header_style="bold")
    for column in COLUMNS:
        table.add_column(column.heading, justify="left" if column.left else "right")
    *layers, last = table_lines(rows)
    for cells in layers:
        table.add_row(*cells)
    table.add_section()
    table.add_row(*last)
    return table
