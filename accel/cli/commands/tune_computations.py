"""The commands of ``accel tune``: options and help of templates and of operators."""

import re
from pathlib import Path
from typing import Any

import click

from accel.base.run_choices import DEFAULT_EXPLORER, DEFAULT_TRIALS, EXPLORERS
from accel.cli.command_groups import runs
from accel.cli.declared_options import choice_option, config_option, json_option, seed_option, set_option
from accel.cli.operator_commands import operator_command
from accel.compiler.mappings.mapping import AUTO
from accel.compiler.operators.declared_operator import Operator
from accel.compiler.operators.operator_registry import OPERATORS

_CLOSING = (
    "The points are the plans of the operator's planner. --schedule of 'accel compile' takes the file of -o. "
    "The explorers annealing and evolution need the extra 'tune'."
)
_EXPLORER_HELP = (
    "How points are chosen: 'model' by predicted cycles; 'annealing' and 'evolution' by a cost model that "
    "learns from the trials (extra 'tune'), with '+records' also from other computations in --records."
)


def _shared_options(config: str) -> list[click.Parameter]:
    path = click.Path(path_type=Path)

    @click.command()
    @config_option(config, "--machine")
    @set_option("geometry or timing")
    @click.option(
        "--trials",
        type=click.IntRange(1),
        default=DEFAULT_TRIALS,
        show_default=True,
        help="Points to measure.",
    )
    @choice_option("--explorer", EXPLORERS, _EXPLORER_HELP, DEFAULT_EXPLORER)
    @seed_option
    @click.option("--jobs", type=click.IntRange(1), help="Number of processes.  [default: one for each core]")
    @click.option(
        "--records",
        type=path,
        metavar="FILE",
        help="Continue with the trials in this file, and append to it. --tuned of 'accel compile' takes it.",
    )
    @click.option(
        "-o", "--output", type=path, metavar="FILE", help="Write the fastest schedule (.toml or .json)."
    )
    @click.option(
        "--save-program", type=path, metavar="FILE", help="Write the program of the fastest schedule."
    )
    @json_option
    def shared(**_: Any) -> None:
        """Only its options are used."""

    return shared.params


_mapping_option = click.Option(
    ["--mapping"],
    default=AUTO,
    show_default=True,
    metavar="NAME",
    help="The mapping whose plans are searched.",
)


@runs("accel.cli.tune:tune_operator")
def _tune_operator(operator: Operator, arguments: dict[str, Any], options: dict[str, Any]) -> int:
    raise NotImplementedError


@runs("accel.cli.tune:tune_template")
def _tune_template(template: str, **options: Any) -> int:
    raise NotImplementedError


template_command = click.Command(
    "FILE.py:TEMPLATE",
    params=[click.Argument(["template"], metavar="FILE.py:TEMPLATE"), *_shared_options("vta")],
    callback=_tune_template,
    help="""Search for the fastest schedule of a template.

    TEMPLATE is a function in FILE.py without arguments. It declares knobs with te.knob and te.knob_order,
    constraints with te.require, and returns a schedule. FILE.py is executed.

    \b
    Example:
      accel tune layer.py:template --machine vta --trials 64 --explorer model -o best.json
    """,
    short_help="A Python function with knobs that returns a schedule.",
)


def _tuning_examples(operator: Operator) -> list[str]:
    shape = re.split(
        r" (?:-o|--explain|--measure|--save-schedule|--schedule|--mapping)\b", operator.examples[0]
    )[0]
    return [f"{shape} --trials 32 -o best.json"]


COMMANDS: dict[str, click.Command] = {
    operator.command: operator_command(
        operator,
        [*_shared_options(operator.machine), _mapping_option],
        _tune_operator,
        "tune",
        _CLOSING,
        _tuning_examples(operator),
    )
    for operator in OPERATORS.values()
}
