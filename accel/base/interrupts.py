"""Interrupts, where no code of ours could answer to one."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

EXIT_INTERRUPTED = 130
"""Exit code of a process that was interrupted, as shells have it."""


def end_at_interrupt() -> None:
    """From now on an interrupt ends the process immediately, without output, with exit code 130.

    It also makes CPython forget an earlier interrupt. If one strikes inside ``exec`` of a string, as
    ``dataclass`` uses it, CPython ends the process with that signal later, even if the exception was caught.
    Each ``exec`` of a string resets this state.

    For the main thread only; elsewhere, and where interrupts are ignored, nothing changes.
    """
    exec("")  # noqa: S102
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        try:
            signal.signal(signal.SIGINT, lambda *_: os._exit(EXIT_INTERRUPTED))
        except ValueError:  # not the main thread, which is the one that is interrupted
            return


@contextmanager
def ended_by_interrupt() -> Iterator[None]:
    """As :func:`end_at_interrupt`, while modules are imported: an exception that is raised in the middle of
    an import may be printed, or taken for a module that is missing."""
    before = signal.getsignal(signal.SIGINT)
    end_at_interrupt()
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)
