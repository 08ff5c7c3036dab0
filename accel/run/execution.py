"""How a program ran on memories that were there already, on whatever backend."""

from dataclasses import dataclass

from accel.base.errors import MachineError
from accel.core.events import Timing
from accel.image.scenario import Tokens
from accel.sim.simulator import Simulation


@dataclass(frozen=True, kw_only=True)
class Execution:
    """How a run ended.

    Attributes:
        error: what ended it early, or None.
        uops: micro-ops executed; None if the hardware stopped early, since it does not count them.
        tokens: what the counters hold at the end.
        timing: what is known of cycles; None if time was not simulated.
    """

    error: MachineError | None
    uops: int | None
    tokens: Tokens
    timing: Timing | None

    def raise_if_bad(self) -> None:
        """Raise what ended the run early.

        Raises:
            MachineError, LimitExceeded, DeadlockError: with cause, instruction and cycle.
        """
        if self.error is not None:
            raise self.error


def simulated(simulation: Simulation) -> Execution:
    """The same of a simulation."""
    error: MachineError | None = None
    try:
        simulation.raise_if_bad()
    except MachineError as found:
        error = found
    functional = simulation.functional
    return Execution(error=error, uops=functional.uops, tokens=functional.tokens, timing=simulation.timing)
