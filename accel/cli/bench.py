"""``accel bench``: how close to the machine's limit the layers of a network come."""

from collections.abc import Iterator
from pathlib import Path

import click
from rich.table import Table

from accel.base.errors import AccelError
from accel.base.files import check_targets, is_device, write_atomically
from accel.benchmarks import (
    EPILOGUES,
    NETWORKS,
    Row,
    Task,
    default_epilogue,
    layers_of,
    measure,
    report,
)
from accel.benchmarks.networks import Epilogue
from accel.benchmarks.page import page
from accel.benchmarks.table import COLUMNS, lines
from accel.cli.common import (
    check_name,
    config_file,
    config_option,
    figures_table,
    json_option,
    parse_settings,
    print_json,
    progress_bar,
    seed_option,
    set_option,
    show,
)
from accel.cli.output import wrote
from accel.compiler.target.machine import machine
from accel.run.result import SCHEMA_VERSION
from accel.sweeps.executors import here, in_processes

_SUFFIX = ".md"


@click.command()
@click.argument("network", metavar="|".join(NETWORKS))
@config_option("vta")
@set_option("geometry or timing")
@click.option(
    "--epilogue",
    type=click.Choice(EPILOGUES),
    help="What follows a layer's sums: a scale per channel and zero points, or a shift.  [default: scale on "
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
    help="Number of processes. With more than one, the seconds are those of processes sharing the machine.",
)
@click.option(
    "--mapping",
    metavar="NAME",
    help="As which operator each layer is computed, see 'accel compile'.  [default: auto where an input "
    "enters from the host, plain elsewhere]",
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
    seed: int,
    as_json: bool,
) -> int:
    """Measure a network's layers against the machine's limit.

    Each layer ends with a bias, a shift and saturation to 0..127, or with a bias, a scale per channel, a zero
    point and saturation, and is compared with numpy; if any differs, the exit code is 1. The columns serial,
    V = 1 and chosen V give the GEMM core's utilization, counting real products: with one instruction after
    another; with units side by side and one set of buffers; and with as many virtual threads (V) as the model
    chose. docs/networks.md says more.

    \b
    Example:
      accel bench resnet18
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
        write_atomically(output, page(found, target.config, asked).encode())
    if as_json:
        print_json({"schema_version": SCHEMA_VERSION, **found})
    else:
        show(_table(f"{network} on {target.config}", rows), wide=True)
        notes = [("AT FAULT", f"{row['name']}: {row['error']['message']}") for row in faults]
        if notes:
            show("", figures_table(notes))
        if output is not None and not faults:
            wrote(output)
    return 1 if faults else 0


def _measured(tasks: list[Task], jobs: int) -> list[Row]:
    """The rows of the layers, in their order."""
    found: dict[int, Row] = {}
    with progress_bar("layers") as tell:
        for index, row in _outcomes(tasks, jobs):
            found[index] = row
            if tell is not None:
                tell(len(found), len(tasks))
    return [found[index] for index in range(len(tasks))]


def _outcomes(tasks: list[Task], jobs: int) -> Iterator[tuple[int, Row]]:
    return here(measure, tasks) if jobs == 1 else in_processes(measure, tasks, jobs)


def _table(title: str, rows: list[Row]) -> Table:
    table = Table(box=None, pad_edge=False, title=title, title_justify="left", header_style="bold")
    for column in COLUMNS:
        table.add_column(column.heading, justify="left" if column.left else "right")
    *layers, last = lines(rows)
    for cells in layers:
        table.add_row(*cells)
    table.add_section()
    table.add_row(*last)
    return table
