"""Unique names."""

from collections.abc import Iterable


class Names:
    """Used names."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def reserve(self, names: Iterable[str]) -> None:
        self._taken.update(names)

    def fresh(self, name: str) -> str:
        """Return the name, or the first unused of ``name_2``, ``name_3`` ..., in constant time."""
        found, number = name, self._numbers.get(name, 1)
        while found in self._taken:
            number += 1
            found = f"{name}_{number}"
        self._numbers[name] = number
        self._taken.add(found)
        return found
