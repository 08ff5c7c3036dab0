"""Pareto dominance of vectors of losses."""

from collections.abc import Sequence

Losses = tuple[float, ...]


def dominates(one: Losses, other: Losses) -> bool:
    """Whether ``one`` is at least as good in every loss, and better in one."""
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


def pareto_front(losses: Sequence[Losses]) -> list[int]:
    """Return indices of non-dominated vectors, in order, with all equal ones."""
    front: list[int] = []
    for index in sorted(range(len(losses)), key=lambda one: losses[one]):
        if not any(dominates(losses[other], losses[index]) for other in front):
            front.append(index)
    return sorted(front)
