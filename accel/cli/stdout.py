"""Standard output that may be full or closed."""

import os
import sys
from contextlib import suppress
from pathlib import Path

import click

from accel.base.errors import AccelError


def write(text: str) -> None:
    """Write text to stdout. If the reader has closed it, the rest is dropped.

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
    """Print on stderr which files have been written, so that stdout contains results only."""
    with suppress(OSError):  # stderr is closed
        for path in paths:
            click.echo(f"wrote {path}", err=True)


def discard_output() -> None:
    """Redirect stdout to nowhere, so that output that failed is not written again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
