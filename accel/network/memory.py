"""Memory: where tensors lie that live for a while, so that few bytes are needed at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Lifetime:
    """A tensor that needs room.

    Attributes:
        name: of the tensor.
        nbytes: that it needs.
        first, last: the steps from which and until which it needs them, both included.
    """

    name: str
    nbytes: int
    first: int
    last: int

    def meets(self, other: "Lifetime") -> bool:
        """Whether both need their room in one step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, kw_only=True)
class MemoryPlan:
    """Where tensors lie.

    Attributes:
        lifetimes: the tensors.
        offsets: of each, by name.
        nbytes: that all of them need together.
        bound: bytes that no plan goes below: the most that are needed in one step.
    """

    lifetimes: tuple[Lifetime, ...]
    offsets: dict[str, int]
    nbytes: int
    bound: int


def plan(lifetimes: Sequence[Lifetime], step: int) -> MemoryPlan:
    """Give each tensor the tightest gap that is free while it lives, in the better of two
    orders: the largest tensors first, or the earliest.

    Args:
        lifetimes: the tensors.
        step: offsets are multiples of it.
    """
    rounded = {one.name: -(-one.nbytes // step) * step for one in lifetimes}
    orders = (
        sorted(lifetimes, key=lambda one: (-rounded[one.name], one.first, one.name)),
        sorted(lifetimes, key=lambda one: (one.first, -rounded[one.name], one.name)),
    )
    nbytes, offsets = min((_placed(order, rounded) for order in orders), key=lambda found: found[0])
    steps = range(max((one.last for one in lifetimes), default=-1) + 1)
    needed = [sum(rounded[one.name] for one in lifetimes if one.first <= now <= one.last) for now in steps]
    return MemoryPlan(
        lifetimes=tuple(lifetimes),
        offsets=offsets,
        nbytes=nbytes,
        bound=max(needed, default=0),
    )


def _placed(order: Sequence[Lifetime], rounded: Mapping[str, int]) -> tuple[int, dict[str, int]]:
    """Bytes that all need together, and the offset of each, placed one after another."""
    offsets: dict[str, int] = {}
    for at, one in enumerate(order):
        taken = sorted(
            (offsets[other.name], offsets[other.name] + rounded[other.name])
            for other in order[:at]
            if other.meets(one)
        )
        offsets[one.name] = _tightest(taken, rounded[one.name])
    return max((offsets[name] + rounded[name] for name in offsets), default=0), offsets


def _tightest(taken: Sequence[tuple[int, int]], nbytes: int) -> int:
    """The start of the smallest gap of so many bytes, or what is behind everything."""
    best: tuple[int, int] | None = None
    reached = 0
    for start, stop in taken:
        gap = start - reached
        if gap >= nbytes and (best is None or gap < best[0]):
            best = gap, reached
        reached = max(reached, stop)
    return reached if best is None else best[1]
