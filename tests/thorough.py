"""Parameters of tests: those that the suite runs only with ``--thorough``, and those of one process."""

from collections.abc import Callable, Collection, Hashable, Iterable
from itertools import product
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


def also(*values: Any) -> Any:
    """One set of a test's parameters, for ``--thorough`` alone."""
    return pytest.param(*values, marks=pytest.mark.thorough)


def grouped(group: str, *values: Any, thorough: bool = False) -> Any:
    """One set of a test's parameters. One process has all tests of a group, so that none waits while another
    compiles what they need."""
    marks = [pytest.mark.xdist_group(group), *([pytest.mark.thorough] if thorough else [])]
    return pytest.param(*values, marks=marks)


def first_of_each(
    values: Iterable[T], kind: Callable[[T], Hashable], is_slow: Callable[[T], bool] = lambda value: False
) -> list[Any]:
    """The first value of each kind, unless it is slow; the others are for ``--thorough``."""
    seen: set[Hashable] = set()
    found = []
    for value in values:
        found.append(also(value) if kind(value) in seen or is_slow(value) else value)
        seen.add(kind(value))
    return found


def diagonal(*axes: Collection[Any]) -> list[Any]:
    """All combinations of several parameters; without ``--thorough`` few, with each value of each."""
    places = [range(len(axis)) for axis in axes]
    few = {tuple(n % len(axis) for axis in axes) for n in range(max(map(len, axes)))}
    combined = zip(product(*places), product(*axes), strict=True)
    return [values if place in few else also(*values) for place, values in combined]
