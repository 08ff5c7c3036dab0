"""The read port with its arbiter, and the write port, by ``docs/reference/timing.md``."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from accel.core.config import Config
from accel.core.isa import Unit
from accel.core.timing_rules import store_depth
from accel.sim.timing.cycle_intervals import IntervalArray
from accel.sim.timing.periodic_state import (
    CONSTANT,
    CYCLE,
    INSTRUCTION,
    NEVER,
    Checkpoint,
    PeriodicState,
    column,
    relative_cycle,
    repeat_tail,
)


class BurstRecord(NamedTuple):
    """One burst: its (first) instruction's index, and its cycles. Each beat takes ``pace`` cycles."""

    unit: Unit
    writes: bool
    instruction: int
    beats: int
    grant: int
    first: int
    last: int
    response: int
    """Cycle of the write response; ``last`` for a read."""
    pace: int


class BurstLog(PeriodicState):
    """One unit's reads or writes, in order of grants."""

    COLUMNS: ClassVar[Mapping[str, str]] = {
        "instructions": INSTRUCTION,
        "beats": CONSTANT,
        "grants": CYCLE,
        "lasts": CYCLE,
    }

    def __init__(self, unit: Unit, *, writes: bool = False) -> None:
        self.unit = unit
        self.writes = writes
        self.instructions = column()
        self.beats = column()
        self.grants = column()
        self.lasts = column()
        self.responses = column() if writes else self.lasts
        self.beat_cycles: dict[int, int] = {}
        """Cycles of each beat, by burst number, if more than one."""

    def advance(self, since: Checkpoint, periods: int, shifts: Mapping[str, int]) -> None:
        begin, count = since["beats"], len(self.beats) - since["beats"]
        super().advance(since, periods, shifts)
        if self.writes:
            repeat_tail(self.responses, begin, periods, shifts[CYCLE])
        slow = [(number, cycles) for number, cycles in self.beat_cycles.items() if number >= begin]
        for period in range(1, periods + 1):
            self.beat_cycles.update((number + period * count, cycles) for number, cycles in slow)

    def state_from(self, cycle: int, base: int, begin: int = 0) -> tuple[int, ...]:
        """Return last cycles and beats of bursts from ``begin`` on that end in ``cycle`` or later."""
        first = bisect_left(self.lasts, cycle, begin)
        return (*(last - base for last in self.lasts[first:]), *self.beats[first:])

    def records(self) -> list[BurstRecord]:
        rows = zip(self.instructions, self.beats, self.grants, self.lasts, self.responses, strict=True)
        found = []
        for number, (instruction, beats, grant, last, response) in enumerate(rows):
            pace = self.beat_cycles.get(number, 1)
            first = last - beats * pace + 1
            fields = self.unit, self.writes, instruction, beats, grant, first, last, response, pace
            found.append(BurstRecord(*fields))
        return found

    def busy_intervals(self) -> IntervalArray:
        stops = np.array(self.lasts, dtype=np.int64) + 1
        beats = np.array(self.beats, dtype=np.int64)
        if not self.beat_cycles:
            return np.stack([stops - beats, stops], axis=1)
        pace = np.ones_like(beats)
        pace[list(self.beat_cycles)] = list(self.beat_cycles.values())
        beats_after = np.repeat(np.cumsum(beats), beats) - np.arange(beats.sum()) - 1
        """Later beats of the same burst."""
        ends = np.repeat(stops, beats) - beats_after * np.repeat(pace, beats)
        return np.stack([ends - 1, ends], axis=1)


def timeout_cycle(logs: Sequence[BurstLog], bus_timeout: int) -> int:
    """Return the cycle of the error ``timeout`` of ``docs/reference/timing.md``, or NEVER. An address is
    transferred in the cycle after its grant."""
    grants = np.concatenate([np.array(log.grants, dtype=np.int64) for log in logs])
    responses = np.sort(np.concatenate([np.array(log.responses, dtype=np.int64) for log in logs]))
    single = np.concatenate([grants + 1, responses])
    transfers = np.concatenate(
        [np.stack([single, single + 1], axis=1), *(log.busy_intervals() for log in logs)]
    )
    if not len(transfers):
        return NEVER
    transfers = transfers[np.argsort(transfers[:, 0], kind="stable")]
    pauses = np.maximum.accumulate(transfers[:, 1])[:-1]
    accepted = np.searchsorted(np.sort(grants) + 1, pauses, side="right")
    answered = np.searchsorted(responses, pauses, side="left")
    found = pauses[(transfers[1:, 0] - pauses >= bus_timeout) & (accepted > answered)]
    return int(found[0]) + bus_timeout if len(found) else NEVER


