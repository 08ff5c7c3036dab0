"""The rules of AXI4 and AXI4-Lite, checked for every cycle on the values of the signals at the clock edge.

This module needs no simulator; :mod:`tests.cocotb.bench` samples the signals.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from accel.core.config import DRAM_ADDRESS_BITS, PAGE_BYTES, Config

INCREMENTING = 1
OKAY, EXOKAY, SLVERR, DECERR = range(4)


class Rule(Enum):
    """A rule. The value is its text."""

    RESET = "in reset, and in the cycle behind it, no channel is valid"
    KNOWN = "valid is known at all times, all else whenever valid is high"
    HELD = "valid stays high until ready is"
    STABLE = "what a channel carries does not change until it is taken"
    TYPE = "a burst increments its address"
    SIZE = "a beat is as wide as the bus"
    LENGTH = "a burst has no more beats than the configuration allows"
    ALIGNED = "a burst starts at a multiple of the bus's bytes"
    PAGE = "a burst does not cross a 4 KiB boundary"
    WINDOW = "nothing outside the DRAM window is read or written"
    ATTRIBUTES = "id, cache, prot and qos never change; answers carry the id"
    OUTSTANDING = "no more bursts are under way than the configuration allows"
    READ_UNASKED = "read data come only after their address was taken"
    READ_LAST = "RLAST is high in the last beat of a burst and in no other"
    WRITE_LAST = "WLAST is high in the last beat of a burst and in no other"
    ANSWER_UNASKED = "a write is answered once, after its address and its last beat were taken"
    ANSWER_KIND = "EXOKAY answers exclusive accesses, of which there are none"
    QUIET = "nothing is asked for when no run is going on"
    COMPLETE = "in the end every burst has had all its beats and its answer, and no beat is left over"


class Lines(NamedTuple):
    """A channel in one cycle; None stands for unknown bits. Without ``valid``, the other
    fields have no meaning."""

    valid: int | None
    ready: int | None
    carried: Mapping[str, int | None] = {}


class Violation(NamedTuple):
    cycle: int
    channel: str
    rule: Rule
    found: str

    def __str__(self) -> str:
        return f"cycle {self.cycle}: {self.channel}: {self.rule.value}; {self.found}"


class _Channel:
    """Rules that each channel must keep independently of the others."""

    def __init__(self, name: str, report: "_Report") -> None:
        self._name = name
        self._report = report
        self._waiting: Mapping[str, int | None] | None = None
        """Payload of the last cycle, if it was offered and not accepted."""

    def taken(self, lines: Lines) -> Mapping[str, int | None] | None:
        """Check one cycle outside reset; return the payload if a transfer takes place."""
        valid, ready, carried = lines
        if valid is None or (valid and ready is None):
            self._report(self._name, Rule.KNOWN, "VALID or READY is unknown")
        if self._waiting is not None and not valid:
            self._report(self._name, Rule.HELD, "it fell before it was taken")
        unknown = [name for name, value in carried.items() if value is None]
        if valid and unknown:
            self._report(self._name, Rule.KNOWN, f"{', '.join(unknown)} is unknown")
        if valid and self._waiting is not None and carried != self._waiting:
            changed = [name for name in carried if carried[name] != self._waiting[name]]
            self._report(self._name, Rule.STABLE, f"{', '.join(changed)} changed")
        self._waiting = carried if valid and not ready else None
        return carried if valid and ready else None

    def reset(self) -> None:
        """Forget the pending payload."""
        self._waiting = None


class _Report:
    def __init__(self) -> None:
        self.cycle = 0
        self.violations: list[Violation] = []

    def __call__(self, channel: str, rule: Rule, found: str) -> None:
        self.violations.append(Violation(self.cycle, channel, rule, found))


class _Monitor:
    """Checks the reset and each channel by itself. Nothing is checked before the first reset."""

    def __init__(self, names: Iterable[str]) -> None:
        self._report = _Report()
        self._channels = {name: _Channel(name, self._report) for name in names}
        self._was_reset: bool | None = None

    @property
    def violations(self) -> list[Violation]:
        return self._report.violations

    @property
    def cycle(self) -> int:
        return self._report.cycle

    def step(self, reset: bool, lines: Mapping[str, Lines]) -> None:
        """Check one cycle: the reset and each channel as they are at the clock's edge."""
        before, self._was_reset = self._was_reset, reset or (None if self._was_reset is None else False)
        if before:
            for name, channel in lines.items():
                if channel.valid != 0:
                    self._report(name, Rule.RESET, f"VALID is {channel.valid}")
        if reset:
            for channel_state in self._channels.values():
                channel_state.reset()
            self.reset()
        elif self._was_reset is not None:
            taken = {name: self._channels[name].taken(lines[name]) for name in self._channels}
            self.transfers(lines, taken)
        self._report.cycle += 1

    def reset(self) -> None:
        """Forget all pending transfers."""

    def transfers(
        self, lines: Mapping[str, Lines], taken: Mapping[str, Mapping[str, int | None] | None]
    ) -> None:
        """Check the transfers of this cycle."""


