"""The ``accel`` command: its subcommands, and how errors leave the process.

Exit code 0: done and right; 1: the program is at fault; 2: bad input or usage, one line on stderr;
130: interrupted.
"""

import os
import sys
from collections.abc import Sequence

import click

from accel.cli.check import check
from accel.cli.compile import compile_command
from accel.cli.configs import configs
from accel.cli.demo import demo
from accel.cli.disasm import disasm
from accel.cli.replay import replay
from accel.cli.run import run
from accel.cli.show import show
from accel.errors import AccelError
from accel.version import __version__

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="accel", message="%(prog)s %(version)s")
def app() -> None:
    """Compile tensor programs for an open accelerator, prove them, simulate them.

    \b
    Example:
      accel compile gemm -m 256 -n 256 -k 256 --shift 10 -o gemm.accel
      accel run gemm.accel
    """


for _command in (compile_command, configs, show, check, disasm, run, replay, demo):
    app.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point; ends the process with the exit code."""
    try:
        sys.exit(_run(arguments))
    except BrokenPipeError:
        # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        code = app.main(
            args=None if arguments is None else list(arguments), prog_name="accel", standalone_mode=False
        )
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Abort:
        return EXIT_INTERRUPTED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see '{context.command_path} --help')" if context is not None else ""
        _complain(" ".join(error.format_message().split()) + hint)
        return EXIT_USAGE
    except AccelError as error:
        _complain(str(error))
        return error.exit_code


def _complain(message: str) -> None:
    print("accel: " + " ".join(message.splitlines()), file=sys.stderr)