class Requester(PeriodicState):
    """A unit's side of the read port. ``log`` has its reads. ``request`` is the cycle of its next request, or
    NEVER if it is unknown or there is none."""

    log: BurstLog
    request: int = NEVER

    def pending_bursts(self) -> tuple[int, Sequence[int]]:
        """Return an instruction's index, and the beats of its bursts. Each is requested in the cycle after
        the previous grant."""
        raise NotImplementedError

    def on_granted(self, count: int) -> None:
        """Note grants of the first ``count`` pending bursts, and set ``request``."""
        raise NotImplementedError


class ReadPort(PeriodicState):
    """Grants one burst per cycle, with at most ``outstanding`` in flight."""

    CYCLES: ClassVar[tuple[str, ...]] = ("_next_grant",)
    COLUMNS: ClassVar[Mapping[str, str]] = {"_lasts": CYCLE}

    def __init__(self, config: Config, requesters: Sequence[Requester]) -> None:
        self._latency = config.read_latency
        self._outstanding = config.outstanding
        self._requesters = requesters
        self._lasts = column([-1] * self._outstanding)
        self._next_grant = 0

    @property
    def last_beat(self) -> int:
        return self._lasts[-1]

    def state(self, base: int) -> tuple[int, ...]:
        floor = self._next_grant
        recent = self._lasts[-self._outstanding :]
        return floor - base, *(relative_cycle(last, floor - 1, base) for last in recent)

    def next_grant(self) -> int:
        request = min([requester.request for requester in self._requesters])
        return request if request > self._next_grant else self._next_grant

    def grant(self, cycle: int, end: int) -> None:
        """Grant one unit's bursts from ``cycle`` until another has priority, at most up to ``end``."""
        for requester in self._requesters:
            request = requester.request
            if request <= cycle:
                requester.on_granted(self._grant_bursts(cycle, end, requester))
                return
            if request <= end:
                end = request - 1

    def _grant_bursts(self, cycle: int, end: int, requester: Requester) -> int:
        log, lasts = requester.log, self._lasts
        grants, latency, oldest = log.grants, self._latency, -self._outstanding
        instruction, beats = requester.pending_bursts()
        known = len(lasts)
        last = lasts[-1]
        for length in beats:
            if cycle > end:
                break
            grants.append(cycle)
            first = cycle + latency
            last = (first if first > last else last + 1) + length - 1
            lasts.append(last)
            freed = lasts[oldest]
            cycle = (cycle if cycle > freed else freed) + 1
        self._next_grant = cycle
        count = len(lasts) - known
        log.instructions.extend([instruction] * count)
        log.beats.extend(beats[:count])
        log.lasts.extend(lasts[known:])
        return count


class WritePort(PeriodicState):
    """The store unit's write channels."""

    CYCLES: ClassVar[tuple[str, ...]] = ("_next_grant",)

    def __init__(self, config: Config) -> None:
        self._latency = config.write_latency
        self._outstanding = config.outstanding
        self._depth = store_depth(config)
        self._next_grant = 0

    def state(self, log: BurstLog, floor: int, base: int) -> tuple[int, ...]:
        recent = [*log.lasts[-1:], *log.responses[-self._outstanding :]]
        return (
            relative_cycle(self._next_grant, floor, base),
            *(relative_cycle(cycle, floor - 1, base) for cycle in recent),
        )

    def grant(self, request: int, instruction: int, beats: Sequence[int], pace: int, log: BurstLog) -> None:
        grant = max(request, self._next_grant)
        last = log.lasts[-1] if log.lasts else -1
        responses, outstanding, depth = log.responses, self._outstanding, self._depth
        grants, lasts, latency = log.grants, log.lasts, self._latency
        free = outstanding - len(responses)
        for length in beats:  # conditions, not max: this is the innermost loop
            first = last + 1
            if grant < first - depth:
                grant = first - depth
            if free > 0:
                free -= 1
            elif grant <= responses[-outstanding]:
                grant = responses[-outstanding] + 1
            last = (grant + depth if grant + depth > first else first) + length * pace - 1
            grants.append(grant)
            lasts.append(last)
            responses.append(last + latency)
            grant += 1
        if pace > 1:
            known = len(log.beats)
            log.beat_cycles.update(dict.fromkeys(range(known, known + len(beats)), pace))
        log.instructions.extend([instruction] * len(beats))
        log.beats.extend(beats)
        self._next_grant = grant
