"""What a core is made of, and which of its parts meet where."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Value

from accel.core.isa import Unit
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
        return Cat(queue.issue.valid for queue in self.queues.values())

    @property
    def occupied(self) -> Value:
        """A bit per unit: something is in flight in it."""
        return Cat(unit.retirement.occupied for unit in self.units.values())

    @property
    def retiring(self) -> Value:
        """A bit per unit: an instruction retires in it."""
        return Cat(unit.retirement.valid for unit in self.units.values())

    @property
    def lacking(self) -> Value:
        """A bit per unit: what heads its queue lacks a token."""
        return Cat(unit.lacking for unit in self.units.values())

    @property
    def complete(self) -> Value:
        """Whether a program has been executed: there was one, and all of it has retired."""
        to_do = self.fetch.more | self.dispatch.busy | self.waiting.any() | self.occupied.any()
        return ~to_do & (self.control.program_length != 0)

    @property
    def drained(self) -> Value:
        """Whether the bus has taken and answered everything of runs that were not given up."""
        return ~(self.port.busy | self.store.writing | self.store.sending)

    @property
    def offers(self) -> Value:
        """Whether the bus has not taken all that it was offered."""
        return self.port.arvalid | self.store.sending

    @property
    def stale(self) -> Value:
        """Whether the bus owes answers to a run that was given up."""
        return self.port.stale | self.store.stale

    def cycle_classes(self) -> dict[Unit, tuple[Value, Value, Value]]:
        """Of each unit, whether it is busy, else waits for memory, else for a token."""
        fetch = self.fetch
        classes: dict[Unit, tuple[Value, Value, Value]] = {
            Unit.FETCH: (fetch.fetched.push, fetch.more & fetch.waiting, fetch.more)
        }
        for unit, part in self.units.items():
            memory = part.moving if unit is Unit.COMPUTE else part.retirement.occupied | part.issue.start
            classes[unit] = (part.busy, memory, part.lacking & part.control.enable)
        return classes
