"""The interface of every backend."""

from abc import abstractmethod
from types import TracebackType
from typing import Protocol, Self

from msgspec import Struct

from accel.base.errors import MachineError
from accel.core.events import Timing
from accel.image.dram import Dram
from accel.image.image import Image
from accel.image.test_scenario import Tokens
from accel.run.run_options import RunOptions
from accel.sim.functional.scratchpads import Scratchpads


class Execution(Struct, frozen=True, kw_only=True):
    """The outcome of a run.

    Attributes:
        error: the error that ended it early, if any.
        uops: executed micro-ops. None if hardware stopped early.
        timing: None if time was not simulated.
    """

    error: MachineError | None
    uops: int | None
    tokens: Tokens
    timing: Timing | None

    def raise_if_bad(self) -> None:
        """Raise the error, if any."""
        if self.error is not None:
            raise self.error


class Backend(Protocol):
    """Runs programs. Use it in a ``with`` statement."""

    name: str

    @abstractmethod
    def execute(self, program: Image, dram: Dram, pads: Scratchpads, options: RunOptions) -> Execution:
        """Run a program on existing memories.

        Args:
            program: with the timing of this run.
            dram: instructions and data. Changed.
            pads: changed, first by the program's presets.
            options: the program's limits hold where lower.

        Raises:
            HardwareError: the hardware violates a rule.
        """

    @abstractmethod
    def reset(self) -> None:
        """Discard all state of earlier runs except DRAM."""

    @abstractmethod
    def close(self) -> None:
        """Release resources."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
