"""The two halves of the bus: read bursts with their arbiter, and write bursts.

Read burst i: ``grant(i) = max(request, grant(i-1) + 1, last(i-outstanding) + 1)``,
``first(i) = max(grant(i) + read_latency, last(i-1) + 1)``, ``last = first + beats - 1``. Among requests
of the same cycle compute goes before store, store before load, load before fetch.

Write burst i: ``grant(i) = max(request, grant(i-1) + 1, last(i-1) + 1 - depth,
response(i-outstanding) + 1)``, ``first = max(grant + depth, last(i-1) + 1)``,
``last = first + beats * pace - 1``, ``response = last + write_latency``, where ``depth`` is the time to read
the accumulators and to go through the stages of the store path, and ``pace`` the cycles that a beat takes, in
the last of which it is on the bus.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from accel.core.config import Config
from accel.core.isa import Unit
from accel.core.timing_rules import store_depth
from accel.sim.timing.intervals import IntervalArray
from accel.sim.timing.recurring import CYCLE, INSTRUCTION, NEVER, PLAIN, Mark, Recurring, extend, later


class BurstRecord(NamedTuple):
    """One burst as it happened; ``instruction`` is its index, or for fetch the first one's in the burst."""

    unit: Unit
    writes: bool
    """Whether it is one of the write channels' bursts."""
    instruction: int
    beats: int
    grant: int
    first: int
    """First cycle of the first beat."""
    last: int
    response: int
    """Write response; for reads the same as ``last``."""
    pace: int
    """Cycles that a beat takes, in the last of which it is on the bus."""


class BurstLog(Recurring):
    """The reads or the writes of one unit in order of their grant, an entry in each list.

    Args:
        unit: whose bursts they are.
        writes: whether they are writes; they have responses, and their beats may take several cycles.
    """

    LISTS: ClassVar[Mapping[str, str]] = {
        "instructions": INSTRUCTION,
        "beats": PLAIN,
        "grants": CYCLE,
        "lasts": CYCLE,
    }

    def __init__(self, unit: Unit, *, writes: bool = False) -> None:
        self.unit = unit
        self.writes = writes
        self.instructions: list[int] = []
        self.beats: list[int] = []
        self.grants: list[int] = []
        self.lasts: list[int] = []
        self.responses: list[int] = [] if writes else self.lasts
        self.slow: dict[int, int] = {}
        """Cycles that each beat takes, by the number of the burst; of those that are not here, one."""

    def repeat(self, since: Mark, times: int, by: Mapping[str, int]) -> None:
        begin, count = since["beats"], len(self.beats) - since["beats"]
        super().repeat(since, times, by)
        if self.writes:
            extend(self.responses, begin, times, by[CYCLE])
        paces = [(number, pace) for number, pace in self.slow.items() if number >= begin]
        for time in range(1, times + 1):
            self.slow.update((number + time * count, pace) for number, pace in paces)

    def behind(self, cycle: int, base: int, begin: int = 0) -> tuple[int, ...]:
        """Of the bursts from number ``begin`` on that end in ``cycle`` or later, as state: ends and beats."""
        first = bisect_left(self.lasts, cycle, begin)
        return (*(last - base for last in self.lasts[first:]), *self.beats[first:])

    def records(self) -> list[BurstRecord]:
        """All of them, one by one."""
        rows = zip(self.instructions, self.beats, self.grants, self.lasts, self.responses, strict=True)
        found = []
        for number, (instruction, beats, grant, last, response) in enumerate(rows):
            pace = self.slow.get(number, 1)
            of = self.unit, self.writes, instruction, beats, grant
            found.append(BurstRecord(*of, last - beats * pace + 1, last, response, pace))
        return found

    def busy(self) -> IntervalArray:
        """When its beats are on the bus."""
        stops = np.array(self.lasts, dtype=np.int64) + 1
        beats = np.array(self.beats, dtype=np.int64)
        if not self.slow:
            return np.stack([stops - beats, stops], axis=1)
        pace = np.ones_like(beats)
        pace[list(self.slow)] = list(self.slow.values())
        behind = np.repeat(np.cumsum(beats), beats) - np.arange(beats.sum()) - 1
        """Beats of the same burst behind each beat."""
        ends = np.repeat(stops, beats) - behind * np.repeat(pace, beats)
        return np.stack([ends - 1, ends], axis=1)


def quiet_cycle(logs: Sequence[BurstLog], most: int) -> int:
    """The first cycle behind so many in which a burst is under way and nothing is handed over on the bus.

    What is handed over is an address, in the cycle after the grant, a beat, or a response. NEVER
    if there is no such cycle.
    """
    grants = np.concatenate([np.array(log.grants, dtype=np.int64) for log in logs])
    ends = np.sort(np.concatenate([np.array(log.responses, dtype=np.int64) for log in logs]))
    single = np.concatenate([grants + 1, ends])
    moves = np.concatenate([np.stack([single, single + 1], axis=1), *(log.busy() for log in logs)])
    if not len(moves):
        return NEVER
    moves = moves[np.argsort(moves[:, 0], kind="stable")]
    quiet = np.maximum.accumulate(moves[:, 1])[:-1]
    """Where it begins that nothing is handed over, up to the next transfer."""
    asked = np.searchsorted(np.sort(grants) + 1, quiet, side="right")
    answered = np.searchsorted(ends, quiet, side="left")
    found = quiet[(moves[1:, 0] - quiet >= most) & (asked > answered)]
    return int(found[0]) + most if len(found) else NEVER


