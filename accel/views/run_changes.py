"""Differences in cycles between two saved runs."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Generic, NamedTuple, TypeVar

from accel.run.critical_path import Segment, split_path
from accel.run.layer_record import Layer
from accel.run.wait_causes import Wait
from accel.views.saved_run import SavedRun

K = TypeVar("K")


class Change(NamedTuple, Generic[K]):
    """An amount of ``key`` in both runs."""

    key: K
    a: int
    b: int

    @property
    def difference(self) -> int:
        return self.b - self.a


class PathCause(NamedTuple):
    """Unit, cause, and known tensor of segments."""

    unit: str
    cause: Wait
    tensor: str | None

    @classmethod
    def of(cls, segment: Segment) -> "PathCause":
        return cls(segment.unit, segment.cause, segment.tensor)

    @property
    def text(self) -> str:
        """For example ``load read data (A)``."""
        return f"{self.unit} {self.cause}" + (f" ({self.tensor})" if self.tensor else "")


class LayerChange(NamedTuple):
    """A layer of two runs. ``causes`` are critical cycles, the largest difference first."""

    name: str
    a: Layer | None
    b: Layer | None
    causes: "tuple[Change[tuple[str, Wait]], ...]"

    @property
    def cycles(self) -> tuple[int | None, int | None]:
        return (None if self.a is None else self.a.cycles), (None if self.b is None else self.b.cycles)

    @property
    def difference(self) -> int:
        a, b = self.cycles
        return (b or 0) - (a or 0)

    @property
    def is_moved(self) -> bool:
        return self.a is not None and self.b is not None and self.a.where != self.b.where


def path_changes(a: Iterable[Segment], b: Iterable[Segment], key: Callable[[Segment], K]) -> list[Change[K]]:
    """Sum up two critical paths by key, the largest difference first."""
    sums: dict[K, list[int]] = defaultdict(lambda: [0, 0])
    for side, path in enumerate((a, b)):
        for one in path:
            sums[key(one)][side] += one.cycles
    found = [Change(name, *cycles) for name, cycles in sums.items()]
    return sorted(found, key=lambda one: (-abs(one.difference), -one.a - one.b, str(one.key)))


def layer_changes(a: SavedRun, b: SavedRun) -> list[LayerChange]:
    """Compare layers in the order of ``b``, then those only in ``a``."""
    first, second = _layers(a), _layers(b)
    found = []
    for key in {**second, **first}:
        layer_a, path_a = first.get(key, (None, ()))
        layer_b, path_b = second.get(key, (None, ()))
        causes = path_changes(path_a, path_b, lambda segment: (segment.unit, segment.cause))
        found.append(LayerChange(key[0], layer_a, layer_b, tuple(causes)))
    return found


def program_changes(a: SavedRun, b: SavedRun) -> list[Change[int]]:
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for side, run in enumerate((a, b)):
        for one in run.layers:
            if one.program is not None:
                sums[one.program][side] += one.cycles or 0
    return [Change(number, *sums[number]) for number in sorted(sums)]


def _layers(run: SavedRun) -> dict[tuple[str, int], tuple[Layer, Sequence[Segment]]]:
    count: Counter[str] = Counter()
    stops = list(accumulate(one.cycles or 0 for one in run.layers))
    found: dict[tuple[str, int], tuple[Layer, Sequence[Segment]]] = {}
    for layer, path in zip(run.layers, split_path(run.critical, stops), strict=True):
        found[layer.name, count[layer.name]] = layer, path
        count[layer.name] += 1
    return found
