"""Programs of the Python packages ``yowasp-*``, which lie beside the interpreter."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from accel.base.errors import EngineError
from accel.base.extras import Extra, not_installed
from accel.base.files import locked

_LOOK_SECONDS = 1.0


def tool(name: str, need: str, extra: Extra) -> Path:
    """Where a program is.

    Args:
        name: of the program, and of the package that brings it.
        need: what needs it: ``synthesis``.
        extra: what installs it.

    Raises:
        EngineError: it is not installed.
    """
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        raise EngineError(not_installed(f"{need} needs {name}", extra))
    _prepare(path)
    return path


@cache
def _prepare(path: Path) -> None:
    """Have a program compiled, which takes all cores for a while where it has never run: other processes
    wait for that instead of doing the same. What is wrong with it shows when it is used."""
    with locked(Path(tempfile.gettempdir(), f"accel-{os.getuid()}-{path.name}.lock")):
        subprocess.run([str(path), "--version"], capture_output=True, check=False)  # noqa: S603


def run_tool(
    path: Path, arguments: Sequence[str], folder: Path, watch: Callable[[], None] | None = None
) -> None:
    """Run a program in a folder, to its end or to the caller's.

    Args:
        path: the program.
        arguments: on its command line.
        folder: where it runs.
        watch: called every second meanwhile.

    Raises:
        EngineError: it cannot be run, or fails, with the end of what it says.
    """
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen([str(path), *arguments], cwd=folder, stdout=said, stderr=said)  # noqa: S603
        except OSError as error:
            raise EngineError(f"{path.name} cannot be run: {error.strerror}") from None
        try:
            while process.poll() is None:
                try:
                    process.wait(_LOOK_SECONDS)
                except subprocess.TimeoutExpired:
                    if watch is not None:
                        watch()
        finally:
            process.kill()
            process.wait()
        if process.returncode:
            said.seek(0)
            text = said.read().decode(errors="replace")
            raise EngineError(f"{path.name} failed: {text.strip()[-500:]}")
