"""The command ``accel completion``."""

import os

import click
from click.shell_completion import get_completion_class, shell_complete

from accel.base.errors import AccelError, nearest
from accel.cli.stdout import write

VARIABLE = "_ACCEL_COMPLETE"
"""The shell requests completions with this variable."""
SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", required=False, metavar="[bash|zsh|fish]")
def completion(shell: str | None) -> None:
    """Print a script that completes commands in your shell.

    Without an argument, the script is for the shell in $SHELL. Load it where your shell starts, for example
    in ~/.bashrc.

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
    except RuntimeError as error:  # an old shell
        raise AccelError(str(error)) from None


def answer(command: click.Command) -> int | None:
    """Complete the input if the shell requests it, otherwise return None."""
    instruction = os.environ.get(VARIABLE)
    return None if not instruction else shell_complete(command, {}, "accel", VARIABLE, instruction)
