"""The ``accel`` command: its subcommands, and the exit codes of errors.

Exit code 0 means done and correct, and 130 an interrupt. :mod:`accel.base.errors` explains 1 and 2.
"""

import os
import sys
from collections.abc import Sequence
from io import BufferedWriter, RawIOBase, StringIO, TextIOWrapper

import click

from accel.base.errors import AccelError
from accel.base.interrupts import EXIT_INTERRUPTED
from accel.base.notices import show_notices_on_terminal
from accel.base.result_cache import OFF, VARIABLE
from accel.base.version import __version__
from accel.cli.command_groups import Entry, LazyGroup
from accel.cli.completion import answer
from accel.cli.stdout import discard_output

EXIT_USAGE = 2
_LONGEST = 2000
"""Maximum characters of an error message. A longer one loses its middle."""

COMMANDS = {
    "asm": Entry("accel.cli.commands.asm:asm", "Assemble a text into a program file."),
    "bench": Entry(
        "accel.cli.commands.bench:bench", "Measure a network's layers against the machine's limit."
    ),
    "board": Entry("accel.cli.commands.board:board", "Run on an FPGA board, and compare with the simulator."),
    "build-rtl": Entry(
        "accel.cli.commands.build_rtl:build_rtl", "Build the hardware model of a machine ahead."
    ),
    "cache": Entry(
        "accel.cli.commands.cache:cache", "Show or clear the cache of plans, networks and placements."
    ),
    "check": Entry("accel.cli.commands.check:check", "Prove that a program neither deadlocks nor races."),
    "compile": Entry(
        "accel.cli.commands.compile:compile_command", "Compile a workload or a network to a file."
    ),
    "completion": Entry(
        "accel.cli.completion:completion",
        "Print a script that completes commands in your shell.",
    ),
    "configs": Entry("accel.cli.commands.configs:configs", "List the machines, or every field of one."),
    "debug": Entry("accel.cli.commands.debug:debug", "Step through a run, and inspect its state."),
    "demo": Entry(
        "accel.cli.commands.demo:demo", "Compile, run and check a matrix product or a small network."
    ),
    "diff": Entry("accel.cli.commands.diff:diff", "Compare two runs, and explain the difference."),
    "disasm": Entry(
        "accel.cli.commands.disasm:disasm", "List a program as text that 'accel asm' reads back."
    ),
    "explore": Entry(
        "accel.cli.commands.explore:explore_command", "Search a space of machines for the best ones."
    ),
    "isa": Entry("accel.cli.commands.isa:isa", "Print the instruction set manual."),
    "lockstep": Entry(
        "accel.cli.commands.lockstep:lockstep", "Compare simulator and hardware in every cycle of a run."
    ),
    "new-project": Entry(
        "accel.cli.commands.new_project:new_project",
        "Write a project with a schedule, its tests and a CI workflow.",
    ),
    "package": Entry(
        "accel.cli.commands.package:package", "Write a network or a program as files for firmware."
    ),
    "quantize": Entry(
        "accel.cli.commands.quantize:quantize", "Quantize a float network, and measure the error."
    ),
    "registers": Entry(
        "accel.cli.commands.registers:registers", "Print the manual of the control registers."
    ),
    "replay": Entry("accel.cli.commands.replay:replay", "Run programs with expected results, and compare."),
    "run": Entry(
        "accel.cli.commands.run:run", "Run a program or a network, and compare its outputs with numpy."
    ),
    "show": Entry("accel.cli.commands.show:show", "Show a program at one stage of its compilation."),
    "studio": Entry(
        "accel.cli.commands.studio:studio",
        "Change a run on a local page, and see the effect.",
    ),
    "sweep": Entry("accel.cli.commands.sweep:sweep", "Measure a grid of workloads, machines and schedules."),
    "tune": Entry("accel.cli.commands.tune:tune", "Search for the fastest schedule of a computation."),
    "verify": Entry(
        "accel.cli.commands.verify:verify", "Compare a network with ONNX Runtime, tensor by tensor."
    ),
    "verilog": Entry(
        "accel.cli.commands.verilog:verilog", "Write the core as Verilog, for simulation and synthesis."
    ),
}
"""Commands with the first sentence of their help."""


@click.group(
    cls=LazyGroup,
    entries=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="accel", message="%(prog)s %(version)s")
@click.option(
    "--no-cache", is_flag=True, help="Neither read nor write the cache of plans, networks and placements."
)
@click.pass_context
def app(context: click.Context, no_cache: bool) -> None:
    """Compile, prove and simulate tensor programs for an open accelerator.

    \b
    Example:
      accel compile gemm -m 256 -n 256 -k 256 --shift 10 -o gemm.accel
      accel run gemm.accel
    """
    if no_cache:
        before = os.environ.get(VARIABLE, "")
        os.environ[VARIABLE] = OFF  # for child processes
        context.call_on_close(lambda: os.environ.__setitem__(VARIABLE, before))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, and exit."""
    if sys.stdout is None:  # closed by the caller
        sys.stdout = StringIO()
    if sys.stderr is None:
        sys.stderr = StringIO()
    if sys.stdin is None:
        sys.stdin = StringIO()
    if isinstance(sys.stdout, TextIOWrapper) and isinstance(sys.stdout.buffer, RawIOBase):
        sys.stdout = _buffered(sys.stdout)
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # file names may contain any byte
    show_notices_on_terminal()
    completed = answer(app)
    sys.exit(
        completed if completed is not None else _run(sys.argv[1:] if arguments is None else list(arguments))
    )


def _buffered(stream: TextIOWrapper) -> TextIOWrapper:
    """The unbuffered stdout of PYTHONUNBUFFERED silently drops output on a full disk."""
    encoding = stream.encoding
    raw = stream.detach()
    assert isinstance(raw, RawIOBase)
    return TextIOWrapper(BufferedWriter(raw), encoding, write_through=True)


def _run(arguments: list[str]) -> int:
    try:
        with app.make_context("accel", list(arguments), obj=tuple(arguments)) as context:
            code = app.invoke(context)
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        return _complain(_usage_text(error))
    except AccelError as error:
        return _complain(str(error), error.exit_code)
    except OSError as error:
        if error.filename is not None:
            return _complain(f"{error.filename!r} cannot be used: {error.strerror}")
        discard_output()  # click writes help and version
        if isinstance(error, BrokenPipeError):
            return 0
        return _complain(f"standard output cannot be written: {error.strerror}")
    except MemoryError:
        return _complain("this takes more memory than there is; give something smaller")
    except RecursionError:
        return _complain("the input is nested too deeply; give something flatter")


def _usage_text(error: click.ClickException) -> str:
    at = getattr(error, "ctx", None)
    if at is None:
        return error.format_message()
    if isinstance(error, click.NoSuchOption) and any(error.option_name in one.opts for one in app.params):
        program, command, *_ = at.command_path.split()
        name = error.option_name
        return f"{name} comes before the command: {program} {name} {command} ..."
    return f"{error.format_message()} (see '{at.command_path} --help')"


def _complain(message: str, code: int = EXIT_USAGE) -> int:
    line = " ".join(message.split())
    if len(line) > _LONGEST:  # it repeats the user's input
        line = f"{line[: _LONGEST // 2]} ... {line[-_LONGEST // 2 :]}"
    print(f"accel: {line}", file=sys.stderr)
    return code
