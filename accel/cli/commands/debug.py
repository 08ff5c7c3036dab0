from pathlib import Path

import click

from accel.base.run_choices import SIMULATORS
from accel.cli.command_groups import runs
from accel.cli.declared_options import choice_option, limit_options, seed_option, set_option


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-x",
    "--commands",
    "script",
    type=click.Path(path_type=Path),
    help="Read commands from a file instead of stdin.",
)
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help="Value for an input tensor.")
@choice_option("--backend", SIMULATORS, "The backend.", "sim")
@click.option("--serial", is_flag=True, help="Monolithic pipeline: one instruction after another.")
@seed_option
@set_option("timing")
@limit_options
@runs("accel.cli.debug:debug")
def debug() -> None:
    """Step through a run, and inspect its state.

    Stop at any event, print memory, and see the reason why each unit waits. FILE is a program file, an
    assembly text (.s) or a vector's folder. Commands come from the keyboard, from standard input or from
    a file, one per line. 'help' lists them. In a script, an error ends the session. The exit code is 1
    if the program is at fault.

    \b
    Example:
      accel debug gemm.accel -x commands.txt
    """
