"""The two halves of the bus: read bursts with their arbiter, and write bursts.

Read burst i: ``grant(i) = max(request, grant(i-1) + 1, last(i-outstanding) + 1)``,
``first(i) = max(grant(i) + read_latency, last(i-1) + 1)``, ``last = first + beats - 1``. Among requests
of the same cycle compute goes before load, load before fetch.

Write burst i: ``grant(i) = max(request, grant(i-1) + 1, last(i-1) + 1 - read_delay,
response(i-outstanding) + 1)``, ``first = max(grant + read_delay, last(i-1) + 1)``,
``response = last + write_latency``, where ``read_delay`` is the time to read the accumulators.
"""

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


class Requester:
    """A unit's side of the read port: the cycle of its next request, and what follows a grant."""

    request: int = NEVER

    def beats(self) -> int:
        """Length of the burst that is asked for."""
        raise NotImplementedError

    def granted(self, grant: int, first: int, last: int) -> None:
        """The burst is granted; sets :attr:`request` for the next one."""
        raise NotImplementedError


class ReadPort:
    """Grants one burst a cycle, ``outstanding`` in flight at most."""

    def __init__(self, engine: Engine, requesters: tuple[Requester, ...]) -> None:
        self._engine = engine
        self._latency = engine.config.read_latency
        self._outstanding = engine.config.outstanding
        self._requesters = requesters
        self._lasts: list[int] = []
        self._free = 0
        engine.on(Wake.READ_PORT, self._grant)

    def ask(self, cycle: int) -> None:
        """A requester has set its request for ``cycle``."""
        self._engine.schedule(max(cycle, self._free), Wake.READ_PORT)

    def _grant(self, cycle: int) -> None:
        """Grant bursts from ``cycle`` on, until something else happens that might ask for one."""
        engine, lasts = self._engine, self._lasts
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
            previous = lasts[-1] if lasts else -1
            first = max(cycle + self._latency, previous + 1)
            last = first + chosen.beats() - 1
            lasts.append(last)
            self._free = cycle + 1
            if len(lasts) >= self._outstanding:
                self._free = max(self._free, lasts[-self._outstanding] + 1)
            engine.happens(last)
            chosen.granted(cycle, first, last)


class WritePort:
    """The write channels, used by the store unit alone."""

    def __init__(self, config: Config) -> None:
        self._latency = config.write_latency
        self._outstanding = config.outstanding
        self._responses: list[int] = []
        self._free = 0
        self._last = -1

    def grant(self, request: int, beats: int) -> tuple[int, int, int, int]:
        """Cycles of the grant, the first and last beat and the response of the next burst."""
        grant = max(request, self._free, self._last + 1 - STORE_READ_DELAY)
        if len(self._responses) >= self._outstanding:
            grant = max(grant, self._responses[-self._outstanding] + 1)
        first = max(grant + STORE_READ_DELAY, self._last + 1)
        self._last = first + beats - 1
        self._free = grant + 1
        response = self._last + self._latency
        self._responses.append(response)
        return grant, first, self._last, response