class _Burst(NamedTuple):
    address: int
    beats: int


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a machine's bus traffic: sizes in bytes, beats and bursts."""

    bus_bytes: int
    max_burst_beats: int
    outstanding: int
    base: int = 0
    size: int = 1 << DRAM_ADDRESS_BITS

    @classmethod
    def of(cls, config: Config) -> "Limits":
        return cls(
            bus_bytes=config.bus_bytes,
            max_burst_beats=config.max_burst_beats,
            outstanding=config.outstanding,
            base=config.mem_base,
            size=config.mem_size,
        )


class Axi4Monitor(_Monitor):
    """Both sides of an AXI4 port with one id and no exclusive accesses.

    Attributes:
        read_beats, write_beats: beats since the last reset.
        longest: beats of the longest burst so far.
        waits: for each channel, cycles in which it was valid and not ready.
        last_ends: whether RLAST ends a burst even in the wrong beat, so that later bursts match.
        quiet: whether the manager must not start a transfer, as after a reset.
    """

    ATTRIBUTES: Mapping[str, int] = {"id": 0, "cache": 0b0010, "prot": 0, "qos": 0}

    def __init__(self, limits: Limits) -> None:
        super().__init__(("ar", "r", "aw", "w", "b"))
        self.limits = limits
        self.longest = 0
        self.last_ends = False
        self.waits = dict.fromkeys(self._channels, 0)
        self.reset()

    def reset(self) -> None:
        self.quiet = True
        self.read_beats = self.write_beats = 0
        self._reads: deque[_Burst] = deque()
        self._beat = 0
        """Beats received of the oldest read burst."""
        self._addresses: deque[_Burst] = deque()
        """Addresses of writes with incomplete data."""
        self._data: deque[Mapping[str, int | None]] = deque()
        """Write beats that came before their address."""
        self._written = 0
        """Beats received for the oldest entry of ``_addresses``."""
        self._answerable = 0

    @property
    def idle(self) -> bool:
        """Whether no transfer is in flight."""
        return not (self._reads or self._addresses or self._data or self._answerable)

    @property
    def answers_due(self) -> int:
        """Number of writes with complete data and without a response."""
        return self._answerable

    def transfers(
        self, lines: Mapping[str, Lines], taken: Mapping[str, Mapping[str, int | None] | None]
    ) -> None:
        for name, channel in lines.items():
            self.waits[name] += bool(channel.valid and not channel.ready)
        for name in ("ar", "aw", "w"):
            if self.quiet and lines[name].valid:
                self._report(name, Rule.QUIET, "VALID is high")
        self._read_data(bool(lines["r"].valid), taken["r"])
        self._answer(bool(lines["b"].valid), taken["b"])
        if (address := taken["ar"]) is not None:
            burst = self._address("ar", address)
            self._reads.append(burst)
            self._in_window("ar", burst.address, burst.beats * self.limits.bus_bytes)
            if len(self._reads) > self.limits.outstanding:
                self._report("ar", Rule.OUTSTANDING, f"{len(self._reads)} reads are under way")
        if (address := taken["aw"]) is not None:
            self._addresses.append(self._address("aw", address))
            under_way = len(self._addresses) + self._answerable
            if under_way > self.limits.outstanding:
                self._report("aw", Rule.OUTSTANDING, f"{under_way} writes are under way")
        if (beat := taken["w"]) is not None:
            self._data.append(beat)
            self.write_beats += 1
        self._match()

    def finish(self) -> None:
        """Check that no transfer is left over when the machine reports that it is done."""
        left = {
            "ar": len(self._reads),
            "aw": len(self._addresses),
            "w": len(self._data),
            "b": self._answerable,
        }
        for channel, count in left.items():
            if count:
                self._report(channel, Rule.COMPLETE, f"{count} left over")

    def _address(self, channel: str, carried: Mapping[str, int | None]) -> _Burst:
        fields = {name: value or 0 for name, value in carried.items()}
        limits = self.limits
        burst = _Burst(fields["addr"], fields["len"] + 1)
        self.longest = max(self.longest, burst.beats)
        length = burst.beats * limits.bus_bytes
        last = burst.address + length - 1
        found = {
            Rule.TYPE: fields["burst"] != INCREMENTING and f"AxBURST is {fields['burst']}",
            Rule.SIZE: 1 << fields["size"] != limits.bus_bytes and f"AxSIZE is {fields['size']}",
            Rule.LENGTH: burst.beats > limits.max_burst_beats and f"it has {burst.beats} beats",
            Rule.ALIGNED: burst.address % limits.bus_bytes and f"it starts at {burst.address:#x}",
            Rule.PAGE: burst.address // PAGE_BYTES != last // PAGE_BYTES
            and f"it goes from {burst.address:#x} to {last:#x}",
        }
        for rule, what in found.items():
            if what:
                self._report(channel, rule, what)
        for name, value in self.ATTRIBUTES.items():
            if fields[name] != value:
                self._report(channel, Rule.ATTRIBUTES, f"{name} is {fields[name]}")
        return burst

    def _in_window(self, channel: str, address: int, length: int) -> None:
        base, size = self.limits.base, self.limits.size
        if address < base or address + length > -(-(base + size) // self.limits.bus_bytes) * (
            self.limits.bus_bytes
        ):
            self._report(channel, Rule.WINDOW, f"{length} bytes at {address:#x}")

    def _read_data(self, valid: bool, beat: Mapping[str, int | None] | None) -> None:
        if valid and not self._reads:
            self._report("r", Rule.READ_UNASKED, "no read is under way")
        if beat is None:
            return
        self.read_beats += 1
        self._check_answer("r", beat)
        if not self._reads:
            return
        self._beat += 1
        last = self._beat == self._reads[0].beats
        if bool(beat["last"]) != last:
            self._report("r", Rule.READ_LAST, f"beat {self._beat} of {self._reads[0].beats}")
        if beat["last"] if self.last_ends else last:
            self._reads.popleft()
            self._beat = 0

    def _answer(self, valid: bool, answer: Mapping[str, int | None] | None) -> None:
        if valid and not self._answerable:
            self._report("b", Rule.ANSWER_UNASKED, "no write waits for one")
        if answer is not None:
            self._check_answer("b", answer)
            self._answerable = max(0, self._answerable - 1)

    def _check_answer(self, channel: str, answer: Mapping[str, int | None]) -> None:
        if answer["id"] != self.ATTRIBUTES["id"]:
            self._report(channel, Rule.ATTRIBUTES, f"id is {answer['id']}")
        if answer["resp"] == EXOKAY:
            self._report(channel, Rule.ANSWER_KIND, "the answer is EXOKAY")

    def _match(self) -> None:
        """Assign write beats to their addresses. Either may have come first."""
        bus = self.limits.bus_bytes
        while self._addresses and self._data:
            burst, beat = self._addresses[0], self._data.popleft()
            address = burst.address + self._written * bus
            strobes = beat["strb"] or 0
            for lane in (0, bus - 1) if strobes == (1 << bus) - 1 else range(bus):
                byte = address + lane
                inside = self.limits.base <= byte < self.limits.base + self.limits.size
                if strobes >> lane & 1 and not inside:
                    self._report("w", Rule.WINDOW, f"the byte at {byte:#x}")
            self._written += 1
            last = self._written == burst.beats
            if bool(beat["last"]) != last:
                self._report("w", Rule.WRITE_LAST, f"beat {self._written} of {burst.beats}")
            if last:
                self._addresses.popleft()
                self._written = 0
                self._answerable += 1


class LiteMonitor(_Monitor):
    """Both sides of an AXI4-Lite port."""

    def __init__(self) -> None:
        super().__init__(("ar", "r", "aw", "w", "b"))
        self.reset()

    def reset(self) -> None:
        self._taken = {"ar": 0, "aw": 0, "w": 0}

    def transfers(
        self, lines: Mapping[str, Lines], taken: Mapping[str, Mapping[str, int | None] | None]
    ) -> None:
        for channel, needs, rule in (
            ("r", ("ar",), Rule.READ_UNASKED),
            ("b", ("aw", "w"), Rule.ANSWER_UNASKED),
        ):
            if lines[channel].valid and not all(self._taken[name] for name in needs):
                self._report(channel, rule, "nothing waits for one")
            if (answer := taken[channel]) is not None:
                for name in needs:
                    self._taken[name] = max(0, self._taken[name] - 1)
                if answer["resp"] == EXOKAY:
                    self._report(channel, Rule.ANSWER_KIND, "the answer is EXOKAY")
        for name in self._taken:
            self._taken[name] += taken[name] is not None
