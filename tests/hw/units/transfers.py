"""Random LOADs and STOREs for single units, and a bus that answers their reads."""

from collections import deque
from random import Random
from typing import Any

from accel.base.records import replace
from accel.core.config import Config
from accel.core.fault_causes import instruction_fault
from accel.core.instruction_access import dram_rows
from accel.core.isa import Instruction, Transfer, Unit
from accel.core.timing_rules import Burst, transfer_bursts
from accel.image.dram import Dram
from tests.hw.bench import as_integer
from tests.strategies import random_transfer


def good_transfer(rng: Random, config: Config, unit: Unit) -> Transfer:
    """A random valid transfer of the unit, with random tokens to its neighbours."""
    while True:
        transfer = random_transfer(rng, config, x_size=9, dram_bytes=6000)
        flags = {
            "push_prev": unit.previous is not None and rng.random() < 0.5,
            "push_next": unit.next is not None and rng.random() < 0.5,
        }
        if transfer.unit is unit and instruction_fault(transfer, config) is None:
            return replace(transfer, **flags)


def bursts_of(transfer: Instruction, config: Config) -> list[Burst]:
    rows = dram_rows(transfer, config)
    return [] if rows is None else transfer_bursts(rows, config)


class Answers:
    """The other end of a read channel. It grants at random, answers in order, and records requests."""

    def __init__(self, read: Any, dram: Dram, config: Config, rng: Random) -> None:
        self._read, self._dram, self._config, self._rng = read, dram, config, rng
        self._beats: deque[int] = deque()
        self.asked: list[tuple[int, Burst]] = []
        """Index of the instruction and burst of every grant."""

    @property
    def idle(self) -> bool:
        """Whether all requests are answered."""
        return not self._beats

    def step(self, context: Any) -> None:
        """Drive the channel for one cycle."""
        read, bus = self._read, self._config.bus_bytes
        granted = bool(context.get(read.valid)) and self._rng.random() < 0.6
        context.set(read.granted, granted)
        beat = bool(self._beats) and self._rng.random() < 0.7
        context.set(read.beat_valid, beat)
        if beat:
            context.set(read.beat_data, as_integer(self._dram.read(self._beats.popleft(), bus)))
        else:
            context.set(read.beat_data, self._rng.getrandbits(8 * bus))
        if granted:
            request = context.get(read.request)
            self.asked.append((request.index, Burst(request.address, request.beats)))
            first = request.address // bus * bus
            self._beats.extend(range(first, first + request.beats * bus, bus))
