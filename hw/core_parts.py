"""The submodules of a core, and their common conditions."""

from typing import Any

from amaranth.hdl import Cat, Value
from msgspec import Struct

from accel.core.isa import Unit
from accel.hw.bus.bus_timeout import BusTimeout
from accel.hw.bus.control_registers import Control
from accel.hw.bus.read_port import ReadPort
from accel.hw.datapath.access_probes import AccessProbes
from accel.hw.datapath.queue import ReservedQueue
from accel.hw.units.compute import Compute
from accel.hw.units.dispatch import Dispatch
from accel.hw.units.fetch import Fetch
from accel.hw.units.load import Load
from accel.hw.units.store import Store
from accel.hw.units.token_counters import TokenCounters


class Parts(Struct, frozen=True):
    """Conditions of units have one bit per unit."""

    control: Control
    fetch: Fetch
    load: Load
    compute: Compute
    store: Store
    port: ReadPort
    tokens: TokenCounters
    watch: BusTimeout
    dispatch: Dispatch
    queues: dict[Unit, ReservedQueue]
    probes: AccessProbes | None

    @property
    def units(self) -> dict[Unit, Any]:
        return {Unit.LOAD: self.load, Unit.COMPUTE: self.compute, Unit.STORE: self.store}

    @property
    def waiting(self) -> Value:
        return Cat(queue.issue.valid for queue in self.queues.values())

    @property
    def occupied(self) -> Value:
        return Cat(unit.retirement.occupied for unit in self.units.values())

    @property
    def retiring(self) -> Value:
        return Cat(unit.retirement.valid for unit in self.units.values())

    @property
    def lacking(self) -> Value:
        return Cat(unit.lacking for unit in self.units.values())

    @property
    def complete(self) -> Value:
        """The program is not empty, and all of it has retired."""
        to_do = self.fetch.more | self.dispatch.busy | self.waiting.any() | self.occupied.any()
        return ~to_do & (self.control.program_length != 0)

    @property
    def drained(self) -> Value:
        """The bus has taken and answered everything, except for abandoned runs."""
        return ~(self.port.busy | self.store.writing | self.store.sending)

    @property
    def offers(self) -> Value:
        return self.port.arvalid | self.store.sending

    @property
    def stale(self) -> Value:
        """The bus owes answers to an abandoned run."""
        return self.port.stale | self.store.stale

    def cycle_classes(self) -> dict[Unit, tuple[Value, Value, Value]]:
        fetch = self.fetch
        classes: dict[Unit, tuple[Value, Value, Value]] = {
            Unit.FETCH: (fetch.fetched.push, fetch.more & fetch.waiting, fetch.more)
        }
        for unit, part in self.units.items():
            memory = part.moving if unit is Unit.COMPUTE else part.retirement.occupied | part.issue.start
            classes[unit] = (part.busy, memory, part.lacking & part.control.enable)
        return classes
