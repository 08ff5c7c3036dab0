"""The units of the machine."""

from enum import IntEnum


class Unit(IntEnum):
    """The four units. The token chain is load, compute, store."""

    FETCH = 0
    LOAD = 1
    COMPUTE = 2
    STORE = 3

    @property
    def previous(self) -> "Unit | None":
        return _PREVIOUS.get(self)

    @property
    def next(self) -> "Unit | None":
        return _NEXT.get(self)

    @property
    def label(self) -> str:
        return self.name.lower()


_NEXT = {Unit.LOAD: Unit.COMPUTE, Unit.COMPUTE: Unit.STORE}
_PREVIOUS = {following: unit for unit, following in _NEXT.items()}
