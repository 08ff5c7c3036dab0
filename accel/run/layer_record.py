"""A layer of a network's run, as current and saved runs both record it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer of a network's run.

    Attributes:
        name: of its main node.
        operator: kinds of its nodes.
        where: ``machine`` or ``host``.
        mapping: the mapping that computed it. Empty on the host, or if it is not known.
        program: number of its program, from 1. None on the host.
        cycles: since the end of the previous layer. None on the host, or if time was not simulated.
    """

    name: str
    operator: str
    where: str
    mapping: str = ""
    program: int | None = None
    cycles: int | None = None


L = TypeVar("L", bound=Layer)


def layer_at(layers: Sequence[L], cycle: int) -> L | None:
    """Return the layer to which a cycle belongs, counting the cycles of all programs. None if it is not
    known."""
    end = 0
    for layer in layers:
        end += layer.cycles or 0
        if cycle < end:
            return layer
    return None
