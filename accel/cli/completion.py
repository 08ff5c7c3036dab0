"""``accel completion``: what makes a shell complete commands, options and names."""

import os

import click
from click.shell_completion import get_completion_class, shell_complete

from accel.base.errors import AccelError, nearest
from accel.cli.output import write

VARIABLE = "_ACCEL_COMPLETE"
"""Set by the shell's script when it asks for completions."""
SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", required=False, metavar="[bash|zsh|fish]")
def completion(shell: str | None) -> None:
    """Print a script that makes your shell complete commands.

    Without an argument, it is for the shell named by $SHELL. Load the script where your shell starts
    up, such as in ~/.bashrc.

    \b
    Example:
      accel completion fish > ~/.config/fish/completions/accel.fish
      eval "$(accel completion bash)"
    """
    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    if name not in SHELLS:
        raise AccelError(f"the shell is {name!r}; {nearest(name, SHELLS)}")
    found = get_completion_class(name)
    assert found is not None
    command = click.get_current_context().find_root().command
    try:
        write(found(command, {}, "accel", VARIABLE).source() + "\n")
    except RuntimeError as error:  # a shell that is too old
        raise AccelError(str(error)) from None


def answer(command: click.Command) -> int | None:
    """Complete what is typed, if it is the shell that calls; None if it is not."""
    instruction = os.environ.get(VARIABLE)
    return None if not instruction else shell_complete(command, {}, "accel", VARIABLE, instruction)
