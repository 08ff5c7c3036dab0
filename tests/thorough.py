"""Parameters of tests that the suite runs only with ``--thorough``."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


def also(*values: Any) -> Any:
    """One set of a test's parameters, for ``--thorough`` alone."""
    return pytest.param(*values, marks=pytest.mark.thorough)


def first_of_each(values: Iterable[T], kind: Callable[[T], Hashable]) -> list[Any]:
    """The first value of each kind; the others are for ``--thorough``."""
    seen: set[Hashable] = set()
    found = []
    for value in values:
        found.append(also(value) if kind(value) in seen else value)
        seen.add(kind(value))
    return found
