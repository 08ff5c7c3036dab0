"""Standard output that may be full or closed."""

import os
import sys
from contextlib import suppress
from pathlib import Path

import click

from accel.base.errors import AccelError


def write(text: str) -> None:
    """Write to stdout, or drop the text if the reader has closed it. Raise an AccelError for other errors."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        discard_output()
        if not isinstance(error, BrokenPipeError):
            raise AccelError(f"standard output cannot be written: {error.strerror}") from None


def wrote(*paths: Path) -> None:
    """Name written files on stderr, so that stdout has only results."""
    with suppress(OSError):  # stderr is closed
        for path in paths:
            click.echo(f"wrote {path}", err=True)


def discard_output() -> None:
    """Redirect stdout, so that failed output is not written again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
