"""Offsets for tensors with live ranges."""

from collections.abc import Mapping, Sequence

from msgspec import Struct


class LiveRange(Struct, frozen=True, kw_only=True):
    name: str
    nbytes: int
    first: int
    last: int

    def overlaps(self, other: "LiveRange") -> bool:
        return self.first <= other.last and other.first <= self.last


class MemoryPlan(Struct, frozen=True, kw_only=True):
    """``bound`` is the live bytes of the busiest step, the least possible size."""

    live_ranges: tuple[LiveRange, ...]
    offsets: dict[str, int]
    nbytes: int
    bound: int


def plan_memory(live_ranges: Sequence[LiveRange], alignment: int) -> MemoryPlan:
    """Place each tensor in the smallest gap that is free during its live range."""
    sizes = {one.name: -(-one.nbytes // alignment) * alignment for one in live_ranges}
    orders = (
        sorted(live_ranges, key=lambda one: (-sizes[one.name], one.first, one.name)),
        sorted(live_ranges, key=lambda one: (one.first, -sizes[one.name], one.name)),
    )
    nbytes, offsets = min((_place(order, sizes) for order in orders), key=lambda plan: plan[0])
    steps = range(max((one.last for one in live_ranges), default=-1) + 1)
    live = [sum(sizes[one.name] for one in live_ranges if one.first <= step <= one.last) for step in steps]
    return MemoryPlan(
        live_ranges=tuple(live_ranges), offsets=offsets, nbytes=nbytes, bound=max(live, default=0)
    )


def _place(order: Sequence[LiveRange], sizes: Mapping[str, int]) -> tuple[int, dict[str, int]]:
    offsets: dict[str, int] = {}
    for at, one in enumerate(order):
        occupied = sorted(
            (offsets[other.name], offsets[other.name] + sizes[other.name])
            for other in order[:at]
            if other.overlaps(one)
        )
        offsets[one.name] = _smallest_gap(occupied, sizes[one.name])
    return max((offsets[name] + sizes[name] for name in offsets), default=0), offsets


def _smallest_gap(occupied: Sequence[tuple[int, int]], nbytes: int) -> int:
    best: tuple[int, int] | None = None
    end = 0
    for start, stop in occupied:
        gap = start - end
        if gap >= nbytes and (best is None or gap < best[0]):
            best = gap, end
        end = max(end, stop)
    return end if best is None else best[1]
