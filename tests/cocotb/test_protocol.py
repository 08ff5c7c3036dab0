"""Monitors accept legal traffic and report planted violations."""

import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from accel.base.records import replace
from tests.cocotb.protocol import EXOKAY, INCREMENTING, OKAY, Axi4Monitor, Limits, Lines, LiteMonitor, Rule
from tests.strategies import examples

LIMITS = Limits(bus_bytes=8, max_burst_beats=16, outstanding=64, base=0x4000, size=0x3000)
Cycle = dict[str, Lines]
Recording = list[Cycle]
"""Channels of each cycle. The first two cycles are in reset. The third and the last are silent."""
SILENT: Cycle = {name: Lines(0, 0) for name in ("ar", "r", "aw", "w", "b")}


# --- legal traffic --------------------------------------------------------------------------------


class Source:
    """A channel's sender, which holds each item until it is accepted."""

    def __init__(self) -> None:
        self.items: deque[Mapping[str, int]] = deque()
        self.current: Mapping[str, int] | None = None

    def lines(self, rng: random.Random) -> Lines:
        if self.current is None and self.items and rng.random() < 0.6:
            self.current = self.items.popleft()
        ready = int(rng.random() < 0.6)
        return Lines(0, ready) if self.current is None else Lines(1, ready, self.current)

    def taken(self, lines: Lines) -> bool:
        if lines.valid and lines.ready:
            self.current = None
            return True
        return False


