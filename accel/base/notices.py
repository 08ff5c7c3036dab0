"""Notices of slow steps, which commands show."""

import sys
from collections.abc import Callable

_show: Callable[[str], None] | None = None


def notice(text: str) -> None:
    """Show a notice, if this process shows any."""
    if _show is not None:
        _show(text)


def show_notices_on_terminal() -> None:
    """Show notices on stderr if it is a terminal."""
    global _show  # noqa: PLW0603  # one setting of the process
    _show = (lambda text: print(f"accel: {text}", file=sys.stderr)) if sys.stderr.isatty() else None
