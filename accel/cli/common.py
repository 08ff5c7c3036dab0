"""What subcommands share: options, output, and signs of life."""

import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem
from rich.console import Console, RenderableType
from rich.table import Table

from accel.base.errors import AccelError, nearest
from accel.cli.output import write
from accel.core.config import NAMED, SPECS
from accel.hw.engines.choose import DEFAULT_ENGINE, ENGINES
from accel.image import vectors
from accel.image.image import is_network
from accel.run.critical import Segment, critical_dict
from accel.run.program import BACKENDS, Program
from accel.run.replay import load_any
from accel.sim.functional.executor import DEFAULT_MAX_UOPS
from accel.sim.timing.model import DEFAULT_MAX_CYCLES

_PIPE_WIDTH = 10_000
"""Columns of a pipe: more than any line needs."""
_SEGMENTS = 20
"""The longest of a critical path, that JSON tells."""

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
seed_option = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of everything random."
)


Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def complete(names: Iterable[str], *, files: bool = False) -> Complete:
    """Shell completion of an option's value: one of some names, or perhaps a file where none fits."""
    known = list(names)

    def found(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        items = [CompletionItem(name) for name in known if name.startswith(begun)]
        return items or ([CompletionItem(begun, type="file")] if files else [])

    return found


def config_option(default: str | None, shown: str | None = None) -> Callable[[F], F]:
    """``--config``, with its completion.

    Args:
        default: the machine's name; None if it depends on other options.
        shown: what the help says of it, if not the name.
    """
    return click.option(
        "--config",
        default=default,
        show_default=shown or True,
        metavar="NAME|FILE",
        help="The machine; a FILE is TOML or JSON.",
        shell_complete=complete(NAMED, files=True),
    )


def backend_option(default: str, help_text: str) -> Callable[[F], F]:
    """``--backend``, with its completion."""
    return click.option(
        "--backend",
        default=default,
        show_default=True,
        metavar="|".join(BACKENDS),
        shell_complete=complete(BACKENDS),
        help=help_text,
    )


def engine_option(help_text: str) -> Callable[[F], F]:
    """``--engine``, with its completion."""
    return click.option(
        "--engine",
        metavar="|".join(ENGINES),
        shell_complete=complete(ENGINES),
        help=f"{help_text}  [default: {DEFAULT_ENGINE}]",
    )


order_option = click.option(
    "--order",
    type=click.Choice(["program", "random"]),
    default="program",
    show_default=True,
    help="Order of functional execution.",
)


def numbers_parser(
    form: str, separator: str, counts: Sequence[int]
) -> Callable[[click.Context, click.Parameter, str | None], tuple[int, ...] | None]:
    """For options that take integers in one argument, as ``56x56`` or ``1,1,2,2``.

    Args:
        form: for messages.
        separator: between the numbers.
        counts: how many there may be.
    """

    def parse(_: click.Context, __: click.Parameter, value: str | None) -> tuple[int, ...] | None:
        if value is None:
            return None
        parts = value.split(separator)
        if len(parts) not in counts or not all(re.fullmatch(r"\s*-?[0-9]{1,9}\s*", part) for part in parts):
            raise click.BadParameter(f"{value!r} is not of the form {form}")
        return tuple(map(int, parts))

    return parse


def set_option(kinds: str) -> Callable[[F], F]:
    """``--set FIELD=VALUE``, repeatable."""
    return click.option(
        "--set",
        "settings",
        metavar="FIELD=VALUE",
        multiple=True,
        help=f"Override a {kinds} field of the configuration; 'accel configs vta' lists them.",
        shell_complete=complete(f"{name}=" for name, spec in SPECS.items() if spec.kind in kinds),
    )


def limit_options(command: F) -> F:
    """``--max-cycles`` and ``--max-uops``."""
    uops = click.option(
        "--max-uops",
        type=click.IntRange(1),
        default=DEFAULT_MAX_UOPS,
        show_default=True,
        help="Most micro-ops that the run may execute.",
    )
    cycles = click.option(
        "--max-cycles",
        type=click.IntRange(1),
        default=DEFAULT_MAX_CYCLES,
        show_default=True,
        help="Most cycles that the run may take.",
    )
    return cycles(uops(command))


def named_values(option: str, texts: Iterable[str], form: str, names: Sequence[str] = ()) -> dict[str, str]:
    """``NAME=VALUE`` arguments of a repeatable option as a mapping.

    Args:
        option: its name.
        texts: what it is given.
        form: what it takes, with an example.
        names: known ones, which may hold ``=`` themselves; the longest that an argument begins with counts.

    Raises:
        AccelError: an argument is not of that form, or a name is given twice.
    """
    values: dict[str, str] = {}
    for text in texts:
        known = max((name for name in names if text.startswith(f"{name}=")), key=len, default=None)
        if known is not None:
            name, value = known, text[len(known) + 1 :]
        else:
            name, _, value = text.partition("=")
            name = name.strip()
        if not name or not value:
            raise AccelError(f"{option} is given {text!r}; it takes {form}")
        if name in values:
            raise AccelError(f"{option} is given {name} twice, as {values[name]!r} and as {value!r}")
        values[name] = value
    return values


def parse_settings(settings: Sequence[str]) -> dict[str, str]:
    """``--set FIELD=VALUE`` arguments as a mapping.

    Raises:
        AccelError: as :func:`named_values`.
    """
    found = named_values("--set", settings, "FIELD=VALUE, as read_latency=100")
    return {name: value.strip() for name, value in found.items()}


def load_program(path: Path, settings: Sequence[str] = (), *, serial: bool = False) -> Program:
    """A program file, a text in assembly, a vector or the program of a network, with the timing of this run.

    Raises:
        AccelError: a setting is not of the form FIELD=VALUE, or given twice.
        ProgramError: the file cannot be read.
        ConfigError: a setting is unknown or not a timing field.
    """
    if is_network(path):
        from accel.network.file import load_network, single_program  # noqa: PLC0415  # slow to import

        program = single_program(load_network(path), str(path))
    else:
        program = load_any(path)
    values = parse_settings(settings)
    if serial:
        if "serial" in values:
            raise AccelError(f"--serial and --set serial={values['serial']} are given; one of them is enough")
        values["serial"] = "1"
    if not values:
        return program
    return program.with_timing(program.config.variant(values, kinds=("timing",)))


def program_files(path: Path) -> dict[str, Path]:
    """The files that :func:`load_program` reads, by what to call them in messages."""
    if path.is_dir():
        return {f"FILE ({name})": path / name for name in vectors.FILES}
    return {"FILE": path}


def config_file(config: str) -> dict[str, Path]:
    """The file that ``--config`` reads, if it is given one."""
    return {} if config in NAMED else {"--config": Path(config)}


def given(paths: Mapping[str, Path | None]) -> dict[str, Path]:
    """Those of some paths that are there."""
    return {name: path for name, path in paths.items() if path is not None}


def check_name(what: str, name: str, valid: Iterable[str]) -> None:
    """Refuse a name that is none of ``valid``.

    Raises:
        AccelError: naming the nearest.
    """
    names = list(valid)
    if name not in names:
        raise AccelError(f"the {what} is {name!r}; {nearest(name, names)}")


def print_json(data: dict[str, Any]) -> None:
    """One JSON object on stdout."""
    write(json.dumps(data, indent=2) + "\n")


def show(*renderables: RenderableType, wide: bool = False) -> None:
    """Text and tables on stdout; in a pipe plain, never wrapped, without blanks at line ends.

    Args:
        renderables: what to show.
        wide: keep tables as wide as they are on a narrow terminal too, rather than cut their cells.
    """
    plain = not sys.stdout.isatty()
    text = io.StringIO()
    console = Console(
        file=text if plain else None,
        color_system=None if plain else "auto",
        width=_PIPE_WIDTH if plain or wide else None,
        highlight=False,
        soft_wrap=True,
        emoji=False,
        markup=False,
    )
    console.print(*renderables, sep="\n")
    if plain:
        write("".join(line.rstrip() + "\n" for line in text.getvalue().splitlines()))


def terminal_width() -> int | None:
    """Columns of the terminal that stdout is, if it is one."""
    return Console().width if sys.stdout.isatty() else None


@contextmanager
def busy(what: str) -> Iterator[Callable[[str], None]]:
    """A spinner on a terminal while something takes its time; silence in a pipe.

    Gives a function that says how far it is.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with Console(stderr=True).status(what) as status:
        yield lambda text: status.update(f"{what}: {text}")


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on a terminal; silence in a pipe.

    Gives a function that takes how much is done and how much there is, or None where nobody would see it.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import (  # noqa: PLC0415  # most commands have none
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def critical_json(path: Sequence[Segment] | None) -> dict[str, Any] | None:
    """What ``--json`` tells of a critical path: all causes, and the longest segments."""
    return None if path is None else critical_dict(path, _SEGMENTS)


def figures_table(rows: Sequence[tuple[str, str]]) -> Table:
    """Names and values in two columns."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for name, value in rows:
        table.add_row(name, value)
    return table
