"""Programs of the ``yowasp-*`` packages."""

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from accel.base.atomic_files import locked
from accel.base.child_processes import run_program
from accel.base.errors import DesignError, EngineError
from accel.base.optional_extras import Extra, not_installed


def tool(name: str, need: str, extra: Extra) -> Path:
    """Return a program's path. ``need`` is the feature for the message, for example ``synthesis``."""
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        raise EngineError(not_installed(f"{need} needs {name}", extra))
    _prepare(path)
    return path


@cache
def _prepare(path: Path) -> None:
    """Let a program compile itself on first use, which takes all cores for a while. Others wait."""
    with locked(Path(tempfile.gettempdir(), f"accel-{os.getuid()}-{path.name}.lock")):
        run_program([str(path), "--version"])


def run_tool(
    path: Path, arguments: Sequence[str], folder: Path, watch: Callable[[], None] | None = None
) -> None:
    """Run a program in a folder. ``watch`` is called every second, and its exceptions end the program.

    Raises:
        DesignError: the program reports an error.
        EngineError: it cannot be run, or another process ended it.
    """
    with tempfile.TemporaryFile() as log, tempfile.TemporaryDirectory(dir=folder.resolve()) as scratch:
        environment = os.environ | {"TMPDIR": scratch}  # a program that is killed leaves its files
        try:
            done = run_program(
                [str(path), *arguments], folder=folder, environment=environment, output=log, watch=watch
            )
        except OSError as error:
            raise EngineError(f"{path.name} cannot be run: {error.strerror}") from None
        if done.returncode < 0:
            raise EngineError(
                f"{path.name} was ended by signal {-done.returncode}; there may be too little memory"
            )
        if done.returncode:
            log.seek(0)
            text = log.read().decode(errors="replace")
            raise DesignError(f"{path.name} failed: {text.strip()[-500:]}")
