"""The two halves of the bus: read bursts with their arbiter, and write bursts.

Read burst i: ``grant(i) = max(request, grant(i-1) + 1, last(i-outstanding) + 1)``,
``first(i) = max(grant(i) + read_latency, last(i-1) + 1)``, ``last = first + beats - 1``. Among requests
of the same cycle compute goes before load, load before fetch.

Write burst i: ``grant(i) = max(request, grant(i-1) + 1, last(i-1) + 1 - read_delay,
response(i-outstanding) + 1)``, ``first = max(grant + read_delay, last(i-1) + 1)``,
``response = last + write_latency``, where ``read_delay`` is the time to read the accumulators.
"""

from collections.abc import Sequence
from typing import NamedTuple

from accel.config import Config
from accel.isa import Unit
from accel.sim.timing.engine import NEVER, Engine, Wake
from accel.timing import STORE_READ_DELAY


class BurstRecord(NamedTuple):
    """One burst as it happened; ``instruction`` is its index, or for fetch the first one's in the burst."""

    unit: Unit
    instruction: int
    grant: int
    first: int
    last: int
    response: int
    """Write response; for reads the same as ``last``."""


class Granted(NamedTuple):
    """Bursts that were granted one after the other; a list of cycles each."""

    grants: list[int]
    firsts: list[int]
    lasts: list[int]


class BurstLog:
    """The bursts of one unit in order of their grant, an entry in each list."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.instructions: list[int] = []
        self.grants: list[int] = []
        self.firsts: list[int] = []
        self.lasts: list[int] = []
        self.responses: list[int] = [] if unit is Unit.STORE else self.lasts

    def extend(self, instruction: int, granted: Granted) -> None:
        """Note reads of one instruction."""
        self.instructions.extend([instruction] * len(granted.grants))
        self.grants.extend(granted.grants)
        self.firsts.extend(granted.firsts)
        self.lasts.extend(granted.lasts)

    def records(self) -> list[BurstRecord]:
        """All of them, one by one."""
        columns = (self.instructions, self.grants, self.firsts, self.lasts, self.responses)
        return [BurstRecord(self.unit, *row) for row in zip(*columns, strict=True)]


class Requester:
    """A unit's side of the read port: the cycle of its next request, and what follows a grant."""

    request: int = NEVER

    def waiting(self) -> tuple[Sequence[int], int]:
        """Beats of bursts that are asked for one after the other, each in the cycle after the one before
        is granted; and the place of the next one among them."""
        raise NotImplementedError

    def granted(self, granted: Granted) -> None:
        """Some of them, one at least, are granted; sets :attr:`request` for the next one."""
        raise NotImplementedError


class ReadPort:
    """Grants one burst a cycle, ``outstanding`` in flight at most.

    Args:
        engine: the event loop.
        requesters: those that go first in front.
    """

    def __init__(self, engine: Engine, requesters: tuple[Requester, ...]) -> None:
        self._engine = engine
        self._latency = engine.config.read_latency
        self._outstanding = engine.config.outstanding
        self._requesters = requesters
        self._lasts: list[int] = [-1] * self._outstanding
        self._free = 0
        engine.on(Wake.READ_PORT, self._grant)

    def ask(self, cycle: int) -> None:
        """A requester has set its request for ``cycle``."""
        self._engine.schedule(max(cycle, self._free), Wake.READ_PORT)

    def _grant(self, cycle: int) -> None:
        """Grant bursts from ``cycle`` on, until something else happens that might ask for one."""
        engine = self._engine
        while True:
            cycle = max(cycle, self._free)
            chosen = None
            earliest = NEVER
            for requester in self._requesters:
                if requester.request <= cycle:
                    chosen = requester
                    break
                earliest = min(earliest, requester.request)
            if chosen is None:
                if earliest < NEVER:
                    engine.schedule(earliest, Wake.READ_PORT)
                return
            if cycle > engine.next_cycle:
                engine.schedule(cycle, Wake.READ_PORT)
                return
            beats, position = chosen.waiting()
            granted = self._run(cycle, beats, position, min(engine.next_cycle, earliest - 1))
            engine.happens(granted.lasts[-1])
            chosen.granted(granted)

    def _run(self, cycle: int, beats: Sequence[int], position: int, end: int) -> Granted:
        """Grant bursts of one requester, of whom nobody takes the turn up to cycle ``end``."""
        latency, outstanding, lasts = self._latency, self._outstanding, self._lasts
        grants: list[int] = []
        firsts: list[int] = []
        known = len(lasts)
        last = lasts[-1]
        for length in beats[position:] if position else beats:
            if cycle > end:
                break
            first = cycle + latency
            if first <= last:
                first = last + 1
            last = first + length - 1
            grants.append(cycle)
            firsts.append(first)
            lasts.append(last)
            cycle += 1
            if cycle <= lasts[-outstanding]:
                cycle = lasts[-outstanding] + 1
        self._free = cycle
        return Granted(grants, firsts, lasts[known:])


class WritePort:
    """The write channels, used by the store unit alone."""

    def __init__(self, config: Config) -> None:
        self._latency = config.write_latency
        self._outstanding = config.outstanding
        self._free = 0

    def grant(self, request: int, instruction: int, beats: Sequence[int], log: BurstLog) -> None:
        """Grant the bursts of an instruction, the first one requested in cycle ``request``, and note them."""
        grant = max(request, self._free)
        last = log.lasts[-1] if log.lasts else -1
        responses, outstanding = log.responses, self._outstanding
        for length in beats:
            grant = max(grant, last + 1 - STORE_READ_DELAY)
            if len(responses) >= outstanding:
                grant = max(grant, responses[-outstanding] + 1)
            first = max(grant + STORE_READ_DELAY, last + 1)
            last = first + length - 1
            log.instructions.append(instruction)
            log.grants.append(grant)
            log.firsts.append(first)
            log.lasts.append(last)
            responses.append(last + self._latency)
            grant += 1
        self._free = grant
