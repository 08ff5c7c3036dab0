"""The commands of operators of ``accel compile``: options and help, from the operators' declarations."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from accel.cli.command_groups import runs
from accel.cli.declared_options import complete, config_option, json_option, set_option, tuned_option
from accel.cli.operator_commands import family_command, operator_command
from accel.compiler.mappings.mapping import AUTO
from accel.compiler.operators.declared_operator import CommandFamily, Operator
from accel.compiler.operators.operator_registry import OPERATORS


def _pass_names() -> Iterable[str]:
    from accel.compiler.codegen.reorder_passes import PASS_NAMES  # slow to import

    return PASS_NAMES


without_option = click.option(
    "--without",
    metavar="PASS",
    multiple=True,
    help="Turn off a pass that reorders instructions, for comparison (repeatable). "
    "'accel show --stage passes' lists them.",
    shell_complete=complete(_pass_names),
)


def _shared_options(config: str) -> list[click.Parameter]:
    path = click.Path(path_type=Path)

    @click.command()
    @config_option(config)
    @set_option("geometry or timing")
    @click.option("--vthreads", type=int, help="Number of virtual threads.  [default: the best]")
    @click.option(
        "--tile",
        metavar="N[xN...] | SIDE=N,...",
        help="Sides of tiles and steps in elements, in the order of --explain, or by name. "
        "The planner chooses missing ones.",
    )
    @click.option(
        "--mapping",
        default=AUTO,
        show_default=True,
        metavar="NAME",
        help="The mapping: 'plain' for the operator itself, or one that packs the input differently, as "
        "'windows' or 'strips=8x1'. 'auto' picks the fastest.",
    )
    @click.option("--explain", is_flag=True, help="Show the compared mappings and schedules.")
    @click.option(
        "--measure",
        type=click.IntRange(min=1),
        metavar="N",
        help="Simulate the N most promising schedules, and take the fastest.",
    )
    @click.option(
        "--schedule",
        "schedule_file",
        type=path,
        metavar="FILE",
        help="Use the schedule in this file (.toml or .json).",
    )
    @tuned_option("Use the schedule in this file of records of 'accel tune' if it takes fewer cycles.")
    @without_option
    @click.option("--save-schedule", type=path, metavar="FILE", help="Write the schedule's steps.")
    @click.option(
        "-o",
        "--output",
        type=path,
        help="The program file.  [default: OPERATOR.accel]",
    )
    @json_option
    def shared(**_: Any) -> None:
        """Only the options of this function are used."""

    return shared.params


@runs("accel.cli.compile:compile_operator", multiplies=False)
def _compile(operator: Operator, arguments: dict[str, Any], options: dict[str, Any]) -> int:
    raise NotImplementedError


def _commands() -> Iterator[click.Command]:
    together: dict[CommandFamily, list[Operator]] = {}
    for operator in OPERATORS.values():
        yield operator_command(operator, _shared_options(operator.machine), _compile)
        if operator.variant is not None:
            together.setdefault(operator.variant.family, []).append(operator)
    for family, operators in together.items():
        yield family_command(family, operators, _shared_options(operators[0].machine), _compile)


COMMANDS: dict[str, click.Command] = {command.name or "": command for command in _commands()}
