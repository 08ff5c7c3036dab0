import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from accel.base.atomic_files import write_atomically
from accel.base.errors import AccelError, ConfigError, SweepError
from accel.base.run_choices import EXECUTORS
from accel.cli.measuring_options import hint_to_resume, make_folder
from accel.cli.shared_options import check_name, named_values
from accel.cli.stdout import wrote
from accel.cli.terminal_output import FiguresTable, print_json, progress_bar, show, text_table
from accel.core.config import parse_quantity
from accel.run.result import SCHEMA_VERSION
from accel.sweeps import Plot, Spec, Table, load_spec, run_sweep
from accel.sweeps.executors import check_dask
from accel.sweeps.sweep_plots import check_matplotlib, make_plot
from accel.sweeps.sweep_points import settings_of
from accel.sweeps.sweep_spec import make_spec
from accel.sweeps.sweep_table import import_parquet

_SHOWN = 40


def sweep(
    file: Path | None,
    workload: str | None,
    vary: tuple[str, ...],
    plots: tuple[str, ...],
    output: Path | None,
    parquet: bool,
    no_plots: bool,
    fresh: bool,
    jobs: int | None,
    executor: str,
    scheduler: str | None,
    as_json: bool,
) -> int:
    check_name("executor", executor, EXECUTORS)
    spec = _spec(file, workload, _values(vary), plots)
    if no_plots:
        spec = Spec(name=spec.name, title=spec.title, points=spec.points)
    if spec.plots:
        check_matplotlib()
    if parquet:
        import_parquet()
    folder = output or Path(spec.name)
    targets = _targets(spec, folder, parquet)
    if executor == "dask":
        check_dask()
    make_folder(folder, targets, {} if file is None else {"FILE": file})
    notes: list[str] = []
    with hint_to_resume(targets[_JOURNAL]), progress_bar(spec.title) as progress:
        table = run_sweep(
            spec,
            journal=targets[_JOURNAL],
            fresh=fresh,
            jobs=jobs or os.cpu_count() or 1,
            executor=executor,
            scheduler=scheduler,
            progress=progress,
            note=notes.append,
        )
    files = _write(spec, table, targets)
    if as_json:
        print_json(
            {
                "schema_version": SCHEMA_VERSION,
                "title": spec.title,
                "files": [str(path) for path in files],
                "points": len(table),
                "refused": len(table.refused),
                "failed": len(table.faults),
                "notes": [f"journal: {note}" for note in notes],
                "rows": table.rows,
            }
        )
    else:
        _print(spec, table, files, notes)
    return 1 if table.faults else 0


def _spec(
    file: Path | None, workload: str | None, values: dict[str, list[Any]], plots: tuple[str, ...]
) -> Spec:
    context = click.get_current_context()
    if (file is None) == (workload is None):
        raise click.UsageError("Give a file or --workload, one of them.", context)
    drawn = [_plot(text) for text in plots]
    if file is not None:
        spec = load_spec(file, values)
    else:
        spec = make_spec({"workload": {"name": workload}, "title": f"sweep of {workload}"}, vary=values)
    return Spec(name=spec.name, title=spec.title, points=spec.points, plots=(*spec.plots, *drawn))


def _values(vary: Sequence[str]) -> dict[str, list[Any]]:
    """Return ``KEY=VALUE,...`` as lists by key. Raise an AccelError for another form, or a repeated key."""
    form = "KEY=VALUE,..., as vthreads=1,2,4"
    values = {}
    for key, listed in named_values("--vary", vary, form).items():
        parts = [one.strip() for one in listed.split(",")]
        if not all(parts):
            raise AccelError(f"--vary is given '{key}={listed}'; it takes {form}")
        values[key] = [_value(key, one) for one in parts]
    return values


def _value(key: str, text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    try:
        return parse_quantity(key, text)
    except ConfigError:
        return text


def _plot(text: str) -> Plot:
    parts = text.split(",")
    if len(parts) < 2 or not all(parts):
        raise SweepError(f"--plot is given {text!r}; it takes X,Y or X,Y,BY, which are columns")
    return make_plot({"x": parts[0], "y": parts[1], "by": parts[2:], "name": "-".join(parts)})


_CSV = "the table"
_PARQUET = "--parquet"
_JOURNAL = "the journal"


def _targets(spec: Spec, folder: Path, parquet: bool) -> dict[str, Path]:
    endings = {_CSV: ".csv", _PARQUET: ".parquet", _JOURNAL: ".journal.jsonl"}
    if not parquet:
        del endings[_PARQUET]
    found = {what: folder / f"{spec.name}{ending}" for what, ending in endings.items()}
    return found | {
        _plot_name(i): folder / f"{_joined(spec.name, p.name)}.svg" for i, p in enumerate(spec.plots)
    }


def _plot_name(index: int) -> str:
    return f"plot {index + 1}"


def _joined(*parts: str) -> str:
    return "-".join(part for part in parts if part)


def _write(spec: Spec, table: Table, targets: dict[str, Path]) -> list[Path]:
    table.save_csv(targets[_CSV])
    files = [targets[_CSV]]
    if _PARQUET in targets:
        files.append(targets[_PARQUET])
        table.save_parquet(files[-1])
    for index, plot in enumerate(spec.plots) if any(row["error"] is None for row in table.rows) else ():
        files.append(targets[_plot_name(index)])
        write_atomically(files[-1], table.svg(plot))
    return files


def _print(spec: Spec, table: Table, files: list[Path], journal: list[str]) -> None:
    headings, rows = table.short(settings_of(spec.points))
    text = text_table(spec.title)
    for heading in headings:
        text.add_column(heading, justify="right")
    for row in rows[:_SHOWN]:
        text.add_row(*row)
    show(text)
    if len(rows) > _SHOWN:
        show(f"... {len(rows) - _SHOWN:,} more in {files[0]}")
    notes = [("points", f"{len(table):,}"), *(("journal", note) for note in journal)]
    if table.refused:
        notes.append(("refused", f"{len(table.refused):,}; the first: {table.refused[0]['message']}"))
    if table.faults:
        notes.append(("AT FAULT", f"{len(table.faults):,}; the first: {table.faults[0]['message']}"))
    show("", FiguresTable(notes))
    wrote(*files)
