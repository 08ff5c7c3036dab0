"""Choices of graph rewriting."""

from typing import Literal, get_args

from accel.base.errors import GraphError, nearest

Search = Literal["none", "greedy", "backtrack", "saturate"]
"""Apply rules not at all, wherever one simplifies, or where a search predicts fewer cycles."""
SEARCHES: tuple[Search, ...] = get_args(Search)
SEARCHES_BY_COST: tuple[Search, ...] = ("backtrack", "saturate")
"""They predict the cycles of each graph on the machine."""
RELAXATION = 1.05
"""Backtracking expands graphs that cost at most this multiple of the best."""
SECONDS = 10.0
"""Default limit of a search."""


def check_search(search: object) -> None:
    if search not in SEARCHES:
        raise GraphError(f"the search {search!r} does not exist; {nearest(search, SEARCHES)}")
