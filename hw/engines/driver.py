"""A run on the hardware, from reset to counters, as software drives it; the same for every engine."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.errors import AccelError, HardwareError, ProgramError
from accel.core.config import Config
from accel.core.faults import Cause
from accel.core.memories import scratchpads_of
from accel.core.registers import REGISTERS, Access, joined, word_addresses, word_writes
from accel.hw.engines.run import Behaviour, HardwareRun, Records
from accel.image.dram import Dram
from accel.image.scenario import Tokens

Contents = tuple[npt.NDArray[Any], ...]
"""Of the scratchpads, in the order of their declaration; elements along the first axis."""
Progress = Callable[[int], None]
"""Called now and then with the run's cycle."""

_RESULTS = (
    "cause",
    "fault_index",
    *(name for name, register in REGISTERS.items() if register.access is Access.COUNTER),
)
_SLICE_SECONDS = 0.2
_FIRST_SLICE = 2000
_DRAINED = 1 << 14
"""Cycles in which memory has answered what it was asked for, if it ever does."""
_GRACE = 1 << 20
"""Cycles that a run may take beyond ``max_cycles``: its last bursts complete."""


def empty_contents(config: Config) -> Contents:
    """Room for the contents of all scratchpads: uint8[depth, bytes of an element in software] each."""
    return tuple(
        np.zeros((pad.depth(config), pad.held_bytes(config)), dtype=np.uint8)
        for pad in scratchpads_of(config).values()
    )


