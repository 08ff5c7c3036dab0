"""Options that subcommands share. Help must not import the modules of a run."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from accel.base.rewrite_choices import RELAXATION, SEARCHES, SECONDS
from accel.base.run_choices import BACKENDS, DEFAULT_MAX_CYCLES, DEFAULT_MAX_UOPS, ENGINE_NAMES

F = TypeVar("F", bound=Callable[..., Any])


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")


seed_option = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all random values."
)


Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def complete(names: Iterable[str] | Callable[[], Iterable[str]], *, files: bool = False) -> Complete:
    """Complete a name, or a file if none matches. ``names`` may import them on demand."""

    def found(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        known = names() if callable(names) else names
        items = [CompletionItem(name) for name in known if name.startswith(begun)]
        return items or ([CompletionItem(begun, type="file")] if files else [])

    return found


def machine_names() -> Iterable[str]:
    from accel.core.config import NAMED  # it imports numpy

    return NAMED


def _settings(kinds: str) -> Iterable[str]:
    from accel.core.config import SPECS

    return (f"{name}=" for name, spec in SPECS.items() if spec.kind in kinds)


def config_option(default: str | None, *names: str, shown: str | None = None) -> Callable[[F], F]:
    """Return ``--config``, also under other names.

    Args:
        default: the machine, or None if it depends on other options.
        shown: describes the default in the help, if not its name.
    """
    return click.option(
        "--config",
        *names,
        "config",
        default=default,
        show_default=shown or True,
        metavar="NAME|FILE",
        help="The machine, by name or as a TOML or JSON file.",
        shell_complete=complete(machine_names, files=True),
    )


def choice_option(
    name: str, choices: Sequence[str], help_text: str, default: str | None = None
) -> Callable[[F], F]:
    """Return an option with completion. The command itself refuses other values."""
    return click.option(
        name,
        default=default,
        show_default=default is not None,
        metavar="|".join(choices),
        shell_complete=complete(choices),
        help=help_text,
    )


def backend_option(default: str, help_text: str) -> Callable[[F], F]:
    return choice_option("--backend", BACKENDS, help_text, default)


def engine_option(help_text: str) -> Callable[[F], F]:
    return choice_option("--engine", ENGINE_NAMES, f"{help_text}  [default: {ENGINE_NAMES[0]}]")


def _records_file(_: click.Context, __: click.Parameter, value: Path | None) -> Path | None:
    if value is None:
        return None
    from accel.run.tuning_records import records_path  # slow to import

    return records_path(value)


def tuned_option(help_text: str) -> Callable[[F], F]:
    return click.option(
        "--tuned",
        type=click.Path(path_type=Path),
        metavar="FILE|stock",
        callback=_records_file,
        help=f"{help_text} 'stock' are the package's, for layers of benchmark networks.",
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
    """Return a parser for ``counts`` integers, for example ``56x56``. ``form`` is for messages."""

    def parse(_: click.Context, __: click.Parameter, value: str | None) -> tuple[int, ...] | None:
        if value is None:
            return None
        parts = value.split(separator)
        if len(parts) not in counts or not all(re.fullmatch(r"\s*-?[0-9]{1,9}\s*", part) for part in parts):
            raise click.BadParameter(f"{value!r} is not of the form {form}")
        return tuple(map(int, parts))

    return parse


def set_option(kinds: str) -> Callable[[F], F]:
    return click.option(
        "--set",
        "settings",
        metavar="FIELD=VALUE",
        multiple=True,
        help=f"Override a {kinds} field of the configuration. 'accel configs vta' lists them.",
        shell_complete=complete(lambda: _settings(kinds)),
    )


def limit_options(command: F) -> F:
    """Add ``--max-cycles`` and ``--max-uops``."""
    uops = click.option(
        "--max-uops",
        type=click.IntRange(1),
        default=DEFAULT_MAX_UOPS,
        show_default=True,
        help="Limit of executed micro-ops.",
    )
    cycles = click.option(
        "--max-cycles",
        type=click.IntRange(1),
        default=DEFAULT_MAX_CYCLES,
        show_default=True,
        help="Limit of cycles.",
    )
    return cycles(uops(command))


shape_option = click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=SIZES",
    help="Sizes of an input that the model leaves open, as x=1,3,48,320.",
)


def rewrite_options(command: F) -> F:
    """Add ``--rewrite`` and its options."""
    search = click.option(
        "--rewrite",
        type=click.Choice(SEARCHES),
        default="greedy",
        show_default=True,
        help="How rules rewrite a model's graph. 'greedy' applies the rules that help on every machine. "
        "'backtrack' and 'saturate' search for fewer cycles.",
    )
    rules = click.option(
        "--rules",
        metavar="FILE.py",
        type=click.Path(path_type=Path),
        help="Also apply the rules of this file. It is Python code, which is executed.",
    )
    relaxation = click.option(
        "--relaxation",
        type=click.FloatRange(min=1),
        default=RELAXATION,
        show_default=True,
        help="'backtrack' continues from graphs that cost at most this multiple of the best.",
    )
    seconds = click.option(
        "--rewrite-seconds",
        type=click.FloatRange(min=0),
        default=SECONDS,
        show_default=True,
        help="Seconds after which 'backtrack' and 'saturate' end.",
    )
    return search(rules(relaxation(seconds(command))))


def picture_options(command: F) -> F:
    report = click.option(
        "--report",
        metavar="FILE.html",
        help="Write a page with figures, stalls, timeline, roofline, traffic and code.",
    )
    timeline = click.option(
        "--timeline",
        metavar="FILE.svg|FILE.html|-",
        help="Write the pipeline chart with tokens as arrows, or with - print it as text.",
    )
    trace = click.option(
        "--trace", metavar="FILE.json[.gz]", help="Write a trace for Perfetto or chrome://tracing."
    )
    return report(timeline(trace(command)))


jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1),
    help="Number of processes.  [default: one for each core, or 1 for little work]",
)
