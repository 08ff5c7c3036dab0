import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from accel.base.errors import AccelError, ProgramError
from accel.base.run_choices import SIMULATORS
from accel.cli.npy_files import input_files, read_arrays
from accel.cli.shared_options import check_name, load_program
from accel.cli.stdout import write
from accel.cli.terminal_output import busy
from accel.debug import Debugger, Session

_PROMPT = "(accel) "


def debug(
    file: Path,
    script: Path | None,
    inputs: tuple[str, ...],
    backend: str,
    serial: bool,
    seed: int,
    settings: tuple[str, ...],
    max_cycles: int,
    max_uops: int,
) -> int:
    check_name("backend", backend, SIMULATORS)
    program = load_program(file, settings, serial=serial)
    arrays = read_arrays(input_files(inputs))
    lines = _lines(script)
    with busy("running"):
        debugger = Debugger(
            program, arrays, backend=backend, seed=seed, max_cycles=max_cycles, max_uops=max_uops
        )
    session = Session(debugger)
    interactive = script is None and sys.stdin.isatty()
    for number, line in enumerate(lines, start=1):
        try:
            write(session.run(line))
        except AccelError as error:
            if not interactive:
                where = "the commands" if script is None else repr(str(script))
                raise AccelError(f"{where}, line {number}: {error}") from None
            write(f"{error}\n")
        if session.done:
            break
    return 1 if session.failed and not interactive else 0


def _lines(script: Path | None) -> Iterator[str]:
    if script is not None:
        try:
            return iter(script.read_text(encoding="utf-8-sig").splitlines())
        except OSError as error:
            raise ProgramError(f"commands {str(script)!r} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ProgramError(f"commands {str(script)!r} are not text: they are not UTF-8") from None
    return _typed() if sys.stdin.isatty() else iter(sys.stdin)


def _typed() -> Iterator[str]:
    with suppress(ImportError):
        import readline  # noqa: F401 - changes how input() works
    while True:
        try:
            yield input(_PROMPT)
        except EOFError:
            write("\n")
            return
