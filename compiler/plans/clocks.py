"""The machine as a set of clocks, for many plans at once: which unit is free when, and what waits for what.

A plan is told to it as *turns*, one after the other: a turn may load operands, load accumulators, compute,
and store. Walkers (:mod:`~accel.compiler.plans.tiles`, :mod:`~accel.compiler.plans.pool_model`) only say how
much of each; here stands what that takes: latencies, the shared read port, bursts and instructions in flight,
buffers that are free again when the computation before is done, accumulators when they are stored.

All plans are gone through side by side: every step is an operation on arrays with an element for each. Of
long programs only the first and the last turns are gone through; between them, a plan keeps the pace that it
had, measured against the work of the unit that has most of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise, repeat
from typing import Any, Protocol

import numpy as np

from accel.compiler.plans.arrays import BoolArray, FloatArray, IntArray
from accel.compiler.plans.candidate import Prediction
from accel.compiler.plans.transfers import Moved
from accel.core.config import INSTRUCTION_BYTES, Config
from accel.core.timing_rules import (
    FETCH_STARTUP,
    REQUEST_STARTUP,
    WRITE_DELAY,
    compute_depth,
    store_depth,
)

TURNS = 192
"""Turns that are gone through where a plan has more."""
_TAIL = 4
"""One in so many of them are the last ones."""
_PERIODS = 3
"""Periods that are gone through at least, unless they are long."""
_LONGER = 4
"""How many times as many turns are gone through at most, for that."""
_TOKEN = 1
"""Cycles from a push to the pop it allows."""
_NEVER = -1e18
_WORTH = 0.7
"""Turns are told of some plans only if that leaves so much of them at most."""


@dataclass
class Turns:
    """What turns do; an array for each, of shape (turns, plans), or None where no plan does it.

    Attributes:
        valid: whether there is such a turn; else everything in it is zero.
        loads: its LOADs of operands.
        first: whether it is the first to write its accumulators, so it waits until they are stored.
        last: whether it stores them.
        before: LOADs of the compute unit at its start.
        head: slots that need not wait for accumulators to be stored.
        clear: slots after that, before operands are waited for.
        slots: with the operands.
        between: LOADs of the compute unit behind that.
        ahead: slots behind that, before what is added is waited for.
        added: LOADs of the load unit that are needed behind the products; with accumulators' own buffers.
        adding: slots in which that is added.
        tail: slots behind that.
        stored: beats of its STORE.
        stored_bursts: bursts of it.
        beside: slots of its last computation that earlier parts of its STORE need not wait for.
        pieces: parts of that STORE; what takes its accumulators again does so in as many.
        pads: words of padding that its LOADs of operands write.
        port: beats of the store unit's LOADs.
        fetched: instructions.
        set: accumulators that it uses, a number below that of threads.
    """

    valid: BoolArray
    first: BoolArray
    last: BoolArray
    slots: FloatArray
    tail: FloatArray
    stored: FloatArray
    stored_bursts: FloatArray
    fetched: FloatArray
    set: IntArray
    loads: Moved | None = None
    before: Moved | None = None
    head: FloatArray | None = None
    clear: FloatArray | None = None
    between: Moved | None = None
    ahead: FloatArray | None = None
    added: Moved | None = None
    adding: FloatArray | None = None
    beside: FloatArray | None = None
    pieces: FloatArray | None = None
    pads: FloatArray | None = None
    port: FloatArray | None = None

    def followed(self, later: Turns) -> Turns:
        """These turns, and later ones of the first plans; the others do nothing then."""

        def joined(early: FloatArray, more: FloatArray | None, name: str) -> FloatArray:
            turns = len(early)
            every = np.empty((turns + len(later.valid), early.shape[1]), dtype=early.dtype)
            every[:turns] = early
            every[turns:] = 1 if name == "pieces" else 0
            if more is not None:
                every[turns:, : more.shape[1]] = more
            return every

        found: dict[str, Any] = {}
        for one in fields(self):
            early, more = getattr(self, one.name), getattr(later, one.name)
            if isinstance(early, Moved):
                parts = [None] * len(early) if more is None else more
                found[one.name] = Moved(*(joined(a, b, "") for a, b in zip(early, parts, strict=True)))
            else:
                found[one.name] = None if early is None else joined(early, more, one.name)
        return Turns(**found)


@dataclass(frozen=True, kw_only=True)
class Work:
    """All that plans do, one element for each.

    Attributes:
        turns: how many.
        period: turns after which they start over with other tiles.
        round: turns after which what buffers hold throughout them is loaded anew.
        anew: beats of that, of all threads; 0 if there is nothing.
        filling: the first turns of a round, in which that is loaded; 0 if it comes at once.
        threads: buffers that turns go round.
        slots: of the compute unit.
        load_bytes: of operands; of what the compute unit loads first where there are none.
        store_bytes: of results.
        compute_start, port_start, load_start: when each is free first, in cycles.
        late: beats of a LOAD of the compute unit that comes behind the operands of the first round of
            threads; 0 if there is none.
    """

    turns: IntArray
    period: IntArray
    round: IntArray
    anew: FloatArray
    filling: IntArray
    threads: IntArray
    slots: FloatArray
    load_bytes: FloatArray
    store_bytes: FloatArray
    compute_start: FloatArray
    port_start: FloatArray
    load_start: FloatArray
    late: FloatArray

    def take(self, chosen: IntArray) -> Work:
        """That of some plans."""
        return Work(**{one.name: getattr(self, one.name)[chosen] for one in fields(self)})


class Walker(Protocol):
    """Says what plans do."""

    config: Config
    store_pace: float
    """Cycles of a beat of a STORE."""

    def work(self) -> Work:
        """Of each plan as a whole."""

    def turns(self, numbers: IntArray, plans: IntArray) -> Turns:
        """What turns do.

        Args:
            numbers: of turns, (turns, plans); those beyond the last one are not valid.
            plans: which ones, by number.
        """


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """Arrays of what :class:`~accel.compiler.plans.candidate.Prediction` has for one plan."""

    cycles: FloatArray
    compute: FloatArray
    load: FloatArray
    store: FloatArray

    def one(self, number: int) -> Prediction:
        """That of one plan."""
        return Prediction(**{part.name: float(getattr(self, part.name)[number]) for part in fields(self)})

    def each(self) -> list[Prediction]:
        """Those of all plans."""
        return [self.one(number) for number in range(len(self.cycles))]


def fetched_first(config: Config) -> int:
    """The cycle in which the first instructions are there, and checked."""
    return FETCH_STARTUP + config.read_latency + WRITE_DELAY + config.dispatch_stages


def predict(walker: Walker, most: int = TURNS) -> Predictions:
    """What plans take.

    Args:
        walker: says what they do.
        most: turns that are gone through of each.
    """
    work = walker.work()
    return _Walk(walker, work, most).predict()


def _sampled(work: Work, most: int) -> tuple[IntArray, IntArray, IntArray]:
    """Which turns are gone through: how many at the start, from which on the pace is measured, and how many
    are left out then; at borders of periods or, where those are long, of rounds of threads. Where all are
    gone through, the first is -1."""
    some = np.clip(work.period * _PERIODS, most, most * _LONGER)
    unit = np.where(work.period * _PERIODS <= some, work.period, work.threads)
    tail = -(-some // _TAIL // unit) * unit
    head = np.maximum(1, (some - tail) // unit) * unit
    skipped = np.maximum(0, (work.turns - head - tail) // unit) * unit
    skipped = np.where(work.turns > some, skipped, 0)
    measured = np.maximum(head // 2 // unit, 1) * unit
    measured = np.where(measured >= head, 0, measured)
    return np.where(skipped > 0, head, -1), measured, skipped


class _Clocks:
    """Which unit is free when, of some plans; those still under way come first.

    Attributes:
        compute, port, write: when the unit, or the port, is free.
        load: when data could come that the load unit asks for next.
        used: by pairs of buffers, when data could come that are asked for once the computation that read them
            last is done; the last pair is one that nobody waits for, here and below.
        ready: by pairs of buffers, when what was loaded last can be computed with.
        stored, partly: by sets of accumulators, when the last tile in them has been written, and the first
            piece of it, before the answer to that; of the two sets behind the others nobody waits for the
            one, and the other is always free.
        dues: when the next burst, and the next LOAD, could have its data, had all before it taken their share
            of those in flight.
        writes_due: the same of a burst that is written, and its answer.
        pads: by pairs of buffers, words of padding up to those of what was loaded last.
        padded, known_pads: words of padding that are written, and all of LOADs so far.
        came: when the last data of a LOAD of operands came.
        added_used, added_ready: as ``used`` and ``ready``, of what is added behind products.
    """

    def __init__(self, config: Config, work: Work) -> None:
        self.config = config
        self.latency = float(config.read_latency)
        self.drain = compute_depth(config)
        self.count, threads = len(work.threads), int(work.threads.max(initial=1))
        self.compute, self.port = work.compute_start.copy(), work.port_start.copy()
        self.write = np.zeros(self.count)
        self.load = work.load_start + REQUEST_STARTUP + self.latency
        self.used, self.ready, self.added_used, self.added_ready = (
            np.zeros((threads + 1, self.count)) for _ in range(4)
        )
        self.stored, self.partly = np.full((2, threads + 2, self.count), -float(config.write_latency))
        self.dues, self.writes_due = np.full((2, self.count), _NEVER), np.full(self.count, _NEVER)
        self.pads = np.zeros((threads + 1, self.count))
        self.padded, self.known_pads, self.came = (np.zeros(self.count) for _ in range(3))

    def go_on(self, plans: IntArray, cycles: FloatArray) -> None:
        """Go on as if something that takes so long had been gone through."""
        for clock in (self.compute, self.port, self.load, self.write, self.came, self.writes_due):
            clock[plans] += cycles
        for clocks in (self.used, self.ready, self.added_used, self.added_ready, self.dues):
            clocks[:, plans] += cycles
        for clocks in (self.stored[:-2], self.partly[:-2]):
            clocks[:, plans] += cycles

    def accumulators(self, beats: FloatArray, loads: FloatArray, backlog: FloatArray | float) -> None:
        """LOADs of the compute unit, one after the other; it is empty before and after. What the load unit
        was granted before, at most a backlog of beats, comes first."""
        mask = loads > 0
        if not mask.any():
            return
        compute, port = self.compute[: len(mask)], self.port[: len(mask)]
        wait = REQUEST_STARTUP + self.latency
        start = compute + self.drain
        ahead = np.minimum(np.maximum(port - start, 0), backlog)
        end = start + np.maximum(ahead, wait) + beats + (loads - 1) * (wait + WRITE_DELAY + 1)
        np.copyto(port, np.maximum(port + beats, end), where=mask)
        np.copyto(compute, end + WRITE_DELAY + 1, where=mask)


class _Loads:
    """LOADs of operands by turns.

    Attributes:
        some: whether there are any.
        data: cycles from the first beat to the last.
        bursts: of them.
        costs: how long they take up a place among the bursts, and among the LOADs, in flight; (turns, 2,
            plans).
        pads: words of padding that they write, if any does.
        buffers: that they fill, as soon as those are free, by places in flat arrays of clocks.
        filled: the same where there are any; else those that nobody waits for.
    """

    def __init__(
        self,
        config: Config,
        moved: Moved,
        pads: FloatArray | None,
        buffers: IntArray,
        nowhere: IntArray,
    ) -> None:
        beats, self.bursts, loads, _, waits = moved
        self.data = beats + waits
        self.pads = pads
        self.some = loads > 0
        self.buffers = buffers
        self.filled = np.where(self.some, buffers, nowhere)
        bursts = (self.bursts * config.read_latency + beats) / config.outstanding
        instructions = (loads * (config.read_latency + 3) + beats) / config.loads_in_flight
        self.costs = np.stack([bursts, instructions], axis=1)

    def rows(self, begin: int, end: int, count: int) -> Iterator[_LoadRow]:
        """Those of some turns, of the first plans."""
        some = self.some[begin:end, :count]
        pads = repeat(None) if self.pads is None else self.pads[begin:end, :count]
        others = (
            array[begin:end, ..., :count]
            for array in (self.some, self.buffers, self.filled, self.data, self.bursts, self.costs)
        )
        return zip(_any(some), *others, pads)  # noqa: B905 (endless where there are none)


def _any(turns: BoolArray) -> list[bool]:
    """Whether there is something in each turn."""
    return list(np.any(turns, axis=1).tolist())


_LoadRow = tuple[bool, BoolArray, IntArray, IntArray, FloatArray, FloatArray, FloatArray, FloatArray | None]
"""LOADs of a turn: whether there are any, and where; buffers, and those that are filled; cycles of the data,
bursts, costs, and words of padding."""


class _Stretch:
    """Turns in which the same plans are under way; arrays are parts of the clocks, which go on."""

    def __init__(self, clocks: _Clocks, count: int) -> None:
        config = clocks.config
        self.latency, self.write_latency = clocks.latency, config.write_latency
        self.until_asked = clocks.drain + _TOKEN + REQUEST_STARTUP + clocks.latency
        """From the last slot that reads a buffer until the data come that take its place."""
        self.compute, self.load, self.port, self.write, self.writes_due, self.came, self.padded = (
            one[:count]
            for one in (
                *(clocks.compute, clocks.load, clocks.port, clocks.write, clocks.writes_due),
                *(clocks.came, clocks.padded),
            )
        )
        self.known_pads, self.dues = clocks.known_pads[:count], clocks.dues[:, :count]
        self.bursts_due, self.loads_due = self.dues
        self.buffers = clocks.used.reshape(-1), clocks.ready.reshape(-1)
        self.adders = clocks.added_used.reshape(-1), clocks.added_ready.reshape(-1)
        self.stored, self.partly, self.pads = (
            one.reshape(-1) for one in (clocks.stored, clocks.partly, clocks.pads)
        )
        self.wanted, self.filled = clocks.pads[:, :count], clocks.ready[:, :count]
        self._come, self._end, self._due = np.zeros((3, count))

    def loads(self, row: _LoadRow, *, added: bool = False) -> None:
        """LOADs of operands, or of what is ``added``, into buffers, as soon as those are free."""
        there, some, buffers, filled, data, bursts, costs, pads = row
        if not there:
            return
        used, ready = self.adders if added else self.buffers
        come, end, due, dues = self._come, self._end, self._due, self.dues
        used.take(buffers, out=come, mode="clip")
        np.maximum(come, self.load, out=come)
        np.maximum(come, self.bursts_due, out=come)
        np.maximum(come, self.loads_due, out=come)
        np.maximum(come, self.port, out=end)
        if pads is not None:
            self._pad(pads, come - self.latency, end, some, filled)
        end += data
        np.subtract(come, self.latency, out=due)
        np.maximum(dues, due, out=dues, where=some)
        dues += costs
        np.maximum(self.bursts_due, self.loads_due, out=due)
        np.maximum(end, due, out=end)
        np.copyto(self.port, end, where=some)
        if pads is not None:
            np.copyto(self.came, end, where=some)
        come += bursts
        np.maximum(come, due, out=come)
        come += REQUEST_STARTUP
        np.copyto(self.load, come, where=some)
        end += WRITE_DELAY + _TOKEN
        ready[filled] = end

    def _pad(
        self, pads: FloatArray, asked: FloatArray, begin: FloatArray, some: BoolArray, filled: IntArray
    ) -> None:
        """Words of padding are written in order, in cycles in which no data come: between the data before and
        those of a turn, which begin then, those of earlier turns and, once it has asked, its own."""
        before, known, came = self.padded.copy(), self.known_pads, self.came
        start = np.where(known > before, came, np.maximum(asked, came))
        np.copyto(known, known + pads, where=some)
        written = np.minimum(known, before + np.maximum(begin - start, 0))
        np.copyto(self.padded, written, where=some)
        done = (self.wanted > before) & (self.wanted <= written) & some
        np.copyto(
            self.filled,
            np.maximum(self.filled, start + self.wanted - before + (WRITE_DELAY + _TOKEN)),
            where=done,
        )
        self.pads[filled] = known

    def wait_for_operands(self, buffers: IntArray, *, padded: bool) -> None:
        """Compute what operands in buffers are needed for once they are there, and the padding that was not
        written before the last data: behind these."""
        ready = self._come
        self.buffers[1].take(buffers, out=ready, mode="clip")
        if padded:
            left = self.pads[buffers] - self.padded
            behind = self.came + left + (WRITE_DELAY + _TOKEN)
            np.maximum(ready, np.where(left > 0, behind, 0.0), out=ready)
        np.maximum(self.compute, ready, out=self.compute)

    def wait_for_stored(self, sets: IntArray) -> None:
        """Take accumulators once the first piece of the tile before is stored."""
        self.partly.take(sets, out=self._come, mode="clip")
        self._come += self.write_latency
        np.maximum(self.compute, self._come, out=self.compute)

    def wait_for_pieces(self, sets: IntArray, work: FloatArray) -> None:
        """A tile's first computation waits for the last piece of the tile before to be stored; ``work`` is
        that of a piece, and the answer to what has been written."""
        self.stored.take(sets, out=self._come, mode="clip")
        self._come += work
        np.maximum(self.compute, self._come, out=self.compute)

    def free(self, buffers: IntArray) -> None:
        """What was in buffers has been read."""
        np.add(self.compute, self.until_asked, out=self._come)
        self.buffers[0][buffers] = self._come

    def add(self, row: tuple[BoolArray, IntArray, IntArray, FloatArray, FloatArray]) -> None:
        """Add what is loaded besides operands, where tiles end."""
        last, buffers, read, ahead, adding = row
        self.compute += ahead
        np.maximum(self.compute, self.adders[1].take(buffers), out=self.compute, where=last)
        self.compute += adding
        self.adders[0][read] = self.compute + self.until_asked

    def store(self, row: _StoreRow) -> None:
        """STOREs of tiles that are done."""
        there, last, places, until, data, answers, piece, others = row
        if not there:
            return
        write, due, first, done, end = self.write, self.writes_due, self._come, self._end, self._due
        np.add(self.compute, until, out=first)
        if piece is None:
            np.maximum(write, first, out=write)
            np.maximum(due, write, out=due)
            write += data
        else:
            np.maximum(first, write, out=first)
            np.maximum(due, first, out=due)
            np.add(first, data, out=done)
            np.add(first, piece, out=end)
            np.maximum(done, end, out=done)
            np.copyto(write, done, where=last)
        due += answers
        np.subtract(due, self.write_latency, out=done)
        np.maximum(write, done, out=write)
        self.stored[places] = write
        if others is None:
            np.maximum(first, write, out=first)
        else:
            np.subtract(write, others, out=done)
            np.maximum(first, done, out=first)
        self.partly[places] = first


_StoreRow = tuple[
    bool,
    BoolArray,
    IntArray,
    FloatArray,
    FloatArray,
    FloatArray,
    FloatArray | None,
    FloatArray | None,
]
"""STOREs of a turn: whether there are any, and where; accumulators; cycles until the first beat, of the
data, and until answers are there; from the first beat to the last one at least, and of the pieces in front of
the last one."""


class _Walk:
    """One pass; plans that have more turns come first, so that those under way are always the first ones."""

    def __init__(self, walker: Walker, work: Work, most: int) -> None:
        self.config = walker.config
        head, measured, skipped = _sampled(work, most)
        self.plans = order = np.argsort(skipped - work.turns, kind="stable")
        self.head, self.measured, self.skipped = head[order], measured[order], skipped[order]
        self.work = work = work.take(order)
        self.length = work.turns - self.skipped
        self.longest = int(self.length.max(initial=0))
        numbers = np.arange(self.longest)[:, None]
        numbers = np.where((self.head >= 0) & (numbers >= self.head), numbers + self.skipped, numbers)
        self.script = self._turns(walker, numbers, 0, len(order))
        self.pace = walker.store_pace
        self.clocks = _Clocks(walker.config, work)

    def _turns(self, walker: Walker, numbers: IntArray, begin: int, count: int) -> Turns:
        """What turns from one on do, of the first plans: those that most of these have of all of them, the
        others of those that have more."""
        length, end = self.length[:count], len(numbers)
        cuts = np.unique(length[length > begin])
        under_way = (length > cuts[:, None]).sum(axis=1)
        areas = (cuts - begin) * count + (end - cuts) * under_way
        if not len(cuts) or areas.min() > _WORTH * (end - begin) * count:
            return walker.turns(numbers[begin:, :count], self.plans[:count])
        cut, some = (int(one[areas.argmin()]) for one in (cuts, under_way))
        early = self._turns(walker, numbers[:cut], begin, count)
        return early.followed(self._turns(walker, numbers, cut, some))

    def predict(self) -> Predictions:
        """What plans take, in their first order."""
        clocks, totals, count = self.clocks, _Totals(self), len(self.plans)
        loads, added = self._loads(self.script.loads), self._loads(self.script.added, added=True)
        if loads is not None:
            stretch, rounds = _Stretch(clocks, count), len(loads[0].data)
            more = repeat(None) if added is None else added[0].rows(0, rounds, count)
            for row, other in zip(loads[0].rows(0, rounds, count), more):  # noqa: B905 (endless if none)
                stretch.loads(row)
                if other is not None:
                    stretch.loads(other, added=True)
            clocks.accumulators(self.work.late, (self.work.late > 0) * 1.0, self.backlog)
        marks = {int(n): np.flatnonzero(self.measured == n) for n in np.unique(self.measured)}
        jumps = {int(n): np.flatnonzero(self.head == n) for n in np.unique(self.head) if n >= 0}
        marked = np.zeros(count)
        borders = sorted({0, *marks, *jumps, *self.length.tolist()} & set(range(self.longest + 1)))
        for begin, end in pairwise(borders):
            if begin in marks:
                marked[marks[begin]] = clocks.compute[marks[begin]]
            if begin in jumps:
                plans = jumps[begin]
                clocks.go_on(plans, totals.between(plans, clocks.compute[plans] - marked[plans]))
            self._go(begin, end, int((self.length > begin).sum()), loads and loads[1], added and added[1])
        ended = np.maximum(clocks.compute + clocks.drain, clocks.write + self.config.write_latency) + 1
        back = np.argsort(self.plans)
        return Predictions(
            cycles=ended[back],
            compute=self.work.slots[back],
            load=totals.load[back],
            store=totals.store[back],
        )

    def _go(self, begin: int, end: int, n: int, loads: _Loads | None, added: _Loads | None) -> None:
        """Go through turns in which the first ``n`` plans are under way."""
        script, stretch = self.script, _Stretch(self.clocks, n)
        compute, port, padded = stretch.compute, stretch.port, script.pads is not None

        def rows(array: FloatArray | None) -> Iterable[Any]:
            return repeat(None) if array is None else array[begin:end, :n]

        adds: Iterable[Any] = repeat(None)
        if script.ahead is not None and script.adding is not None:
            every = script.last, self.adds, self.added, script.ahead, script.adding
            adds = zip(*map(rows, every), strict=True)
        turns = zip(  # noqa: B905 (some are endless, as there are none)
            range(begin, end),
            _any(script.first[begin:end, :n]),
            *map(rows, (script.head, script.clear, self.waits, self.taken, self.ring, self.uses)),
            *(rows(script.slots), adds, rows(script.tail), self._stores(begin, end, n)),
            *map(rows, (script.port, self.fetched)),
            *(repeat(None) if one is None else one.rows(begin, end, n) for one in (loads, added)),
        )
        for turn, first, head, clear, sets, work, ring, uses, slots, add, tail, store, *others in turns:
            own, code, load, more = others
            if script.before is not None:
                self._accumulators(script.before, turn, n)
            if head is not None:
                compute += head
            if first:
                stretch.wait_for_stored(sets)
            if clear is not None:
                compute += clear
            if loads is not None:
                stretch.wait_for_operands(ring, padded=padded)
            compute += slots
            if first:
                stretch.wait_for_pieces(sets, work)
            stretch.free(uses)
            if script.between is not None:
                self._accumulators(script.between, turn, n)
            if add is not None:
                stretch.add(add)
            compute += tail
            stretch.store(store)
            if own is not None:
                port += own
            port += code
            if load is not None:  # of the turn that has the same buffers next
                stretch.loads(load)
            if more is not None:
                stretch.loads(more, added=True)

    def _stores(self, begin: int, end: int, n: int) -> Iterator[_StoreRow]:
        """STOREs of turns of the first plans."""
        script = self.script
        there = _any(script.last[begin:end, :n])
        times = self.until_stored, self.store_cycles, self.answers, self.last_piece, self.others
        rows = (
            repeat(None) if one is None else one[begin:end, :n] for one in (script.last, self.stores, *times)
        )
        return zip(there, *rows)  # noqa: B905 (some are endless, as there are none)

    def _accumulators(self, moved: Moved, turn: int, n: int) -> None:
        """LOADs of the compute unit."""
        beats, loads = moved.beats[turn, :n], moved.instructions[turn, :n]
        self.clocks.accumulators(beats, loads, self.backlog[:n])

    # --- places and costs by turns -----------------------------------------------------------------------

    def _places(self, of: IntArray) -> IntArray:
        """Where the element of a number for each plan is in a flat array."""
        return np.asarray(of * len(self.plans) + np.arange(len(self.plans)))

    @cached_property
    def ring(self) -> IntArray:
        """The buffers of a turn: those of the turn a round of threads before."""
        return self._places(np.arange(self.longest)[:, None] % self.work.threads)

    @cached_property
    def uses(self) -> IntArray:
        """The buffers of a turn, if there is one; else some that nobody waits for."""
        nowhere = len(self.clocks.used) - 1
        return np.where(self.script.valid, self.ring, self._places(np.array(nowhere)))

    @cached_property
    def adds(self) -> IntArray:
        """The buffers of what a turn adds: those of its accumulators."""
        return self._places(self.script.set)

    @cached_property
    def added(self) -> IntArray:
        """The same where a turn adds something; else some that nobody waits for."""
        nowhere = len(self.clocks.added_used) - 1
        return np.where(self.script.last, self.adds, self._places(np.array(nowhere)))

    @cached_property
    def taken(self) -> FloatArray:
        """Cycles from the last beat of a tile that is stored to the end of the first piece of the turn's
        computation, if it waits for the answer."""
        script = self.script
        work = script.slots if script.clear is None else script.slots + script.clear
        piece = work if script.pieces is None else work / script.pieces
        return np.asarray(piece + self.config.write_latency)

    @cached_property
    def waits(self) -> IntArray:
        """The accumulators that must be stored before a turn; else those that always are."""
        always = len(self.clocks.stored) - 2
        return self._places(np.where(self.script.first, self.script.set, always))

    @cached_property
    def stores(self) -> IntArray:
        """The accumulators that a turn stores; else those that nobody waits for."""
        nowhere = len(self.clocks.stored) - 1
        return self._places(np.where(self.script.last, self.script.set, nowhere))

    @cached_property
    def until_stored(self) -> FloatArray:
        """Cycles from the last slot to the first beat of a STORE, if there is one; fewer where it begins
        earlier than that."""
        cycles = compute_depth(self.config) + _TOKEN + REQUEST_STARTUP + store_depth(self.config)
        early = 0 if self.script.beside is None else self.script.beside
        return np.where(self.script.last, cycles - early, _NEVER)

    @cached_property
    def store_cycles(self) -> FloatArray:
        """Of the data of STOREs."""
        return np.asarray(self.script.stored * self.pace)

    @cached_property
    def last_piece(self) -> FloatArray | None:
        """Cycles from the first beat to the last one at least, as the last piece waits for the last slot;
        None if no STORE begins before that."""
        script = self.script
        if script.beside is None or script.pieces is None:
            return None
        return np.asarray(script.beside + self.store_cycles / script.pieces)

    @cached_property
    def others(self) -> FloatArray | None:
        """Those of the data of all pieces but one; None if there are no others."""
        pieces = self.script.pieces
        return None if pieces is None else np.asarray(self.store_cycles * (1 - 1 / pieces))

    @cached_property
    def answers(self) -> FloatArray:
        """How long STOREs take up a place among the bursts without an answer."""
        script = self.script
        waits = script.stored_bursts * self.config.write_latency + script.stored * self.pace
        return np.asarray(waits / self.config.outstanding)

    @cached_property
    def fetched(self) -> FloatArray:
        """Beats of instructions, once the first ones are used up."""
        fetched = self.script.fetched
        late = np.cumsum(fetched, axis=0) > self.config.fetch_buffer
        return np.asarray(fetched * late * (INSTRUCTION_BYTES / self.config.bus_bytes))

    @cached_property
    def backlog(self) -> FloatArray:
        """Beats that LOADs of operands may have been granted ahead of everybody else."""
        if self.script.loads is None:
            return np.zeros(len(self.plans))
        beats, bursts = (one.sum(axis=0) for one in self.script.loads[:2])
        return np.asarray(self.config.outstanding * beats / np.maximum(bursts, 1.0))

    def _loads(self, loads: Moved | None, *, added: bool = False) -> tuple[_Loads, _Loads] | None:
        """LOADs of operands, or of what is ``added``: of the first round of threads, and by turns of those a
        round later."""
        threads = self.work.threads
        if loads is None or not self.longest:
            return None
        rounds = min(int(threads.max()), self.longest)
        soon = np.arange(rounds)[:, None] < threads
        later = np.arange(self.longest)[:, None] + threads
        there, later = later < self.longest, np.minimum(later, self.longest - 1)
        buffers = self.adds if added else self.ring
        nowhere = self._places(np.array(len(self.clocks.ready) - 1))

        def of(part: Callable[[FloatArray], FloatArray], count: int) -> _Loads:
            pads = None if added or self.script.pads is None else part(self.script.pads)
            return _Loads(self.config, Moved(*map(part, loads)), pads, buffers[:count], nowhere)

        return (
            of(lambda every: every[:rounds] * soon, rounds),
            of(lambda every: np.take_along_axis(every, later, axis=0) * there, self.longest),
        )


class _Totals:
    """Work of whole plans and of the turns that are gone through.

    Attributes:
        load, store: beats of whole plans.
    """

    def __init__(self, walk: _Walk) -> None:
        script, bus, work = walk.script, walk.config.bus_bytes, walk.work
        self.walk = walk
        zero = np.zeros_like(script.slots)

        def of(part: FloatArray | Moved | None) -> FloatArray:
            return zero if part is None else part.beats if isinstance(part, Moved) else part

        loads = script.before if script.loads is None else script.loads
        slots = script.slots + script.tail + of(script.head) + of(script.clear)
        slots = slots + of(script.ahead) + of(script.adding)
        beats, loaded = (zero, zero) if loads is None else (loads.beats + of(script.pads), loads.bytes)
        if script.added is not None:
            beats, loaded = beats + script.added.beats, loaded + script.added.bytes
        port = of(script.loads) + of(script.pads) + of(script.before) + of(script.between) + of(script.port)
        port = port + of(script.added) + script.fetched * (INSTRUCTION_BYTES / bus)
        self.compute, self.port, self.beats, self.stores = (
            np.vstack([np.zeros(len(walk.plans)), np.cumsum(one, axis=0)])
            for one in (slots, port, beats, script.stored)
        )
        whole = walk.skipped == 0
        walked, stored = self.beats[-1], self.stores[-1]
        full = np.maximum(loaded.sum(axis=0), 1.0)  # beats in proportion to bytes, whatever is aligned
        self.load = np.where(whole, walked, np.maximum(work.load_bytes * walked / full, walked))
        self.store = np.where(whole, stored, work.store_bytes / bus)
        self.skipped_slots = np.maximum(work.slots - self.compute[-1], 0)
        self.skipped_beats = np.maximum(self.load - walked, 0)
        self.skipped_stores = np.maximum(self.store - stored, 0) * walk.pace

    def between(self, plans: IntArray, taken: FloatArray) -> FloatArray:
        """Cycles of the turns that are left out, by the cycles that those before them have taken."""
        walk = self.walk
        begin, end = walk.measured[plans], walk.head[plans]
        compute, port, beats, stores = (
            one[end, plans] - one[begin, plans] for one in (self.compute, self.port, self.beats, self.stores)
        )
        busiest = np.maximum(np.maximum(compute, port), np.maximum(stores * walk.pace, 1.0))
        ports = np.where(beats > 0, port / np.maximum(beats, 1e-9), 1.0) * self.skipped_beats[plans]
        pace = np.maximum(taken / busiest, 1.0)
        left = np.maximum(self.skipped_slots[plans], np.maximum(ports, self.skipped_stores[plans]))
        # what is loaded anew comes at once: computation does not go on beside it for longer than its threads'
        work, passed, size = walk.work, walk.skipped[plans], np.maximum(end - begin, 1)
        rounds = (end + passed - 1) // work.round[plans] - (end - 1) // work.round[plans]
        anew = work.anew[plans] * (work.round[plans] > end)
        waits = rounds * np.maximum(anew - work.threads[plans] * (taken - port) / size, 0)
        others = np.maximum(ports - rounds * anew, 0)
        apart = np.maximum(self.skipped_slots[plans], np.maximum(others, self.skipped_stores[plans]))
        at_once = np.where(waits > 0, np.maximum(apart * pace + waits, left), left * pace)
        filled = work.filling[plans]
        return np.asarray(np.where(filled > 0, self._filling(plans, end, ports) * pace, at_once))

    def _filling(self, plans: IntArray, end: IntArray, ports: FloatArray) -> FloatArray:
        """Cycles of the turns that are left out where something is loaded anew in the first turns of each
        round: those take as long as the loads, the others as the busiest unit."""
        work, passed = self.walk.work, np.maximum(self.walk.skipped[plans], 1)
        size, filling = work.round[plans], np.maximum(work.filling[plans], 1)

        def filling_before(turn: IntArray) -> IntArray:
            return np.asarray(turn // size * filling + np.minimum(turn % size, filling))

        turns = filling_before(end + passed) - filling_before(end)
        anew, share = turns / filling * work.anew[plans], turns / passed
        others = np.maximum(ports - anew, 0)
        slots, stores = self.skipped_slots[plans], self.skipped_stores[plans]
        busy = np.maximum(slots, stores)
        full = np.maximum(anew + others * share, busy * share)
        return np.asarray(full + np.maximum(others, busy) * (1 - share))
