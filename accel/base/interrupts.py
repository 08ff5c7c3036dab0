"""Interrupts where no code could handle one."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

EXIT_INTERRUPTED = 130
"""Exit code of a process that was interrupted, as shells have it."""


def end_at_interrupt() -> None:
    """Let an interrupt end the process immediately, without output, with exit code 130.

    It also makes CPython forget an earlier interrupt inside ``exec`` of a string, as in ``dataclass``.
    Otherwise CPython ends the process later, even if the exception was caught.

    For the main thread, unless interrupts are ignored.
    """
    exec("")  # noqa: S102
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        try:
            signal.signal(signal.SIGINT, lambda *_: os._exit(EXIT_INTERRUPTED))
        except ValueError:  # not the main thread, which is the one that is interrupted
            return


@contextmanager
def ended_by_interrupt() -> Iterator[None]:
    """Do so while modules are imported, where an exception may be printed, or taken for a missing module."""
    before = signal.getsignal(signal.SIGINT)
    end_at_interrupt()
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)