class Engine(ABC):
    """One machine, in simulation or not, with memory on its bus. Used in a ``with`` statement."""

    config: Config
    observed = True
    """Whether events can be recorded."""

    # --- what engines provide ----------------------------------------------------------------------

    @abstractmethod
    def configure(self, config: Config, behaviour: Behaviour) -> None:
        """How memory behaves from now on."""

    @abstractmethod
    def reset(self) -> None:
        """Hold the reset for some cycles."""

    @abstractmethod
    def preload(self, contents: Contents) -> None:
        """Fill the scratchpads."""

    @abstractmethod
    def peek(self) -> Contents:
        """What the scratchpads hold between runs, as :func:`empty_contents`."""

    @abstractmethod
    def tokens(self) -> Tokens:
        """What the token counters hold."""

    @abstractmethod
    def load_memory(self, dram: Dram) -> None:
        """Have memory hold what ``dram`` holds."""

    @abstractmethod
    def save_memory(self, dram: Dram) -> None:
        """Have ``dram`` hold what the machine has written to memory."""

    @abstractmethod
    def write(self, address: int, word: int) -> bool:
        """Write a control register; returns whether the answer was OKAY."""

    @abstractmethod
    def read(self, address: int) -> int | None:
        """Read a control register; None if the answer was not OKAY."""

    @abstractmethod
    def advance(self, cycles: int) -> bool:
        """Up to so many cycles; returns whether the run has ended.

        Raises:
            HardwareError: the machine broke a rule of the bus.
            ProgramError: the wave file cannot be written any further; it is deleted.
        """

    @abstractmethod
    def cycle(self) -> int:
        """The run's cycle."""

    @abstractmethod
    def record(self, on: bool) -> None:
        """Whether to note what the observation ports show; forgets earlier notes."""

    @abstractmethod
    def records(self) -> Records:
        """The notes."""

    @abstractmethod
    def close(self) -> None:
        """Give back what it holds; a wave file is complete then.

        Raises:
            ProgramError: the wave file could not be written whole; it is deleted.
        """

    # --- what follows from that --------------------------------------------------------------------

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except ProgramError:
            if error is None:  # else that is what the user should hear of
                raise

    def run(
        self,
        config: Config,
        dram: Dram,
        *,
        address: int,
        length: int,
        contents: Contents | None = None,
        max_cycles: int,
        behaviour: Behaviour | None = None,
        record: bool = False,
        patience: int | None = None,
        progress: Progress | None = None,
        stop_at: int | None = None,
        bus_timeout: int = 0,
    ) -> HardwareRun:
        """Run a program that is in memory.

        Args:
            config: of the machine; of its :data:`~accel.core.config.RUN_FIELDS` those of this run.
            dram: memory before the run; it is changed.
            address: of the first instruction.
            length: instructions.
            contents: of the scratchpads before the run; as they are if not given.
            max_cycles: a longer run ends there with the cause ``limit``.
            behaviour: of memory, that of the timing contract if not given.
            record: note events.
            patience: clock cycles after which a run that has not ended is given up.
            progress: told where the run is. If it raises, the run is given up, too.
            stop_at: software stops a run that is in this cycle, or behind it.
            bus_timeout: cycles in which memory owes something and does nothing that end a run; 0: none do.

        Raises:
            HardwareError: the machine broke a rule of the bus, refused to start, or does not end.
        """
        if config.hardware != self.config.hardware:
            raise AccelError(f"configuration {config} is run on hardware built from {self.config}")
        self.configure(config, behaviour or Behaviour())
        if contents is not None:
            self.preload(contents)
        self.load_memory(dram)
        self.record(record)
        self._set(
            program_address=address,
            program_length=length,
            serial=config.serial,
            mem_base=config.mem_base,
            mem_size=config.mem_size,
            max_cycles=max_cycles,
            bus_timeout=bus_timeout,
        )
        self._set(control=REGISTERS["control"].bit("start"))
        try:
            self._await(max_cycles + _GRACE if patience is None else patience, progress, stop_at)
        except BaseException:
            with suppress(HardwareError):
                self.give_up()
            raise
        values = self.registers(*_RESULTS)
        self.save_memory(dram)
        return HardwareRun(
            config=config,
            cause=Cause(values.pop("cause")),
            index=values.pop("fault_index"),
            counters=values,
            tokens=self.tokens(),
            records=self.records() if record else None,
        )

    def clear(self) -> None:
        """Forget tokens and status, as software does between runs."""
        self._set(control=REGISTERS["control"].bit("clear"))

    def give_up(self) -> None:
        """End the run that is going on, whether or not memory answers; answers that come later are dropped.

        Raises:
            HardwareError: the bus does not take what it is offered, and only a reset helps.
        """
        self._set(control=REGISTERS["control"].bit("stop"))
        if not self.advance(_DRAINED):
            self.clear()

    def registers(self, *names: str) -> dict[str, int]:
        """The values of control registers.

        Raises:
            HardwareError: one cannot be read.
        """
        words = []
        for address in word_addresses(names):
            word = self.read(address)
            if word is None:
                raise HardwareError(f"the hardware refuses to read the register at {address:#05x}")
            words.append(word)
        return joined(names, words)

    def _set(self, **values: int) -> None:
        for address, word in word_writes(values):
            if not self.write(address, word):
                raise HardwareError(
                    f"the hardware refuses to write {word:#x} to the register at {address:#05x}"
                )

    def _await(self, patience: int, progress: Progress | None, stop_at: int | None) -> None:
        """Advance in slices short enough to be interrupted."""
        size = _FIRST_SLICE
        done = 0
        while True:
            begin = time.perf_counter()
            if stop_at is not None:
                size = min(size, max(1, stop_at - self.cycle()))
            if self.advance(size):
                return
            if stop_at is not None and self.cycle() >= stop_at:
                self._set(control=REGISTERS["control"].bit("stop"))
                stop_at = None
            done += size
            if done >= patience:
                raise HardwareError(f"the hardware has not ended its run after {done} clock cycles")
            if progress is not None:
                progress(self.cycle())
            seconds = time.perf_counter() - begin
            size = min(
                max(1, int(size * min(4.0, _SLICE_SECONDS / max(seconds, 1e-6)))), max(1, patience - done)
            )
