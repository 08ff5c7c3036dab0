import os
from pathlib import Path
from typing import TYPE_CHECKING

from accel.base.atomic_files import write_atomically
from accel.base.run_choices import EXECUTORS
from accel.cli.measuring_options import hint_to_resume, make_folder
from accel.cli.shared_options import check_name
from accel.cli.stdout import wrote
from accel.cli.terminal_output import FiguresTable, print_json, progress_bar, show, text_table
from accel.explore import Exploration, ExplorationSpec, explore, load_exploration
from accel.explore.exploration_snapshot import SNAPSHOT_SUFFIX, snapshot_bytes
from accel.explore.front_page import front_page
from accel.explore.front_picture import front_svg
from accel.explore.objectives import format_value
from accel.explore.placement_tasks import placement_tools
from accel.explore.point_samplers import check_sampler
from accel.run.result import SCHEMA_VERSION
from accel.sweeps.executors import check_dask
from accel.sweeps.sweep_plots import check_matplotlib

if TYPE_CHECKING:
    from rich.table import Table as TextTable

_SHOWN = 20
_JOURNAL, _CSV, _PAGE, _PICTURE = "the journal", "the table", "the page", "the picture"
_POINTS = "the points"
_ENDINGS = {
    _CSV: ".csv",
    _PAGE: ".html",
    _PICTURE: ".svg",
    _POINTS: SNAPSHOT_SUFFIX,
    _JOURNAL: ".journal.jsonl",
}


def explore_command(
    file: Path,
    output: Path | None,
    sampler: str | None,
    trials: int | None,
    seed: int | None,
    max_neighbours: int | None,
    simulate_front: bool,
    no_picture: bool,
    fresh: bool,
    jobs: int | None,
    executor: str,
    scheduler: str | None,
    as_json: bool,
) -> int:
    """Execute the command."""
    check_name("executor", executor, EXECUTORS)
    spec = load_exploration(file).with_options(sampler=sampler, trials=trials, seed=seed)
    check_sampler(spec.sampler)
    if spec.placement is not None:
        placement_tools()  # a missing one is reported now
    if not no_picture:
        check_matplotlib()
    if executor == "dask":
        check_dask()
    folder = output or Path(spec.name)
    targets = {
        what: folder / f"{spec.name}{ending}"
        for what, ending in _ENDINGS.items()
        if what != _PICTURE or not no_picture
    }
    make_folder(folder, targets, {"SPACE.toml": file})
    notes: list[str] = []
    with hint_to_resume(targets[_JOURNAL]), progress_bar(spec.title) as progress:
        found = explore(
            spec,
            journal=targets[_JOURNAL],
            fresh=fresh,
            jobs=jobs or os.cpu_count() or 1,
            executor=executor,
            scheduler=scheduler,
            max_neighbours=max_neighbours,
            simulate_front=simulate_front,
            progress=progress,
            stage=None if progress is None else progress.describe,
            note=notes.append,
            publish=lambda now: write_atomically(targets[_POINTS], snapshot_bytes(now, is_running=True)),
        )
    files = _write(found, targets)
    if as_json:
        print_json(
            {
                "schema_version": SCHEMA_VERSION,
                **found.to_dict(),
                "files": [str(path) for path in files],
                "notes": [f"journal: {note}" for note in notes],
            }
        )
    else:
        _print(spec, found, notes)
        wrote(*files)
    return 1 if found.faults else 0


def _write(found: Exploration, targets: dict[str, Path]) -> list[Path]:
    found.table.save_csv(targets[_CSV])
    files = [targets[_CSV]]
    write_atomically(targets[_POINTS], snapshot_bytes(found, is_running=False))
    files.append(targets[_POINTS])
    if found.measured:
        write_atomically(targets[_PAGE], front_page(found).encode())
        files.append(targets[_PAGE])
        if _PICTURE in targets:
            write_atomically(targets[_PICTURE], front_svg(found))
            files.append(targets[_PICTURE])
    return files


def _print(spec: ExplorationSpec, found: Exploration, notes: list[str]) -> None:
    if found.front:
        show(_front_table(found))
    if len(found.front) > _SHOWN:
        show(f"... {len(found.front) - _SHOWN:,} more points of the front")
    rows = [
        ("space", f"{found.space.size:,} points; sampler {found.sampler}, seed {found.seed}: {found.end}"),
        ("points", f"{len(found.measured):,} measured, {len(found.front):,} on the front"),
        *(("journal", note) for note in notes),
    ]
    for name, points in (("infeasible", found.infeasible), ("failed", found.failed)):
        if points:
            rows.append((name, f"{len(points):,}; the first: {points[0].message}"))
    if found.faults:
        rows.append(("AT FAULT", f"{len(found.faults):,}; the first: {found.faults[0].message}"))
    if found.placement is not None and found.tools is not None:
        rows.append(
            (
                "placement",
                f"{found.placed:,} cores {found.placement.describe()}; nextpnr {found.tools.nextpnr}",
            )
        )
    if found.check is not None:
        rows.append(("local check", found.check.describe()))
    if found.front:
        rows += [("best " + spec.objectives[0].name, command) for command in found.commands(found.best)]
    show("", FiguresTable(rows))


def _front_table(found: Exploration) -> "TextTable":
    text = text_table(found.title)
    fields = list(found.space.domains)
    for heading in (*(one.label for one in found.objectives), *fields):
        text.add_column(heading, justify="right")
    for point in found.front[:_SHOWN]:
        values = [format_value(point.objectives[one.name]) for one in found.objectives]
        text.add_row(*values, *(f"{value:,}" for value in point.values))
    return text
