"""What a core is made of, and which of its parts meet where."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Value

from accel.core.isa import Unit
from accel.core.token_rules import Counter
from accel.hw.bus.control import Control
from accel.hw.bus.port import ReadPort
from accel.hw.bus.watch import Watch
from accel.hw.datapath.queue import HeadQueue
from accel.hw.units.compute import Compute
from accel.hw.units.dispatch import Dispatch
from accel.hw.units.fetch import Fetch
from accel.hw.units.load import Load
from accel.hw.units.store import Store
from accel.hw.units.tokens import TokenCounters


@dataclass(frozen=True)
class Parts:
    """What a core is made of."""

    control: Control
    fetch: Fetch
    load: Load
    compute: Compute
    store: Store
    port: ReadPort
    tokens: TokenCounters
    watch: Watch
    dispatch: Dispatch
    queues: dict[Unit, HeadQueue]

    @property
    def units(self) -> dict[Unit, Any]:
        """The units behind queues."""
        return {Unit.LOAD: self.load, Unit.COMPUTE: self.compute, Unit.STORE: self.store}

    @property
    def waiting(self) -> Value:
        """A bit per unit: its queue has a head."""
        return Cat(queue.valid for queue in self.queues.values())

    def all(self, name: str) -> Value:
        """One port of each unit."""
        return Cat(getattr(unit, name) for unit in self.units.values())

    def cycle_classes(self) -> dict[Unit, tuple[Value, Value, Value]]:
        """Of each unit, whether it is busy, else waits for memory, else for a token."""
        fetch = self.fetch
        classes: dict[Unit, tuple[Value, Value, Value]] = {
            Unit.FETCH: (fetch.push, fetch.more & fetch.waiting, fetch.more)
        }
        for unit, part in self.units.items():
            memory = part.moving if unit is Unit.COMPUTE else part.occupied | part.start
            classes[unit] = (part.busy, memory, part.lacking & part.enable)
        return classes


def token_counters(unit: Unit) -> tuple[Sequence[Counter | None], Sequence[Counter | None]]:
    """Counters that a unit pops from and pushes to: those of its previous and of its next neighbour."""
    ends = {(counter.source, counter.target): counter for counter in Counter}
    neighbours = (unit.previous, unit.next)
    pops = [None if n is None else ends[n, unit] for n in neighbours]
    pushes = [None if n is None else ends[unit, n] for n in neighbours]
    return pops, pushes
