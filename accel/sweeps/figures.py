"""The figures of a task: what a worker hands back, a journal keeps and a table shows."""

import reprlib

from accel.base.errors import SweepError

Figure = int | float | str | None
Figures = dict[str, Figure]
"""Columns by name. A run has at least ``error`` and ``message``, and without an error ``cycles``; a synthesis
has counts of cells only."""

CELLS = "cells_"
"""Beginning of the columns of a synthesis."""
_TEXTS = ("error", "message")
_LIMIT = 1 << 63
"""Numbers are smaller: tables may be written with integers of 64 bits."""


def check_figures(found: object) -> Figures:
    """Figures that somebody wrote down, if that is what they are.

    Raises:
        SweepError: saying what is wrong and what would be right.
    """
    if not isinstance(found, dict) or not found:
        raise SweepError(f"figures is {reprlib.repr(found)}; an object of figures by name is needed")
    for name, figure in found.items():
        _check(name, figure)
    if not is_synthesis(found):
        for name in _TEXTS:
            if name not in found:
                raise SweepError(f"figures lacks {name!r}; every run has it")
        if found["error"] is None and not isinstance(found.get("cycles"), int):
            raise SweepError(
                f"cycles is {reprlib.repr(found.get('cycles'))}; an integer is needed of a run without error"
            )
    return found


def is_synthesis(figures: Figures) -> bool:
    """Whether figures are those of a synthesis rather than of a run."""
    return all(name.startswith(CELLS) for name in figures)


def _check(name: str, figure: object) -> None:
    if name in _TEXTS:
        if figure is not None and not (isinstance(figure, str) and _is_unicode(figure)):
            raise SweepError(f"{name} is {reprlib.repr(figure)}; it must be a text or null")
    elif figure is not None and not _is_number(figure):
        shown = reprlib.repr(name)
        raise SweepError(f"{shown} is {reprlib.repr(figure)}; it must be a number in 0..2**63-1 or null")


def _is_unicode(text: str) -> bool:
    """Whether a text can be written; half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_number(figure: object) -> bool:
    return isinstance(figure, int | float) and not isinstance(figure, bool) and 0 <= figure < _LIMIT
