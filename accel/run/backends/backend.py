"""What every backend offers, and how a run on it ended."""

from abc import abstractmethod
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from accel.base.errors import MachineError
from accel.core.events import Timing
from accel.image.dram import Dram
from accel.image.image import Image
from accel.image.scenario import Tokens
from accel.run.options import RunOptions
from accel.sim.functional.scratchpads import Scratchpads


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


class Backend(Protocol):
    """What runs programs, one after the other; used in a ``with`` statement.

    Attributes:
        name: as in :data:`~accel.run.backends.choose.BACKENDS`.
    """

    name: str

    @abstractmethod
    def execute(self, program: Image, dram: Dram, pads: Scratchpads, options: RunOptions) -> Execution:
        """Run a program on memories that are there already.

        Args:
            program: with the timing of this run.
            dram: with instructions and data in it; it is changed.
            pads: the scratchpads, which are changed; first they get what the program presets.
            options: of the run; the program's own limits hold where they are lower.

        Raises:
            HardwareError: the hardware breaks a rule.
        """

    @abstractmethod
    def reset(self) -> None:
        """Forget what an earlier run has left, but for what is in DRAM."""

    @abstractmethod
    def close(self) -> None:
        """Give back what it holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
