"""A run on the hardware as software drives it, with any engine."""

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
from accel.core.fault_causes import Cause
from accel.core.registers import REGISTERS, Access, joined, word_addresses, word_writes
from accel.core.scratchpad_specs import scratchpads_of
from accel.hw.datapath.scratchpads import words_of
from accel.hw.engines.hardware_run import Behaviour, HardwareRun, Records
from accel.image.dram import Dram
from accel.image.test_scenario import Tokens

Contents = tuple[npt.NDArray[Any], ...]
"""Scratchpad contents in declaration order. The first axis counts elements, or a table's words."""
CLOSED = "the engine is closed; open another one"
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
"""Cycles after which memory has answered everything, if it ever does."""
_GRACE = 1 << 20
"""Cycles beyond ``max_cycles`` for a run's last bursts."""


def empty_contents(config: Config) -> Contents:
    """Return zeros for all scratchpads: uint8[words, bytes of a word in software's format]."""
    return tuple(np.zeros(words_of(pad, config), dtype=np.uint8) for pad in scratchpads_of(config).values())


def in_words(contents: Contents, config: Config) -> Contents:
    """Return contents in the form of :func:`empty_contents`."""
    return tuple(
        np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(words_of(pad, config))
        for array, pad in zip(contents, scratchpads_of(config).values(), strict=True)
    )


class Engine(ABC):
    """One machine, simulated or real, with memory on its bus. Use it in a ``with`` statement."""

    config: Config
    observed = True
    """Whether events can be recorded."""

    @abstractmethod
    def configure(self, config: Config, behaviour: Behaviour) -> None:
        """Set the behaviour of memory."""

    @abstractmethod
    def reset(self) -> None:
        """Hold reset for some cycles."""

    @abstractmethod
    def preload(self, contents: Contents) -> None:
        """Write the scratchpads."""

    @abstractmethod
    def peek(self) -> Contents:
        """Return the scratchpads between runs, as from :func:`empty_contents`."""

    @abstractmethod
    def tokens(self) -> Tokens:
        """Return the token counters."""

    def accesses(self) -> dict[str, int]:
        """Return access counts of the last run, by the names of
        :func:`~accel.core.access_names.access_names`.

        Raises:
            AccelError: this hardware is not observed.
        """
        raise AccelError("this hardware does not count accesses; simulated hardware does")

    @abstractmethod
    def load_memory(self, dram: Dram) -> None:
        """Copy ``dram`` to the machine's memory."""

    @abstractmethod
    def save_memory(self, dram: Dram) -> None:
        """Copy what the machine has written to ``dram``."""

    @abstractmethod
    def write(self, address: int, word: int) -> bool:
        """Write a control register. Return whether the response is OKAY."""

    @abstractmethod
    def read(self, address: int) -> int | None:
        """Read a control register. Return None if the response is not OKAY."""

    @abstractmethod
    def advance(self, cycles: int) -> bool:
        """Simulate at most ``cycles`` cycles. Return whether the run has ended.

        Raises:
            HardwareError: the machine violated a rule of the bus.
            ProgramError: the wave file could not be written. It is deleted.
        """

    @abstractmethod
    def cycle(self) -> int:
        """Return the run's cycle."""

    @abstractmethod
    def record(self, on: bool) -> None:
        """Enable or disable recording. Earlier records are dropped."""

    @abstractmethod
    def records(self) -> Records:
        """Return the records."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources, and complete a wave file.

        Raises:
            ProgramError: the wave file could not be completed. It is deleted.
        """

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except ProgramError:
            if error is None:  # an earlier error takes precedence
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
            config: its :data:`~accel.core.config.RUN_FIELDS` apply to this run.
            address: of the first instruction.
            contents: scratchpads before the run, by default unchanged.
            max_cycles: a longer run ends with the cause ``limit``.
            behaviour: of memory, by default the timing contract's.
            patience: clock cycles after which an unfinished run is abandoned.
            progress: its exception abandons the run.
            stop_at: software stops the run in this cycle or later.
            bus_timeout: cycles without a transfer, while memory owes one, that end the run; 0: no limit.

        Raises:
            HardwareError: the machine violated a rule of the bus, refused to start, or does not end.
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
            accesses=self.accesses() if self.observed else None,
            records=self.records() if record else None,
        )

    def clear(self) -> None:
        """Clear tokens and status between runs."""
        self._set(control=REGISTERS["control"].bit("clear"))

    def give_up(self) -> None:
        """Abandon the current run, whether or not memory answers. Late answers are dropped.

        Raises:
            HardwareError: the bus does not accept offered addresses or beats. Only a reset helps.
        """
        self._set(control=REGISTERS["control"].bit("stop"))
        if not self.advance(_DRAINED):
            self.clear()

    def registers(self, *names: str) -> dict[str, int]:
        """Return the values of control registers.

        Raises:
            HardwareError: a register cannot be read.
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