class Requester(Recurring):
    """A unit's side of the read port.

    Attributes:
        log: the unit's bursts.
        request: the cycle of its next request; NEVER if it has none, or does not know.
    """

    log: BurstLog
    request: int = NEVER

    def waiting(self) -> tuple[int, Sequence[int]]:
        """An instruction, and beats of its bursts that are asked for one after the other, each in the cycle
        after the one before is granted."""
        raise NotImplementedError

    def granted(self, count: int) -> None:
        """The first ``count`` of them, one at least, are granted; sets :attr:`request` for the next one."""
        raise NotImplementedError


class ReadPort(Recurring):
    """Grants one burst a cycle, ``outstanding`` in flight at most.

    Args:
        config: the machine.
        requesters: those that go first in front.
    """

    CYCLES: ClassVar[tuple[str, ...]] = ("_free",)
    LISTS: ClassVar[Mapping[str, str]] = {"_lasts": CYCLE}

    def __init__(self, config: Config, requesters: Sequence[Requester]) -> None:
        self._latency = config.read_latency
        self._outstanding = config.outstanding
        self._requesters = requesters
        self._lasts = [-1] * self._outstanding
        self._free = 0
        """First cycle in which a burst may be granted."""

    @property
    def last(self) -> int:
        """The last cycle in which a beat is known to be on the bus."""
        return self._lasts[-1]

    def state(self, base: int) -> tuple[int, ...]:
        """What matters of it, from cycle ``base`` on."""
        floor = self._free
        return floor - base, *(later(last, floor - 1, base) for last in self._lasts[-self._outstanding :])

    def next_cycle(self) -> int:
        """The cycle of the next grant, by the requests that are known; NEVER if there are none."""
        return max(self._free, min(requester.request for requester in self._requesters))

    def grant(self, cycle: int, end: int) -> None:
        """Grant bursts to one requester from ``cycle`` on, while no other takes the turn, up to cycle ``end``
        at most."""
        for requester in self._requesters:
            if requester.request <= cycle:
                requester.granted(self._run(cycle, end, requester))
                return
            end = min(end, requester.request - 1)

    def _run(self, cycle: int, end: int, requester: Requester) -> int:
        """Grant what ``requester`` waits for up to cycle ``end``; returns how many bursts that were."""
        log, lasts = requester.log, self._lasts
        grants, latency, oldest = log.grants, self._latency, -self._outstanding
        instruction, beats = requester.waiting()
        known = len(lasts)
        last = lasts[-1]
        for length in beats:
            if cycle > end:
                break
            grants.append(cycle)
            first = cycle + latency
            last = (first if first > last else last + 1) + length - 1
            lasts.append(last)
            leaver = lasts[oldest]
            cycle = (cycle if cycle > leaver else leaver) + 1
        self._free = cycle
        count = len(lasts) - known
        log.instructions.extend([instruction] * count)
        log.beats.extend(beats[:count])
        log.lasts.extend(lasts[known:])
        return count


class WritePort(Recurring):
    """The write channels, used by the store unit alone."""

    CYCLES: ClassVar[tuple[str, ...]] = ("_free",)

    def __init__(self, config: Config) -> None:
        self._latency = config.write_latency
        self._outstanding = config.outstanding
        self._depth = store_depth(config)
        self._free = 0

    def state(self, log: BurstLog, floor: int, base: int) -> tuple[int, ...]:
        """What matters of it, and of what it has granted, if nothing is requested before ``floor``."""
        recent = [*log.lasts[-1:], *log.responses[-self._outstanding :]]
        return later(self._free, floor, base), *(later(cycle, floor - 1, base) for cycle in recent)

    def grant(self, request: int, instruction: int, beats: Sequence[int], pace: int, log: BurstLog) -> None:
        """Grant the bursts of an instruction, the first one requested in cycle ``request``, and note them;
        a beat takes ``pace`` cycles."""
        grant = max(request, self._free)
        last = log.lasts[-1] if log.lasts else -1
        responses, outstanding, depth = log.responses, self._outstanding, self._depth
        for length in beats:
            grant = max(grant, last + 1 - depth)
            if len(responses) >= outstanding:
                grant = max(grant, responses[-outstanding] + 1)
            last = max(grant + depth, last + 1) + length * pace - 1
            log.grants.append(grant)
            log.lasts.append(last)
            responses.append(last + self._latency)
            grant += 1
        if pace > 1:
            known = len(log.beats)
            log.slow.update(dict.fromkeys(range(known, known + len(beats)), pace))
        log.instructions.extend([instruction] * len(beats))
        log.beats.extend(beats)
        self._free = grant
