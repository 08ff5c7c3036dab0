"""Standard output, which may be full, closed, or read no longer."""

import os
import sys

from accel.base.errors import AccelError


def write(text: str) -> None:
    """Text on stdout; if whoever reads it has seen enough, the rest goes nowhere.

    Raises:
        AccelError: it cannot be written.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        discard_output()
        if not isinstance(error, BrokenPipeError):
            raise AccelError(f"standard output cannot be written: {error.strerror}") from None


def discard_output() -> None:
    """Let stdout lead nowhere, so that nobody tries again what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
