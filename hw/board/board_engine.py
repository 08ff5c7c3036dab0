"""A board as an engine."""

import time
import zlib
from collections.abc import Iterator

import numpy as np

from accel.base.errors import ConfigError, EngineError, HardwareError
from accel.core.config import PAGE_BYTES, Config
from accel.core.registers import REGISTERS, constants
from accel.hw.board.serial_link import Link
from accel.hw.engines.engine_driver import Contents, Engine
from accel.hw.engines.hardware_run import Behaviour, Records
from accel.image.dram import Dram
from accel.image.test_scenario import NO_TOKENS, Tokens

_STILL = 5.0
"""Seconds without progress after which a run is abandoned."""
_WRITINGS = 3
"""Attempts to write a page."""


class Board(Engine):
    """The machine on a board, whose memory begins at 0. The caller closes ``link``.

    It has no events, and its scratchpads and token counters cannot be accessed. Pages are sent only if their
    checksum differs from the board's, and fetched only if a run has changed them.
    """

    observed = False

    def __init__(self, link: Link, config: Config) -> None:
        self.config = config
        self._link = link
        self._held: dict[int, bytes] = {}
        """Known pages by address."""
        found = self.registers("id", "version")
        wanted = constants(config)
        for name, value in found.items():
            if value != wanted[name]:
                raise HardwareError(
                    f"the board's register {name!r} holds {value:#x}; accel's core has {wanted[name]:#x}"
                )
        for name, value in wanted.items():
            word = self.read(REGISTERS[name].offset)
            if word != value:
                there = "none" if word is None else word
                raise ConfigError(f"the board's machine has {name}={there}; {config.name} has {value}")

    def configure(self, config: Config, behaviour: Behaviour) -> None:
        if behaviour != Behaviour():
            raise EngineError("the memory of a board has one behaviour; only a simulated one can be changed")
        size = self._link.info.memory_bytes
        if config.mem_base or config.mem_size > size:
            raise EngineError(
                f"the DRAM window is {config.mem_size} bytes from {config.mem_base:#x} on; "
                f"the board has {size} from 0 on"
            )

    def reset(self) -> None:
        self._link.reset()

    def preload(self, contents: Contents) -> None:
        """Do nothing: checked programs do not depend on initial scratchpads."""

    def peek(self) -> Contents:
        raise EngineError("scratchpads on a board cannot be looked into; the backend rtl shows them")

    def tokens(self) -> Tokens:
        return NO_TOKENS

    def load_memory(self, dram: Dram) -> None:
        contents = dict(dram.pages())
        for address, size in self._pages(dram):
            wanted = contents.get(address, np.zeros(PAGE_BYTES, np.uint8))[:size].tobytes()
            if self._held.get(address) == wanted or self._link.holds(address, wanted):
                self._held[address] = wanted
                continue
            for _ in range(_WRITINGS):
                self._link.write(address, wanted)
                if self._link.holds(address, wanted):
                    break
            else:
                raise HardwareError(f"the board's memory at {address:#x} does not keep what is written to it")
            self._held[address] = wanted

    def save_memory(self, dram: Dram) -> None:
        for address, size in self._pages(dram):
            if self._link.holds(address, self._held[address]):
                continue
            found = self._link.read(address, size)
            if not self._link.holds(address, found):
                raise HardwareError(
                    f"the board's memory at {address:#x} reads as {zlib.crc32(found):#010x} "
                    "over the line, but not on the board"
                )
            self._held[address] = found
            dram.write(address, found)

    def write(self, address: int, word: int) -> bool:
        return self._link.write_register(address, word)

    def read(self, address: int) -> int | None:
        return self._link.read_register(address)

    def advance(self, cycles: int) -> bool:
        begin = last = self.cycle()
        end = time.monotonic() + _STILL
        while last < begin + cycles:
            if not self.registers("status")["status"] & REGISTERS["status"].bit("running"):
                return True
            now = self.cycle()
            if now != last:
                last, end = now, time.monotonic() + _STILL
            elif time.monotonic() > end:
                raise HardwareError(f"the board stands still in cycle {now} of the run, without having ended")
        return False

    def cycle(self) -> int:
        return self.registers("cycles")["cycles"]

    def record(self, on: bool) -> None:
        if on:
            raise EngineError("events on a board cannot be recorded; the backend rtl does")

    def records(self) -> Records:
        raise EngineError("events on a board cannot be recorded; the backend rtl does")

    def close(self) -> None:
        pass

    def _pages(self, dram: Dram) -> Iterator[tuple[int, int]]:
        for address in range(dram.base, dram.base + dram.size, PAGE_BYTES):
            yield address, min(PAGE_BYTES, dram.base + dram.size - address)
