"""Memory and bus in Python, cycle by cycle as in ``native/harness.cpp``."""

from collections import deque
from dataclasses import dataclass, field
from random import Random

from msgspec import Struct

from accel.base.errors import HardwareError
from accel.core.config import PAGE_BYTES, Config
from accel.hw.engines.hardware_run import Behaviour
from accel.image.dram import Dram

OKAY = 0
SLVERR = 2
_LATEST = 64
"""Upper limit (exclusive) of hostile memory's random delays, in cycles."""


class Burst(Struct):
    address: int
    beats: int
    ordinal: int
    earliest: int = 0
    done: int = 0


class ReadBeat(Struct):
    data: int
    response: int
    last: bool


@dataclass
class Memory:
    """In each cycle, :meth:`offer` sets its signals, then ``*_taken`` report transfers."""

    config: Config
    behaviour: Behaviour
    now: int = 0
    dram: Dram = field(init=False)
    beat: ReadBeat | None = None
    response: int | None = None

    def __post_init__(self) -> None:
        self.dram = Dram.of(self.config)
        self._rng = Random(self.behaviour.seed)
        self._reads: deque[Burst] = deque()
        self._writes: deque[Burst] = deque()
        self._beats: deque[tuple[int, int, bool]] = deque()
        self._responses: deque[tuple[int, int]] = deque()
        self._read_ordinal = self._write_ordinal = 0
        self._dirty: set[int] = set()

    @property
    def quiet(self) -> bool:
        return not (self._reads or self._writes or self._beats or self._responses)

    def ready(self) -> bool:
        return not self.behaviour.hostile or self._toss()

    def offer(self) -> None:
        """Offer a read beat and a write response until they are accepted."""
        if self.beat is None and self._reads and self._reads[0].earliest <= self.now and self.ready():
            burst = self._reads[0]
            bad = burst.ordinal == self.behaviour.bad_read and burst.done == self.behaviour.bad_beat
            size = self.config.bus_bytes
            self.beat = ReadBeat(
                data=self._read(burst.address + burst.done * size, size),
                response=SLVERR if bad else OKAY,
                last=burst.done + 1 == burst.beats,
            )
        if self.response is None and self._responses and self._responses[0][0] <= self.now:
            self.response = self._responses[0][1]

    def read_asked(self, address: int, length: int) -> None:
        burst = self._burst(address, length, self._read_ordinal)
        burst.earliest = self.now - 1 + self.config.read_latency + self._delay()
        burst.beats -= burst.ordinal == self.behaviour.short_read
        burst.beats += burst.ordinal == self.behaviour.surplus_read
        self._read_ordinal += 1
        self._reads.append(burst)

    def read_taken(self) -> None:
        self.beat = None
        self._reads[0].done += 1
        if self._reads[0].done == self._reads[0].beats:
            self._reads.popleft()

    def write_asked(self, address: int, length: int) -> None:
        self._writes.append(self._burst(address, length, self._write_ordinal))
        self._write_ordinal += 1
        self._write_beats()

    def written(self, data: int, strobe: int, last: bool) -> None:
        self._beats.append((data, strobe, last))
        self._write_beats()

    def response_taken(self) -> None:
        self.response = None
        self._responses.popleft()

    def save(self, dram: Dram) -> None:
        for address in sorted(self._dirty):
            size = min(PAGE_BYTES, dram.base + dram.size - address)
            dram.write(address, self.dram.read(address, size))

    def _toss(self) -> bool:
        return self._rng.random() < 0.5

    def _delay(self) -> int:
        return self._rng.randrange(_LATEST) if self.behaviour.hostile and self._toss() else 0

    def _burst(self, address: int, length: int, ordinal: int) -> Burst:
        size = self.config.bus_bytes
        last = address + length * size
        end = self.config.mem_base + self.config.mem_size
        if address % size:
            raise HardwareError(f"the design asks for a burst at {address:#x}, which is inside of a beat")
        if address // PAGE_BYTES != last // PAGE_BYTES:
            raise HardwareError(f"the design asks for a burst at {address:#x} across a 4 KiB boundary")
        if address + size <= self.config.mem_base or last >= end:
            raise HardwareError(f"the design asks for a burst at {address:#x}, outside of the DRAM window")
        return Burst(address, length + 1, ordinal)

    def _read(self, address: int, size: int) -> int:
        """Read a beat. Bytes outside the window are zero."""
        inside = max(0, min(size, self.dram.base + self.dram.size - address))
        return int.from_bytes(self.dram.read(address, inside).tobytes(), "little")

    def _write_beats(self) -> None:
        size = self.config.bus_bytes
        while self._writes and self._beats:
            burst = self._writes[0]
            data, strobe, last = self._beats.popleft()
            address = burst.address + burst.done * size
            raw = data.to_bytes(size, "little")
            for lane in range(size):
                if strobe >> lane & 1:
                    self._write_byte(address + lane, raw[lane : lane + 1])
            burst.done += 1
            if last != (burst.done == burst.beats):
                raise HardwareError(
                    f"the design marks a wrong beat of the burst at {burst.address:#x} as last"
                )
            if last:
                bad = burst.ordinal == self.behaviour.bad_write
                earliest = self.now + self.config.write_latency + self._delay()
                self._responses.append((earliest, SLVERR if bad else OKAY))
                self._writes.popleft()

    def _write_byte(self, address: int, content: bytes) -> None:
        if not self.dram.base <= address < self.dram.base + self.dram.size:
            raise HardwareError(f"the design writes to {address:#x}, outside of the DRAM window")
        self.dram.write(address, content)
        self._dirty.add(address // PAGE_BYTES * PAGE_BYTES)
