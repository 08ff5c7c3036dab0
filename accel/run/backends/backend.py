"""The interface of every backend, and the outcome of a run."""

from abc import abstractmethod
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from accel.base.errors import MachineError
from accel.core.events import Timing
from accel.image.dram import Dram
from accel.image.image import Image
from accel.image.test_scenario import Tokens
from accel.run.run_options import RunOptions
from accel.sim.functional.scratchpads import Scratchpads


@dataclass(frozen=True, kw_only=True)
class Execution:
    """The outcome of a run.

    Attributes:
        error: the error that ended it early, or None.
        uops: micro-ops executed. None if the hardware stopped early, since it does not count them.
        tokens: the counters at the end.
        timing: the cycles. None if time was not simulated.
    """

    error: MachineError | None
    uops: int | None
    tokens: Tokens
    timing: Timing | None

    def raise_if_bad(self) -> None:
        """Raise the error that ended the run early.

        Raises:
            MachineError, LimitExceeded, DeadlockError: with cause, instruction and cycle.
        """
        if self.error is not None:
            raise self.error


class Backend(Protocol):
    """Runs programs one after the other. Use it in a ``with`` statement.

    Attributes:
        name: as in :data:`~accel.run.backends.open_backend.BACKENDS`.
    """

    name: str

    @abstractmethod
    def execute(self, program: Image, dram: Dram, pads: Scratchpads, options: RunOptions) -> Execution:
        """Run a program on existing memories.

        Args:
            program: with the timing of this run.
            dram: holds instructions and data. It is changed.
            pads: the scratchpads. They are changed, and first receive the contents that the program presets.
            options: of the run. The lower of their limits and the program's own ones hold.

        Raises:
            HardwareError: the hardware violates a rule.
        """

    @abstractmethod
    def reset(self) -> None:
        """Discard all state of earlier runs except DRAM."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
