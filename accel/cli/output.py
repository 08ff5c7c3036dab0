"""Standard output, which may be full, closed, or read no longer."""

import os
import sys
from contextlib import suppress
from pathlib import Path

import click

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


def wrote(*paths: Path) -> None:
    """Say which files have been written: on stderr, so that what stdout leads to holds results only."""
    with suppress(OSError):  # nobody listens
        for path in paths:
            click.echo(f"wrote {path}", err=True)


def discard_output() -> None:
    """Let stdout lead nowhere, so that nobody tries again what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
