"""How a program is run: the same options whatever runs it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from accel.base.arguments import check_integer
from accel.base.errors import AccelError, nearest
from accel.image.scenario import Start
from accel.sim.functional.executor import DEFAULT_MAX_UOPS, Order
from accel.sim.timing.model import DEFAULT_MAX_CYCLES

if TYPE_CHECKING:
    from accel.hw.engines.driver import Progress

ORDERS = ("program", "random")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a program is run.

    Attributes:
        seed: of random inputs, of what is in the scratchpads at the start, and of a random order.
        order: of functional execution, ``program`` or ``random``.
        max_cycles, max_uops: limits.
        stop_at: the cycle in which the run is stopped, if it has not ended; on hardware, when software sees
            that this cycle has come, which takes a few more.
        bus_timeout: cycles in which memory owes something and does nothing that end a run; 0: none do.
        engine: what simulates the hardware, see :data:`~accel.hw.engines.choose.ENGINES`.
        wave: of the hardware, a VCD or FST file to write.
        record: of the hardware, keep events; the simulator always does.
        look: of the hardware, have the scratchpads hold at the end what its own hold.
        progress: of the hardware, called now and then with the cycle.

    Raises:
        AccelError: a negative seed or cycle, a limit that is no positive integer, or no such order.
    """

    seed: int = 0
    order: Order = "program"
    max_cycles: int = DEFAULT_MAX_CYCLES
    max_uops: int = DEFAULT_MAX_UOPS
    stop_at: int | None = None
    bus_timeout: int = 0
    engine: str | None = None
    wave: Path | None = None
    record: bool = False
    look: bool = False
    progress: "Progress | None" = None

    def __post_init__(self) -> None:
        checked = {
            "seed": check_seed(self.seed),
            "max_cycles": check_integer("max_cycles", self.max_cycles, error=AccelError),
            "max_uops": check_integer("max_uops", self.max_uops, error=AccelError),
            "bus_timeout": check_integer("bus_timeout", self.bus_timeout, least=0, error=AccelError),
        }
        if self.stop_at is not None:
            checked["stop_at"] = check_integer("stop_at", self.stop_at, least=0, error=AccelError)
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.order not in ORDERS:
            raise AccelError(f"the order is {self.order!r}; {nearest(self.order, ORDERS)}")

    def within(self, start: Start) -> Self:
        """The same with the limits that a program starts from, where those are lower."""
        return replace(
            self,
            max_cycles=min(self.max_cycles, start.max_cycles or self.max_cycles),
            max_uops=min(self.max_uops, start.max_uops or self.max_uops),
        )


def check_seed(seed: object) -> int:
    """A seed, as Python's own integer.

    Raises:
        AccelError: it is none, or negative.
    """
    return check_integer("the seed", seed, least=0, error=AccelError)
