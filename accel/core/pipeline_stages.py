"""The placement of pipeline registers."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations, pairwise


def spread(stages: int, steps: Sequence[int]) -> list[int]:
    """Return the number of registers after each step of logic, at least one after the last.

    The longest path between registers is as short as possible. Surplus registers follow the last step.
    """
    return list(_spread(stages, tuple(steps)))


@lru_cache
def _spread(stages: int, steps: tuple[int, ...]) -> tuple[int, ...]:
    gaps = len(steps) - 1
    between = min(stages, gaps)

    def stretches(cuts: tuple[int, ...]) -> list[int]:
        ends = [0, *(cut + 1 for cut in cuts), len(steps)]
        return sorted((sum(steps[a:b]) for a, b in pairwise(ends)), reverse=True)

    cuts = min(combinations(range(gaps), between), key=stretches)
    counts = [int(step in cuts) for step in range(len(steps))]
    counts[-1] = stages - between
    return tuple(counts)
