"""Notices and progress of slow steps."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]
"""Called with numbers of completed and all steps."""

_show: Callable[[str], None] | None = None
_progress: Progress | None = None


def notice(text: str) -> None:
    if _show is not None:
        _show(text)


def show_notices_on_terminal() -> None:
    global _show  # noqa: PLW0603  # one setting of the process
    _show = (lambda text: print(f"accel: {text}", file=sys.stderr)) if sys.stderr.isatty() else None


def steps_done(done: int, total: int) -> None:
    """Any thread may call this."""
    if _progress is not None:
        _progress(done, total)


@contextmanager
def listening(progress: Progress | None) -> Iterator[None]:
    global _progress  # noqa: PLW0603  # one setting of the process
    before, _progress = _progress, progress
    try:
        yield
    finally:
        _progress = before
