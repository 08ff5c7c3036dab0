"""A layer of a network's run."""

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct


class Layer(Struct, frozen=True, kw_only=True):
    """A layer in a current or saved run.

    Attributes:
        mapping: empty on the host, or if unknown.
        program: counted from 1. None on the host.
        cycles: since the previous layer, if simulated.
    """

    name: str
    operator: str
    where: str
    mapping: str = ""
    program: int | None = None
    cycles: int | None = None


L = TypeVar("L", bound=Layer)


def layer_at(layers: Sequence[L], cycle: int) -> L | None:
    """Return the layer of a cycle, counting the cycles of all programs."""
    end = 0
    for layer in layers:
        end += layer.cycles or 0
        if cycle < end:
            return layer
    return None
