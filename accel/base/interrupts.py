"""Interrupts where no code could handle one."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

EXIT_INTERRUPTED = 130
"""As shells report an interrupt."""


def end_at_interrupt() -> None:
    """Let an interrupt end the process immediately, without output, with exit code 130.

    Call it in the main thread. It changes nothing if interrupts are ignored. It also makes CPython forget an
    earlier interrupt inside ``exec`` of a string, as in ``dataclass``, which would end the process later,
    even if caught.
    """
    exec("")  # noqa: S102
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        try:
            signal.signal(signal.SIGINT, lambda *_: os._exit(EXIT_INTERRUPTED))
        except ValueError:  # only the main thread is interrupted
            return


@contextmanager
def ended_by_interrupt() -> Iterator[None]:
    """Do so during imports, where an exception may be printed or taken for a missing module."""
    before = signal.getsignal(signal.SIGINT)
    end_at_interrupt()
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)
