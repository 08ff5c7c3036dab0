"""What two runs have different amounts of: cycles by cause, and by layer."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Generic, NamedTuple, TypeVar

from accel.run.critical import Segment, cut
from accel.run.layers import Layer
from accel.run.waits import Wait
from accel.views.saved import SavedRun

K = TypeVar("K")


class Change(NamedTuple, Generic[K]):
    """Something that both runs have some of.

    Attributes:
        key: what it is.
        a, b: how much.
    """

    key: K
    a: int
    b: int

    @property
    def difference(self) -> int:
        """How much more the second has."""
        return self.b - self.a


class Why(NamedTuple):
    """Cycles of the critical paths: whose, for what cause, and for which tensor, if that is known."""

    unit: str
    cause: Wait
    tensor: str | None

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.unit} {self.cause}" + (f" ({self.tensor})" if self.tensor else "")


class LayerChange(NamedTuple):
    """A layer that one of two networks' runs has, or both.

    Attributes:
        name: of its main node.
        a, b: the layer in either run; None where it has none of this name.
        causes: what its cycles went to on the critical paths, by unit and cause, the largest differences
            first; they sum up to the difference of the layer's cycles.
    """

    name: str
    a: Layer | None
    b: Layer | None
    causes: "tuple[Change[tuple[str, Wait]], ...]"

    @property
    def cycles(self) -> tuple[int | None, int | None]:
        """Of both; None on the host, and where there is no such layer."""
        return (None if self.a is None else self.a.cycles), (None if self.b is None else self.b.cycles)

    @property
    def difference(self) -> int:
        """How many cycles more the second takes."""
        a, b = self.cycles
        return (b or 0) - (a or 0)

    @property
    def moved(self) -> bool:
        """Whether it is on the machine in one of the runs and on the host in the other."""
        return self.a is not None and self.b is not None and self.a.where != self.b.where


def changes(a: Iterable[Segment], b: Iterable[Segment], key: Callable[[Segment], K]) -> list[Change[K]]:
    """Cycles of two critical paths by a key, the largest differences first."""
    sums: dict[K, list[int]] = defaultdict(lambda: [0, 0])
    for side, path in enumerate((a, b)):
        for one in path:
            sums[key(one)][side] += one.cycles
    found = [Change(name, *cycles) for name, cycles in sums.items()]
    return sorted(found, key=lambda one: (-abs(one.difference), -one.a - one.b, str(one.key)))


def layer_changes(a: SavedRun, b: SavedRun) -> list[LayerChange]:
    """The layers of two networks' runs, in the order of the second, then those that only the first has."""
    first, second = _layers(a), _layers(b)
    found = []
    for key in {**second, **first}:
        (one, path), (other, more) = first.get(key, (None, ())), second.get(key, (None, ()))
        causes = changes(path, more, lambda segment: (segment.unit, segment.cause))
        found.append(LayerChange(key[0], one, other, tuple(causes)))
    return found


def program_changes(a: SavedRun, b: SavedRun) -> list[Change[int]]:
    """Cycles of each program of networks, by its number; the k-th of either are beside each other."""
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for side, run in enumerate((a, b)):
        for one in run.layers:
            if one.program is not None:
                sums[one.program][side] += one.cycles or 0
    return [Change(number, *sums[number]) for number in sorted(sums)]


def _layers(run: SavedRun) -> dict[tuple[str, int], tuple[Layer, Sequence[Segment]]]:
    """Layers with their part of the critical path, by their names and, of those that share one, a number."""
    seen: Counter[str] = Counter()
    stops = list(accumulate(one.cycles or 0 for one in run.layers))
    found: dict[tuple[str, int], tuple[Layer, Sequence[Segment]]] = {}
    for one, path in zip(run.layers, cut(run.critical, stops), strict=True):
        found[one.name, seen[one.name]] = one, path
        seen[one.name] += 1
    return found
