"""Figures of a task."""

from accel.base.errors import SweepError
from accel.base.json_types import shown

Figure = int | float | str | None
Figures = dict[str, Figure]
"""By column. A run has ``error`` and ``message``, and without an error ``cycles``. A placement has
:data:`FREQUENCY` instead of ``cycles``. A synthesis only has counts of cells."""

CELLS = "cells_"
FREQUENCY = "frequency"
"""Of a placed machine, in MHz."""
_TEXTS = ("error", "message")
_LIMIT = 1 << 63
"""Tables may have 64-bit integers."""


def check_figures(figures: object) -> Figures:
    """Raise a SweepError about the first wrong entry."""
    if not isinstance(figures, dict) or not figures:
        raise SweepError(f"figures is {shown(figures)}; an object of figures by name is needed")
    for name, figure in figures.items():
        _check(name, figure)
    if not is_synthesis(figures):
        for name in _TEXTS:
            if name not in figures:
                raise SweepError(f"figures lacks {name!r}; every run has it")
        cycles = figures.get("cycles")
        if figures["error"] is None and FREQUENCY not in figures and not isinstance(cycles, int):
            raise SweepError(f"cycles is {shown(cycles)}; an integer is needed of a run without error")
    return figures


def is_synthesis(figures: Figures) -> bool:
    return all(name.startswith(CELLS) for name in figures)


def _check(name: str, figure: object) -> None:
    if name in _TEXTS:
        if figure is not None and not (isinstance(figure, str) and _is_unicode(figure)):
            raise SweepError(f"{name} is {shown(figure)}; it must be a text or null")
    elif figure is not None and not _is_number(figure):
        raise SweepError(f"{shown(name)} is {shown(figure)}; it must be a number in 0..2**63-1 or null")


def _is_unicode(text: str) -> bool:
    """Half a surrogate pair cannot be written."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_number(figure: object) -> bool:
    return isinstance(figure, int | float) and not isinstance(figure, bool) and 0 <= figure < _LIMIT
