"""Names that nothing else has."""

from collections.abc import Iterable


class Names:
    """Used names, and a generator of new ones.

    Args:
        taken: names that :meth:`fresh` does not return.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def reserve(self, names: Iterable[str]) -> None:
        """Names that :meth:`fresh` is not to give either."""
        self._taken.update(names)

    def fresh(self, name: str) -> str:
        """The name, or if it is taken the first of ``name_2``, ``name_3`` ... that is not; it is taken then.
        Cost does not grow with how often a name was asked for."""
        found, number = name, self._numbers.get(name, 1)
        while found in self._taken:
            number += 1
            found = f"{name}_{number}"
        self._numbers[name] = number
        self._taken.add(found)
        return found
