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

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Protocol

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
        compute, load, port, write: when the unit, or the port, is free.
        used: by pairs of buffers, when the computation that read them last is done.
        ready: by pairs of buffers, when what was loaded last is there.
        stored, partly: by sets of accumulators, when the last tile in them is stored, and the first piece of
            it; of the two sets behind the others nobody waits for the one, and the other is always free.
        bursts_due, loads_due, writes_due: when the next burst or LOAD could have its data, or the next burst
            its answer, had all before it taken their share of those in flight.
        pads: by pairs of buffers, words of padding up to those of what was loaded last.
        padded, known_pads: words of padding that are written, and all of LOADs so far.
        came: when the last data of a LOAD of operands came.
        added_used, added_ready: as ``used`` and ``ready``, of what is added behind products.
    """

    def __init__(self, config: Config, work: Work) -> None:
        self.config = config
        self.latency = float(config.read_latency)
        self.drain = compute_depth(config)
        count, threads = len(work.threads), int(work.threads.max(initial=1))
        self.compute, self.port = work.compute_start.copy(), work.port_start.copy()
        self.load, self.write = work.load_start.copy(), np.zeros(count)
        self.used, self.ready, self.added_used, self.added_ready = (
            np.zeros((threads + 1, count)) for _ in range(4)
        )
        self.stored, self.partly = np.zeros((threads + 2, count)), np.zeros((threads + 2, count))
        self.bursts_due, self.loads_due, self.writes_due = (np.full(count, _NEVER) for _ in range(3))
        self.pads = np.zeros((threads + 1, count))
        self.padded, self.known_pads, self.came = (np.zeros(count) for _ in range(3))

    def go_on(self, plans: IntArray, cycles: FloatArray) -> None:
        """Go on as if something that takes so long had been gone through."""
        dues = self.bursts_due, self.loads_due, self.writes_due
        for clock in (self.compute, self.port, self.load, self.write, self.came, *dues):
            clock[plans] += cycles
        for clocks in (self.used, self.ready, self.added_used, self.added_ready):
            clocks[:, plans] += cycles
        for clocks in (self.stored[:-2], self.partly[:-2]):
            clocks[:, plans] += cycles

    def loads(self, loads: _Loads, turn: int, buffers: IntArray) -> None:
        """LOADs of operands into buffers, as soon as those are free."""
        n = len(buffers)
        used, ready = (self.added_used, self.added_ready) if loads.added else (self.used, self.ready)
        mask = loads.some[turn, :n]
        if not mask.any():
            return
        bursts_due, loads_due, load, port = (
            clock[:n] for clock in (self.bursts_due, self.loads_due, self.load, self.port)
        )
        asked = used.reshape(-1)[buffers] + _TOKEN
        np.maximum(asked, load, out=asked)
        asked += REQUEST_STARTUP
        np.maximum(asked, bursts_due - self.latency, out=asked)
        np.maximum(asked, loads_due - self.latency, out=asked)
        np.copyto(bursts_due, np.maximum(bursts_due, asked) + loads.burst_cost[turn, :n], where=mask)
        np.copyto(loads_due, np.maximum(loads_due, asked) + loads.load_cost[turn, :n], where=mask)
        end = np.maximum(asked + self.latency, port)
        if loads.pads is not None:
            self._pad(loads.pads[turn, :n], asked, end, mask, buffers)
        end += loads.beats[turn, :n]
        np.maximum(end, bursts_due, out=end)
        np.maximum(end, loads_due, out=end)
        np.copyto(port, end, where=mask)
        np.copyto(self.came[:n], end, where=mask)
        asked += loads.bursts[turn, :n]
        np.maximum(asked, bursts_due - self.latency, out=asked)
        np.maximum(asked, loads_due - self.latency, out=asked)
        np.copyto(load, asked, where=mask)
        ready.reshape(-1)[buffers[mask]] = end[mask] + WRITE_DELAY

    def _pad(
        self, pads: FloatArray, asked: FloatArray, begin: FloatArray, mask: BoolArray, buffers: IntArray
    ) -> None:
        """Words of padding are written in order, in cycles in which no data come: between the data before and
        those of a turn, which begin then, those of earlier turns and, once it has asked, its own."""
        n = len(begin)
        before, known, came = self.padded[:n].copy(), self.known_pads[:n], self.came[:n]
        start = np.where(known > before, came, np.maximum(asked, came))
        np.copyto(known, known + pads, where=mask)
        written = np.minimum(known, before + np.maximum(begin - start, 0))
        np.copyto(self.padded[:n], written, where=mask)
        wanted, ready = self.pads[:, :n], self.ready[:, :n]
        done = (wanted > before) & (wanted <= written) & mask
        np.copyto(ready, np.maximum(ready, start + wanted - before + WRITE_DELAY), where=done)
        self.pads.reshape(-1)[buffers[mask]] = known[mask]

    def pads_written(self, buffers: IntArray) -> FloatArray:
        """When padding in buffers is written that was not before the last data: behind these."""
        n = len(buffers)
        left = self.pads.reshape(-1)[buffers] - self.padded[:n]
        return np.where(left > 0, self.came[:n] + left + WRITE_DELAY, 0.0)

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
        beats, bursts: of them.
        pads: words of padding that they write, if any does.
        burst_cost, load_cost: how long they take up a place among the bursts, and among the LOADs, in flight.
        added: whether they are of what is added behind the products.
    """

    def __init__(self, config: Config, moved: Moved, pads: FloatArray | None, *, added: bool = False) -> None:
        self.beats, self.bursts, loads, _ = moved
        self.added = added
        self.pads = pads
        self.some = loads > 0
        self.burst_cost = (self.bursts * config.read_latency + self.beats) / config.outstanding
        self.load_cost = (loads * (config.read_latency + 3) + self.beats) / config.loads_in_flight


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
        self.script = walker.turns(numbers, self.plans)
        self.pace = walker.store_pace
        self.clocks = _Clocks(walker.config, work)

    def predict(self) -> Predictions:
        """What plans take, in their first order."""
        clocks, totals = self.clocks, _Totals(self)
        loads, added = self._loads(self.script.loads), self._loads(self.script.added, added=True)
        if loads is not None:
            first, later = loads
            for turn in range(len(first.beats)):
                clocks.loads(first, turn, self.ring[turn])
                if added is not None:
                    clocks.loads(added[0], turn, self.adds[turn])
            clocks.accumulators(self.work.late, (self.work.late > 0) * 1.0, self.backlog)
        marks = {int(n): np.flatnonzero(self.measured == n) for n in np.unique(self.measured)}
        jumps = {int(n): np.flatnonzero(self.head == n) for n in np.unique(self.head) if n >= 0}
        marked = np.zeros(len(self.plans))
        active = len(self.plans)
        for turn in range(self.longest):
            while self.length[active - 1] <= turn:
                active -= 1
            if turn in marks:
                marked[marks[turn]] = clocks.compute[marks[turn]]
            if turn in jumps:
                plans = jumps[turn]
                clocks.go_on(plans, totals.between(plans, clocks.compute[plans] - marked[plans]))
            self._turn(turn, active)
            if loads is not None:  # of the turn that has the same buffers next
                clocks.loads(later, turn, self.ring[turn, :active])
                if added is not None:
                    clocks.loads(added[1], turn, self.adds[turn, :active])
        end = np.maximum(clocks.compute + clocks.drain, clocks.write + self.config.write_latency) + 1
        back = np.argsort(self.plans)
        return Predictions(
            cycles=end[back],
            compute=self.work.slots[back],
            load=totals.load[back],
            store=totals.store[back],
        )

    def _turn(self, turn: int, n: int) -> None:
        """What the compute unit and the store unit do in a turn of the first ``n`` plans."""
        script, clocks = self.script, self.clocks
        now = clocks.compute[:n]
        if script.before is not None:
            self._accumulators(script.before, turn, n)
        if script.head is not None:
            now += script.head[turn, :n]
        np.maximum(now, clocks.partly.reshape(-1)[self.waits[turn, :n]], out=now)
        if script.clear is not None:
            now += script.clear[turn, :n]
        if script.loads is not None:
            ready = clocks.ready.reshape(-1)[self.ring[turn, :n]]
            if script.pads is not None:
                ready = np.maximum(ready, clocks.pads_written(self.ring[turn, :n]))
            np.maximum(now, ready + _TOKEN, out=now)
        now += script.slots[turn, :n]
        self._taken(turn, n)
        clocks.used.reshape(-1)[self.uses[turn, :n]] = now + clocks.drain
        if script.between is not None:
            self._accumulators(script.between, turn, n)
        if script.ahead is not None and script.adding is not None:
            now += script.ahead[turn, :n]
            ready = clocks.added_ready.reshape(-1)[self.adds[turn, :n]] + _TOKEN
            np.maximum(now, ready, out=now, where=script.last[turn, :n])
            now += script.adding[turn, :n]
            users = script.last[turn, :n]
            clocks.added_used.reshape(-1)[self.adds[turn, :n][users]] = now[users] + clocks.drain
        now += script.tail[turn, :n]
        self._store(turn, n)
        if script.port is not None:
            clocks.port[:n] += script.port[turn, :n]
        clocks.port[:n] += self.fetched[turn, :n]

    def _taken(self, turn: int, n: int) -> None:
        """A tile's first computation waits for the last piece of the tile before to be stored."""
        script, clocks = self.script, self.clocks
        work = script.slots[turn, :n]
        if script.clear is not None:
            work = work + script.clear[turn, :n]
        pieces = 1.0 if script.pieces is None else script.pieces[turn, :n]
        stored = clocks.stored.reshape(-1)[self.waits[turn, :n]]
        now = clocks.compute[:n]
        np.maximum(now, stored + work / pieces, out=now)

    def _accumulators(self, moved: Moved, turn: int, n: int) -> None:
        """LOADs of the compute unit."""
        beats, loads = moved.beats[turn, :n], moved.instructions[turn, :n]
        self.clocks.accumulators(beats, loads, self.backlog[:n])

    def _store(self, turn: int, n: int) -> None:
        """STOREs of tiles that are done."""
        script, clocks = self.script, self.clocks
        write, due, data = clocks.write[:n], clocks.writes_due[:n], self.store_cycles[turn, :n]
        first = clocks.compute[:n] + self.until_stored[turn, :n]
        if script.beside is None or script.pieces is None:
            np.maximum(write, first, out=write)
            np.maximum(due, write, out=due)
            write += data
        else:
            early = script.beside[turn, :n]
            first = np.maximum(first - early, write)
            np.maximum(due, first, out=due)
            end = np.maximum(first + data, first + early + data / script.pieces[turn, :n])
            np.copyto(write, end, where=script.last[turn, :n])
        due += self.answers[turn, :n]
        np.maximum(write, due - self.config.write_latency, out=write)
        places, done = self.stores[turn, :n], write + self.config.write_latency
        clocks.stored.reshape(-1)[places] = done
        part = 0.0 if script.pieces is None else data * (1 - 1 / script.pieces[turn, :n])
        clocks.partly.reshape(-1)[places] = np.maximum(done - part, first + self.config.write_latency)

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
        """Cycles from the last slot to the first beat of a STORE, if there is one."""
        cycles = compute_depth(self.config) + _TOKEN + REQUEST_STARTUP + store_depth(self.config)
        return np.where(self.script.last, float(cycles), _NEVER)

    @cached_property
    def store_cycles(self) -> FloatArray:
        """Of the data of STOREs."""
        return np.asarray(self.script.stored * self.pace)

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
        pads = None if added else self.script.pads

        def first(of: FloatArray) -> FloatArray:
            return of[:rounds] * soon

        def rest(of: FloatArray) -> FloatArray:
            return np.take_along_axis(of, later, axis=0) * there

        return (
            _Loads(
                self.config, Moved(*map(first, loads)), None if pads is None else first(pads), added=added
            ),
            _Loads(self.config, Moved(*map(rest, loads)), None if pads is None else rest(pads), added=added),
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
