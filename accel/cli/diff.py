import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from accel.base.atomic_files import check_targets
from accel.base.errors import AccelError
from accel.cli.shared_options import load_program, parse_settings, program_files
from accel.cli.stdout import write, wrote
from accel.cli.terminal_output import FiguresTable, busy, print_json, show, text_table
from accel.image.image import is_network
from accel.run.replay import program_name
from accel.run.result import SCHEMA_VERSION
from accel.views.run_comparison import Comparison, figure_text, main_cause, signed, summary
from accel.views.saved_run import FIGURES, SUFFIX, SavedRun

if TYPE_CHECKING:
    from rich.table import Table

_PIPE_COLUMNS = 100
_CAUSES = 10
_LAYERS = 30
_MOVED = 24
"""Longer lists of layers and tensors have only those that differ."""


def diff(a: Path, b: Path, html: Path | None, seed: int, settings: tuple[str, ...], as_json: bool) -> int:
    saved = [path.suffix == SUFFIX for path in (a, b)]
    if all(saved) and settings:
        raise AccelError("--set is given, and A and B are saved runs; it is for programs, which are run")
    if html is not None:
        Comparison.check_path(html)
        read = {
            f"{name} {what}": path
            for name, one, kept in (("A", a, saved[0]), ("B", b, saved[1]))
            for what, path in ({"": one} if kept else program_files(one)).items()
        }
        check_targets({"--html": html}, read)
    first, second = (
        SavedRun.load(path) if kept else _run(path, seed, settings)
        for path, kept in zip((a, b), saved, strict=True)
    )
    found = Comparison(first, second)
    if html is not None:
        found.save(html)
    if as_json:
        print_json({"schema_version": SCHEMA_VERSION} | found.to_dict())
        return 0
    _print(found)
    if html is not None:
        wrote(html)
    return 0


def _run(path: Path, seed: int, settings: tuple[str, ...]) -> SavedRun:
    if is_network(path):
        from accel.network.network_file import load_network  # slow to import
        from accel.network.saved_network_run import saved_network

        overrides = parse_settings(settings)
        network = load_network(path).with_timing(overrides)
        with busy(f"running {path.name}"):
            ran = network.run(seed=seed, check=False, record=True)
            return saved_network(ran, name=program_name(path), overrides=overrides, seed=seed)
    program = load_program(path, settings)
    with busy(f"running {path.name}"):
        result = program.run(seed=seed, check=False)
        return SavedRun.of(result, name=program_name(path), overrides=parse_settings(settings), seed=seed)


def _print(found: Comparison) -> None:
    show(FiguresTable([("A", found.a.name), ("B", found.b.name), ("", summary(found))]))
    figures = _table("figures", ("", "A", "B", "B - A"))
    for key, (a, b) in found.figures.items():
        more = signed(b - a) if isinstance(a, int) and isinstance(b, int) else ""
        figures.add_row(FIGURES[key], figure_text(a), figure_text(b), more)
    show(figures)
    causes = _table("critical paths", ("unit, cause", "A", "B", "B - A"))
    for one in found.causes[:_CAUSES]:
        causes.add_row(" ".join(one.key), f"{one.a:,}", f"{one.b:,}", signed(one.difference))
    rest = found.causes[_CAUSES:]
    if rest:
        a, b = sum(one.a for one in rest), sum(one.b for one in rest)
        causes.add_row(f"{len(rest)} others", f"{a:,}", f"{b:,}", signed(b - a))
    show(causes)
    if found.explaining:
        explained = _table("what explains the difference", ("unit, cause", "B - A", "longest in A", "in B"))
        for why in found.explaining:
            longest = [
                ", ".join(f"{s.cycles:,} from {s.start:,}" for s in segments)
                for segments in found.segments(why.key, 1)
            ]
            explained.add_row(why.key.text, signed(why.difference), *longest)
        show(explained)
    if found.layers:
        show(_layers(found))
    if len(found.programs) > 1:
        programs = _table("programs", ("", "A", "B", "B - A"))
        for number, a, b in found.programs:
            programs.add_row(f"program {number}", f"{a:,}", f"{b:,}", signed(b - a))
        show(programs)
    show(_traffic(found))
    write("\n" + _timelines(found))


def _layers(found: Comparison) -> "Table":
    table = _table("layers", ("", "A", "B", "B - A"))
    table.add_column("mostly")
    differing = [one for one in found.layers if one.difference or one.is_moved]
    listed = found.layers if len(found.layers) <= _LAYERS else differing
    for one in listed:
        cycles = ("" if count is None else f"{count:,}" for count in one.cycles)
        table.add_row(one.name, *cycles, signed(one.difference), main_cause(one))
    if len(listed) < len(found.layers):
        table.add_row(f"{len(found.layers) - len(listed)} others", "", "", "", "as in the other")
    return table


def _traffic(found: Comparison) -> "Table":
    table = _table("bytes read and written", ("", "A", "B", "B - A"))
    moved = [
        (f"{change.key} {what}", change)
        for changes in found.traffic
        for change, what in zip(changes, ("read", "written"), strict=True)
        if change.a or change.b
    ]
    listed = [one for one in moved if one[1].difference] if len(moved) > _MOVED else moved
    for name, change in listed:
        table.add_row(name, f"{change.a:,}", f"{change.b:,}", signed(change.difference))
    if len(listed) < len(moved):
        total = f"{sum(change.a for _, change in moved if not change.difference):,}"
        table.add_row(f"{len(moved) - len(listed)} others", total, total, "")
    return table


def _table(title: str, headings: tuple[str, ...]) -> "Table":
    table = text_table(title)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left")
    return table


def _timelines(found: Comparison) -> str:
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_COLUMNS
    text = "".join(f"{line.rstrip()}\n" for line in found.timelines(columns))
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return "".join(f"{line.rstrip()}\n" for line in found.timelines(columns, ascii_only=True))
    return text
