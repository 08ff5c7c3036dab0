"""The options of a run."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from accel.base.arguments import check_integer
from accel.base.errors import AccelError, nearest
from accel.base.records import replace
from accel.base.run_choices import DEFAULT_MAX_CYCLES, DEFAULT_MAX_UOPS
from accel.image.test_scenario import Start
from accel.sim.functional.executor import Order

if TYPE_CHECKING:
    from accel.hw.engines.engine_driver import Progress

ORDERS = ("program", "random")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run.

    Attributes:
        seed: of random inputs, initial scratchpad contents and a random order.
        order: of functional execution, ``program`` or ``random``.
        max_cycles, max_uops: limits.
        stop_at: cycle in which software stops the run. Hardware takes a few cycles more.
        bus_timeout: cycles to wait for memory, 0 for no timeout.
        engine: see :data:`~accel.hw.engines.open_engine.ENGINES`.
        wave: VCD or FST file.
        record: record events. The simulator always does.
        look: copy scratchpads back at the end.
        progress: called with the cycle.

    Raises:
        AccelError: a negative seed or cycle, a limit below 1, or an unknown order.
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
        """Return options with the program's limits where lower."""
        return replace(
            self,
            max_cycles=min(self.max_cycles, start.max_cycles or self.max_cycles),
            max_uops=min(self.max_uops, start.max_uops or self.max_uops),
        )


def check_seed(seed: object) -> int:
    """Raise an AccelError unless the seed is a non-negative integer."""
    return check_integer("the seed", seed, least=0, error=AccelError)