def _burst(rng: random.Random) -> Mapping[str, int]:
    beats = rng.randint(1, LIMITS.max_burst_beats)
    address = LIMITS.base + LIMITS.bus_bytes * rng.randrange(LIMITS.size // LIMITS.bus_bytes - beats)
    to_page = (4096 - address % 4096) // LIMITS.bus_bytes
    fields = {"addr": address, "len": min(beats, to_page) - 1, "size": 3, "burst": INCREMENTING}
    return fields | dict(Axi4Monitor.ATTRIBUTES)


def traffic(seed: int) -> Recording:
    """Random reads and writes. A write's data may come before its address."""
    rng = random.Random(seed)
    sources = {name: Source() for name in SILENT}
    lengths: deque[int] = deque()
    for _ in range(rng.randint(1, 6)):
        sources["ar"].items.append(_burst(rng))
    for _ in range(rng.randint(1, 6)):
        burst = _burst(rng)
        sources["aw"].items.append(burst)
        lengths.append(burst["len"] + 1)
        for beat in range(burst["len"] + 1):
            strobes = rng.randrange(1, 256)
            last = int(beat == burst["len"])
            sources["w"].items.append({"data": rng.getrandbits(64), "strb": strobes, "last": last})
    addresses = data = answered = beats = 0
    recording = [SILENT] * 3
    while any(source.items or source.current for source in sources.values()):
        cycle = {name: source.lines(rng) for name, source in sources.items()}
        recording.append(cycle)
        taken = {name: source.taken(cycle[name]) for name, source in sources.items()}
        if taken["ar"]:
            count = cycle["ar"].carried["len"] or 0
            for beat in range(count + 1):
                item = {"data": rng.getrandbits(64), "resp": OKAY, "last": int(beat == count), "id": 0}
                sources["r"].items.append(item)
        addresses += taken["aw"]
        beats += taken["w"]
        data += bool(taken["w"] and cycle["w"].carried["last"])
        while answered < min(addresses, data):
            answered += 1
            sources["b"].items.append({"resp": OKAY, "id": 0})
    return [*recording, SILENT]


def observe(recording: Recording, limits: Limits = LIMITS, *, end: bool = True) -> Axi4Monitor:
    """Return a monitor that has seen a recording."""
    monitor = Axi4Monitor(limits)
    for number, cycle in enumerate(recording):
        monitor.step(number < 2, cycle)
        monitor.quiet = False
    if end:
        monitor.finish()
    return monitor


def most_under_way(recording: Recording) -> dict[str, int]:
    """The highest numbers of reads and of writes that are in flight at once."""
    most, now = {"ar": 0, "aw": 0}, {"ar": 0, "aw": 0}
    for cycle in recording:
        for start, end in (("ar", "r"), ("aw", "b")):
            lines = cycle[end]
            now[start] -= bool(lines.valid and lines.ready and lines.carried.get("last", 1))
        for start in most:
            now[start] += bool(cycle[start].valid and cycle[start].ready)
        most = {start: max(count, now[start]) for start, count in most.items()}
    return most


@examples(60)
@given(seed=st.integers(0, 1 << 32))
def test_legal_traffic_passes(seed: int) -> None:
    recording = traffic(seed)
    monitor = observe(recording)
    assert monitor.violations == []
    assert monitor.idle
    taken = {n: sum(bool(c[n].valid and c[n].ready) for c in recording) for n in SILENT}
    assert (monitor.read_beats, monitor.write_beats) == (taken["r"], taken["w"])


# --- planted violations ---------------------------------------------------------------------------

Plant = tuple[int, str, Lines]
"""Cycle, channel, and its replaced signals."""


def changed(lines: Lines, **values: int | None) -> Lines:
    return lines._replace(carried=dict(lines.carried) | values)


def each(recording: Recording, *channels: str) -> Iterator[tuple[int, str, Lines]]:
    """Every cycle in which one of these channels is valid."""
    for number, cycle in enumerate(recording):
        for name in channels:
            if cycle[name].valid:
                yield number, name, cycle[name]


def waiting(recording: Recording) -> Iterator[tuple[int, str, Lines]]:
    """Every cycle after one with valid and not ready."""
    for number, name, lines in each(recording, *SILENT):
        before = recording[number - 1][name]
        if before.valid and not before.ready:
            yield number, name, lines


def in_addresses(**values: int) -> Callable[[Recording], list[Plant]]:
    """Replace fields in the address of a read or a write."""
    return lambda recording: [
        (n, c, changed(x, **values)) for n, c, x in each(recording, "ar", "aw") if x.ready
    ]


def unknown(recording: Recording) -> list[Plant]:
    plants = [(n, c, changed(x, **{f: None})) for n, c, x in each(recording, *SILENT) for f in x.carried]
    plants += [(n, c, x._replace(ready=None)) for n, c, x in each(recording, *SILENT)]
    return plants + [(n, c, Lines(None, 0)) for n in range(2, len(recording)) for c in SILENT]


def unstable(recording: Recording) -> list[Plant]:
    return [
        (n, c, changed(x, **{f: v ^ 1}))
        for n, c, x in waiting(recording)
        for f, v in x.carried.items()
        if v is not None
    ]


def beyond_the_window(recording: Recording) -> list[Plant]:
    low, high = LIMITS.base - 8, LIMITS.base + LIMITS.size
    reads = [
        (n, c, changed(x, addr=a, len=0)) for n, c, x in each(recording, "ar") for a in (low, high) if x.ready
    ]
    writes = [
        (n, c, changed(x, addr=a))
        for n, c, x in each(recording, "aw")
        if x.ready
        for a in (low & ~4095, high)
    ]
    return reads + writes


def last_beats(channel: str) -> Callable[[Recording], list[Plant]]:
    return lambda recording: [
        (n, c, changed(x, last=1 - (x.carried["last"] or 0)))
        for n, c, x in each(recording, channel)
        if x.ready
    ]


def gone(*channels: str) -> Callable[[Recording], list[Plant]]:
    return lambda recording: [(n, c, Lines(0, x.ready)) for n, c, x in each(recording, *channels) if x.ready]


def twice(channel: str, carried: Mapping[str, int]) -> Callable[[Recording], list[Plant]]:
    """Add a transfer in the last cycle."""
    return lambda recording: [(len(recording) - 1, channel, Lines(1, 1, carried))]


PLANTS: dict[Rule, Callable[[Recording], list[Plant]]] = {
    Rule.RESET: lambda recording: [
        (n, c, x._replace(ready=0)) for n in (1, 2) for _, c, x in each(recording, *SILENT)
    ],
    Rule.KNOWN: unknown,
    Rule.HELD: lambda recording: [(n, c, Lines(0, x.ready)) for n, c, x in waiting(recording)],
    Rule.STABLE: unstable,
    Rule.TYPE: in_addresses(burst=0),
    Rule.SIZE: in_addresses(size=2),
    Rule.LENGTH: in_addresses(len=LIMITS.max_burst_beats),
    Rule.ALIGNED: in_addresses(addr=LIMITS.base + 4),
    Rule.PAGE: in_addresses(addr=LIMITS.base + 4096 - 8, len=1),
    Rule.WINDOW: beyond_the_window,
    Rule.ATTRIBUTES: lambda recording: [
        *(plant for name in Axi4Monitor.ATTRIBUTES for plant in in_addresses(**{name: 1})(recording)),
        *((n, c, changed(x, id=1)) for n, c, x in each(recording, "r", "b") if x.ready),
    ],
    Rule.READ_UNASKED: gone("ar"),
    Rule.READ_LAST: last_beats("r"),
    Rule.WRITE_LAST: last_beats("w"),
    Rule.ANSWER_UNASKED: lambda recording: [
        *gone("aw", "w")(recording),
        *twice("b", {"resp": OKAY, "id": 0})(recording),
    ],
    Rule.ANSWER_KIND: lambda recording: [
        (n, c, changed(x, resp=EXOKAY)) for n, c, x in each(recording, "r", "b") if x.ready
    ],
    Rule.COMPLETE: gone("aw", "w", "r", "b"),
}
BY_OTHER_MEANS = {Rule.OUTSTANDING, Rule.QUIET}


def test_every_rule_is_planted() -> None:
    assert PLANTS.keys() | BY_OTHER_MEANS == set(Rule)


@pytest.mark.parametrize("rule", PLANTS, ids=lambda rule: rule.name)
@examples(30)
@given(seed=st.integers(0, 1 << 32), data=st.data())
def test_a_planted_violation_is_found(rule: Rule, seed: int, data: st.DataObject) -> None:
    recording = traffic(seed)
    plants = PLANTS[rule](recording)
    assume(plants)
    number, channel, lines = data.draw(st.sampled_from(plants))
    damaged = list(recording)
    damaged[number] = recording[number] | {channel: lines}
    found = [violation.rule for violation in observe(damaged).violations]
    assert rule in found


@examples(30)
@given(seed=st.integers(0, 1 << 32), channel=st.sampled_from(["ar", "aw"]))
def test_too_many_bursts_are_found(seed: int, channel: str) -> None:
    recording = traffic(seed)
    most = most_under_way(recording)
    assert observe(recording, replace(LIMITS, outstanding=max(most.values()))).violations == []
    found = observe(recording, replace(LIMITS, outstanding=most[channel] - 1)).violations
    assert (channel, Rule.OUTSTANDING) in {(violation.channel, violation.rule) for violation in found}


@pytest.mark.parametrize("channel", ["ar", "aw", "w"])
def test_asking_without_a_run_is_found(channel: str) -> None:
    monitor = Axi4Monitor(LIMITS)
    for number in range(3):
        monitor.step(number < 2, SILENT)
    assert monitor.violations == []
    cycle = next(c for c in traffic(1) if c[channel].valid)
    monitor.step(False, SILENT | {channel: cycle[channel]})
    assert {violation.rule for violation in monitor.violations} == {Rule.QUIET}


def test_nothing_is_checked_before_the_first_reset() -> None:
    monitor = Axi4Monitor(LIMITS)
    monitor.step(False, dict.fromkeys(SILENT, Lines(None, None)))
    monitor.step(True, dict.fromkeys(SILENT, Lines(1, None)))
    assert monitor.violations == []
    monitor.step(True, SILENT | {"w": Lines(None, None)})
    assert [violation.rule for violation in monitor.violations] == [Rule.RESET]


def test_a_reset_clears_pending_transfers() -> None:
    recording = traffic(5)
    for length in range(3, len(recording), 7):
        monitor = observe(recording[:length], end=False)
        monitor.step(True, recording[length])
        for cycle in (SILENT, SILENT, SILENT):
            monitor.step(False, cycle)
        monitor.finish()
        assert monitor.violations == []


# --- AXI4-Lite ------------------------------------------------------------------------------------


def lite_traffic(seed: int) -> Recording:
    rng = random.Random(seed)
    sources = {name: Source() for name in SILENT}
    for _ in range(rng.randint(1, 9)):
        sources["ar"].items.append({"addr": 4 * rng.randrange(99), "prot": 0})
        sources["aw"].items.append({"addr": 4 * rng.randrange(99), "prot": 0})
        sources["w"].items.append({"data": rng.getrandbits(32), "strb": 15})
    counts = dict.fromkeys(SILENT, 0)
    answered = 0
    recording = [SILENT] * 3
    while any(source.items or source.current for source in sources.values()):
        cycle = {name: source.lines(rng) for name, source in sources.items()}
        recording.append(cycle)
        for name, source in sources.items():
            counts[name] += source.taken(cycle[name])
        if cycle["ar"].valid and cycle["ar"].ready:
            sources["r"].items.append({"data": rng.getrandbits(32), "resp": OKAY})
        while answered < min(counts["aw"], counts["w"]):
            answered += 1
            sources["b"].items.append({"resp": OKAY})
    return [*recording, SILENT]


def observe_lite(recording: Recording) -> LiteMonitor:
    monitor = LiteMonitor()
    for number, cycle in enumerate(recording):
        monitor.step(number < 2, cycle)
    return monitor


LITE_PLANTS: dict[Rule, Callable[[Recording], list[Plant]]] = {
    rule: PLANTS[rule] for rule in (Rule.RESET, Rule.KNOWN, Rule.HELD, Rule.STABLE, Rule.ANSWER_KIND)
} | {
    Rule.READ_UNASKED: lambda recording: [
        *gone("ar")(recording),
        *twice("r", {"data": 0, "resp": OKAY})(recording),
    ],
    Rule.ANSWER_UNASKED: lambda recording: [
        *gone("aw", "w")(recording),
        *twice("b", {"resp": OKAY})(recording),
    ],
}


@examples(60)
@given(seed=st.integers(0, 1 << 32))
def test_legal_register_accesses_pass(seed: int) -> None:
    assert observe_lite(lite_traffic(seed)).violations == []


@pytest.mark.parametrize("rule", LITE_PLANTS, ids=lambda rule: rule.name)
@examples(30)
@given(seed=st.integers(0, 1 << 32), data=st.data())
def test_a_violation_planted_in_register_accesses_is_found(
    rule: Rule, seed: int, data: st.DataObject
) -> None:
    recording = lite_traffic(seed)
    plants = LITE_PLANTS[rule](recording)
    assume(plants)
    number, channel, lines = data.draw(st.sampled_from(plants))
    damaged: list[Any] = list(recording)
    damaged[number] = recording[number] | {channel: lines}
    assert rule in [violation.rule for violation in observe_lite(damaged).violations]
