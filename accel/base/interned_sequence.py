"""A long sequence that stores each object once."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

ItemT = TypeVar("ItemT")


class Distinct(Generic[ItemT]):
    """A sequence by its distinct items."""

    def __init__(self, items: Sequence[ItemT]) -> None:
        keys = list(map(id, items))
        once = dict(zip(keys, items, strict=True))
        numbers = {key: number for number, key in enumerate(once)}
        self.every: list[ItemT] = list(once.values())
        self.places: npt.NDArray[np.intp] = np.fromiter(map(numbers.__getitem__, keys), np.intp, len(keys))

    @classmethod
    def of(cls, items: "Sequence[ItemT] | Distinct[ItemT]") -> "Distinct[ItemT]":
        return items if isinstance(items, Distinct) else cls(items)

    @classmethod
    def chosen(cls, items: Sequence[ItemT], places: npt.NDArray[np.intp]) -> "Distinct[ItemT]":
        first = np.full(len(items), len(places), dtype=np.intp)
        np.minimum.at(first, places, np.arange(len(places)))
        order = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(places))]
        ranks = np.zeros(len(items), dtype=np.intp)
        ranks[order] = np.arange(len(order))
        found = cls(())
        found.every = [items[number] for number in order.tolist()]
        found.places = ranks[places]
        return found

    def followed_by(self, item: ItemT) -> "Distinct[ItemT]":
        return Distinct.chosen([*self.every, item], np.append(self.places, len(self.every)))

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[ItemT]:
        return map(self.every.__getitem__, self.places.tolist())

    def column(self, value: Callable[[ItemT], Any], dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
        return np.array([value(one) for one in self.every], dtype=dtype)[self.places]

    def where(self, holds: Callable[[ItemT], bool]) -> npt.NDArray[np.intp]:
        return np.flatnonzero(self.column(holds, np.bool_))
