"""What subcommands share: options, output, and signs of life."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console, RenderableType
from rich.table import Table

from accel.config import Config
from accel.errors import ConfigError
from accel.program import Program
from accel.sim.functional.executor import DEFAULT_MAX_UOPS
from accel.sim.timing.model import DEFAULT_MAX_CYCLES

_PIPE_WIDTH = 400

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
seed_option = click.option("--seed", type=int, default=0, show_default=True, help="Of everything random.")


def set_option(kinds: str) -> Callable[[F], F]:
    """``--set FIELD=VALUE``, repeatable."""
    return click.option(
        "--set",
        "settings",
        metavar="FIELD=VALUE",
        multiple=True,
        help=f"Override a {kinds} field of the configuration; 'accel configs vta' lists them.",
    )


def limit_options(command: F) -> F:
    """``--max-cycles`` and ``--max-uops``."""
    uops = click.option(
        "--max-uops",
        type=click.IntRange(1),
        default=DEFAULT_MAX_UOPS,
        show_default=True,
        help="Micro-ops that the run may execute.",
    )
    cycles = click.option(
        "--max-cycles",
        type=click.IntRange(1),
        default=DEFAULT_MAX_CYCLES,
        show_default=True,
        help="Cycles that the run may take.",
    )
    return cycles(uops(command))


def parse_settings(settings: Sequence[str]) -> dict[str, str]:
    """``FIELD=VALUE`` arguments as a mapping.

    Raises:
        ConfigError: an argument is not of that form.
    """
    values = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise ConfigError(f"--set is given {setting!r}; it takes FIELD=VALUE, as read_latency=100")
        values[name.strip()] = value.strip()
    return values


def load_program(path: Path, settings: Sequence[str] = (), *, serial: bool = False) -> Program:
    """A program file, with the timing of this run.

    Raises:
        ProgramError: the file cannot be read.
        ConfigError: a setting is unknown or not a timing field.
    """
    program = Program.load(path)
    values = parse_settings(settings)
    if serial:
        values["serial"] = "1"
    if not values:
        return program
    return program.with_timing(program.config.override(values, kinds=("timing",)))


def print_json(data: dict[str, Any]) -> None:
    """One JSON object on stdout."""
    print(json.dumps(data, indent=2))


def show(*renderables: RenderableType) -> None:
    """Text and tables on stdout; in a pipe plain, never wrapped, without blanks at line ends."""
    if sys.stdout.isatty():
        terminal = Console(highlight=False, soft_wrap=True, emoji=False, markup=False)
        terminal.print(*renderables, sep="\n")
        return
    pipe = Console(highlight=False, soft_wrap=True, emoji=False, markup=False, width=_PIPE_WIDTH)
    with pipe.capture() as capture:
        pipe.print(*renderables, sep="\n")
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


@contextmanager
def busy(what: str) -> Iterator[None]:
    """A spinner on a terminal while something takes its time; silence in a pipe."""
    stderr = Console(stderr=True)
    if not stderr.is_terminal:
        yield
        return
    with stderr.status(what):
        yield


def figures_table(rows: Sequence[tuple[str, str]]) -> Table:
    """Names and values in two columns."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for name, value in rows:
        table.add_row(name, value)
    return table


def describe(config: Config) -> str:
    """A configuration in a few words."""
    return f"{config.name} ({config.batch}x{config.block_in}x{config.block_out}, {config.bus_bits}-bit bus)"
