"""Stretches of a program that come again and again, and the state of the model between them.

A stretch is a number of fetch's bursts. Where the same shapes come again, in the same bursts, the model looks
at its own state each time fetch gets to the beginning of a stretch: when it is what it was before, so many
cycles later, all stretches of the kind but the last ones go the same way, and are not gone through.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accel.sim.timing.compute import ComputeUnit
from accel.sim.timing.engine import Engine
from accel.sim.timing.fetch import Fetch
from accel.sim.timing.load import LoadUnit
from accel.sim.timing.plan import Plan
from accel.sim.timing.port import ReadPort
from accel.sim.timing.recurring import CYCLE, INSTRUCTION, PLACE, PLAIN, Mark, Recurring
from accel.sim.timing.store import StoreUnit

_LEAST_BURSTS = 8
"""Of a program in which repetition is looked for."""
_CANDIDATES = 12
"""Lengths of stretches that are tried."""
_WORTH = 4
"""A run must have as many stretches, for it takes some until the state comes again."""
_MOST_LOOKS = 48
"""At the state in one run; where it has not come again by then, it is not expected to."""


class Run(NamedTuple):
    """Bursts that repeat: each from ``begin`` up to ``end`` is like the one ``length`` before it."""

    begin: int
    end: int
    length: int


def find_runs(kinds: npt.NDArray[np.int64]) -> list[Run]:
    """Where a sequence repeats itself, in order; no two runs overlap."""
    count = len(kinds)
    if count < _LEAST_BURSTS:
        return []
    seen: dict[tuple[int, ...], int] = {}
    distances: Counter[int] = Counter()
    every = kinds.tolist()
    for place, pair in enumerate(pairwise(every)):
        before = seen.get(pair)
        if before is not None:
            distances[place - before] += 1
        seen[pair] = place
    found = []
    for length, _ in distances.most_common(_CANDIDATES):
        same = np.concatenate([[False], kinds[length:] == kinds[:-length], [False]])
        edges = np.flatnonzero(same[1:] != same[:-1]) + length
        found += [
            Run(begin, end, length)
            for begin, end in edges.reshape(-1, 2).tolist()
            if end - begin >= _WORTH * length
        ]
    chosen: list[Run] = []
    for run in sorted(found, key=lambda one: (one.begin - one.end, one.length)):
        if all(run.end <= other.begin or other.end <= run.begin for other in chosen):
            chosen.append(run)
    return sorted(chosen)


class _Seen(NamedTuple):
    """The state at the beginning of a stretch: where, when, and all parts' marks."""

    asked: int
    cycle: int
    marks: list[Mark]


class Repeats:
    """The repetition of one simulation.

    Args:
        plan: the program.
        engine, port: what the units share.
        fetch, load, compute, store: the units.
    """

    def __init__(
        self,
        plan: Plan,
        engine: Engine,
        port: ReadPort,
        fetch: Fetch,
        load: LoadUnit,
        compute: ComputeUnit,
        store: StoreUnit,
    ) -> None:
        self._engine, self._port, self._fetch = engine, port, fetch
        self._load, self._compute, self._store = load, compute, store
        self._workers = (load, compute, store)
        self._parts: Sequence[Recurring] = (
            fetch,
            *self._workers,
            fetch.log,
            *(worker.log for worker in self._workers),
            store.writes,
            port,
            store.port,
            store.loads,
            store.stores,
            store.loaded,
            store.taken,
            load.pads,
            compute.pads,
            *engine.counters,
        )
        sizes = [len(burst.arrival) for burst in fetch.bursts]
        self._begins: list[int] = [0, *np.cumsum(sizes, dtype=np.int64).tolist()]
        """Of each burst the first instruction."""
        self._runs = [] if engine.serial else find_runs(self._kinds(plan))
        self._seen: dict[tuple[object, ...], _Seen] = {}
        self._looks = 0
        self.next = self._runs[0].begin if self._runs else -1
        """Look when fetch has been granted so many bursts; -1 if there is nothing to look at any more."""

    def _kinds(self, plan: Plan) -> npt.NDArray[np.int64]:
        """Of each burst what tells it apart: the shapes of its instructions, and how they arrive."""
        wrong = {*plan.fetch_faults, *plan.start_faults, *plan.uop_faults}
        numbers = plan.numbers.astype(np.int32)
        known: dict[tuple[object, ...], int] = {}
        kinds = []
        for burst, begin, end in zip(self._fetch.bursts, self._begins, self._begins[1:], strict=False):
            at_fault = begin if wrong and any(index in wrong for index in range(begin, end)) else -1
            key = numbers[begin:end].tobytes(), burst.burst.beats, burst.arrival, at_fault
            kinds.append(known.setdefault(key, len(known)))
        return np.array(kinds, dtype=np.int64)

    def look(self) -> None:
        """Go on over all stretches that go the way of one that is known; to be called when no unit can go
        ahead, and :attr:`next` bursts have been granted, or more."""
        asked = self._fetch.asked
        run = self._runs[0]
        if asked == self.next and self._engine.stop is None and self._is_inside(run):
            state = self._state()
            before = self._seen.get(state)
            if before is not None:
                self._repeat(run, before)
                self._looks = _MOST_LOOKS
            else:
                self._seen[state] = _Seen(asked, self._cycle, [part.mark() for part in self._parts])
                self._looks += 1
        self.next += run.length
        if self._looks >= _MOST_LOOKS or self.next + run.length > run.end:
            self._runs.pop(0)
            self._seen.clear()
            self._looks = 0
            while self._runs and self._runs[0].begin < self._fetch.asked:
                late = self._runs.pop(0)
                begin = self._fetch.asked
                if late.end - begin >= _WORTH * late.length:
                    self._runs.insert(0, late._replace(begin=begin))
                    break
            self.next = self._runs[0].begin if self._runs else -1

    @property
    def _cycle(self) -> int:
        """From which cycles are counted: fetch's last grant."""
        return self._fetch.log.grants[-1]

    def _is_inside(self, run: Run) -> bool:
        """Whether all instructions that still matter lie in the run, or in the stretch before it."""
        first = self._begins[run.begin - run.length]
        for worker in self._workers:
            place = worker.oldest(self._fetch.free)
            if place < len(worker.indices) and place < len(worker.starts) and worker.indices[place] < first:
                return False
        return True

    def _state(self) -> tuple[object, ...]:
        """All that the future depends on but the program."""
        fetch, base = self._fetch, self._cycle
        return (
            fetch.state(base),
            *(worker.state(fetch.free, base) for worker in self._workers),
            self._port.state(base),
            *(
                counter.state(worker.floor(fetch.free), base)
                for counter, worker in zip(
                    self._engine.counters,
                    (self._compute, self._load, self._store, self._compute),
                    strict=True,
                )
            ),
        )

    def _repeat(self, run: Run, before: _Seen) -> None:
        """Go on over as many stretches as there are like the one since ``before``."""
        fetch = self._fetch
        bursts, cycles = fetch.asked - before.asked, self._cycle - before.cycle
        known = [self._port.last, *(worker.last for worker in self._workers)]
        most = (self._engine.horizon - max(known)) // cycles - 2
        times = min((run.end - 1 - fetch.asked) // bursts, most)  # the next burst is asked for already
        if times < 1:
            return
        started = before.marks[self._parts.index(self._store)]["starts"]
        by = {
            CYCLE: cycles,
            INSTRUCTION: self._begins[fetch.asked] - self._begins[before.asked],
            PLACE: len(self._store.starts) - started,
            PLAIN: 0,
        }
        for part, mark in zip(self._parts, before.marks, strict=True):
            part.repeat(mark, times, by)
