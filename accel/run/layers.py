"""What every record of a network's layer says, of a run as of a saved one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer of a network's run.

    Attributes:
        name: of its main node.
        operator: its nodes' kinds.
        where: ``machine`` or ``host``.
        mapping: by which it was computed; empty on the host, and where that is not known.
        program: the number of the program that it is in, from 1; None on the host.
        cycles: from the end of the layer before; None on the host, or where time was not simulated.
    """

    name: str
    operator: str
    where: str
    mapping: str = ""
    program: int | None = None
    cycles: int | None = None


L = TypeVar("L", bound=Layer)


def layer_at(layers: Sequence[L], cycle: int) -> L | None:
    """The layer that a cycle went to, of all programs one behind the other; None if that is not known."""
    end = 0
    for layer in layers:
        end += layer.cycles or 0
        if cycle < end:
            return layer
    return None
