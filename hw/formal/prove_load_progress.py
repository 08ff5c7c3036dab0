"""Proof that LOADs in flight wait only for the bus."""

from amaranth.hdl import Array, Const, Mux, Signal, Value

from accel.core.config import Config
from accel.core.isa import Load, Unit
from accel.hw.datapath.transfer_memories import kinds_of
from accel.hw.formal.claims import Claims, any_of, sum_of
from accel.hw.units.in_flight import RangeLayout
from accel.hw.units.load_executor import LoadExecutor

_TOTAL_BITS = 8
"""Width of a transfer's number of beats. Nothing depends on it."""


def loads(config: Config, unit: Unit) -> Claims:
    """Claim progress of a unit's loader, on a bus that delivers all requested beats. Any transfer has the
    same number of beats in both walkers, as the proofs of "ends" claim."""
    shared = unit is Unit.STORE
    depth = 1 if unit is Unit.COMPUTE else config.loads_in_flight
    component = LoadExecutor(kinds_of(Load, unit, config), depth, config, shared=shared)
    claims = Claims(component)
    read, retirement = component.read, component.retirement
    requesting, flushed = read.valid, claims.before(component.flush)
    claims.assume(~component.start | (component.room & ~requesting & ~component.flush & ~flushed))
    claims.assume(~read.granted | (requesting & ~component.flush))
    owed, entries = _as_many_beats(claims, component, depth)
    active = claims.inside.signal("beats.active")
    claims.lemma(
        "nothing is in flight after a flush",
        ~flushed | ~(active | requesting | (owed != 0) | retirement.occupied),
    )
    pads = _parts_in_flight(claims, component, config, depth, entries, shared=shared)
    claims.claim("a beat arrives only for a started LOAD", ~read.beat_valid | active)
    retires = retirement.valid | (component.hold if shared else Const(0))
    claims.claim(
        "a LOAD in flight requests, awaits beats, writes or retires",
        ~retirement.occupied | requesting | (owed != 0) | component.data_valid | pads | retires,
    )
    unwritten = component.unwritten if shared else Const(0)
    claims.claim(
        "without a LOAD in flight, any may start, and no beat is awaited",
        retirement.occupied
        | (component.room & ~requesting & ~component.conflict & ~unwritten & ((owed == 0) | component.flush)),
    )
    return claims


def _as_many_beats(
    claims: Claims, component: LoadExecutor, depth: int
) -> tuple[Signal, list[tuple[Value, Signal]]]:
    """Claim that every requested beat arrives, and no other one.

    Return the number of beats in flight, and the transfers whose beats come after those of others.
    """
    inside = claims.inside
    read = component.read
    requesting, granted, beat = read.valid, read.granted, read.beat_valid
    active, beats = inside.signal("beats.active"), inside.signal("bursts.beats")
    asked_last, come_last = claims.cut("bursts.last"), claims.cut("beats.last")
    begins = component.start & inside.input("flight.has_data")
    total = claims.free(_TOTAL_BITS, "total")
    claims.assume(total != 0)
    to_ask, to_come = claims.register(_TOTAL_BITS, "to_ask"), claims.register(_TOTAL_BITS, "to_come")
    owed = claims.register(_TOTAL_BITS + depth.bit_length() + 1, "owed")
    entries = claims.queue("data_queue", depth)
    first, tail = inside.signal("data_queue.first"), inside.signal("data_queue.tail")
    queued = [claims.register(_TOTAL_BITS, f"queued_{place}") for place in range(depth)]
    for place, its in enumerate(queued):
        claims.follows(its, Mux(begins & (tail == place), total, its))
    head: Value = Array(queued)[first] if depth > 1 else queued[0]
    claims.follows(to_ask, Mux(begins, total, to_ask - Mux(granted, beats, 0)))
    claims.follows(to_come, Mux(inside.input("beats.start"), head, to_come - beat))
    claims.follows(owed, Mux(component.flush, 0, owed + Mux(granted, beats, 0) - beat))
    claims.assume(~beat | (owed != 0))
    claims.rely(~requesting | ((beats != 0) & (beats <= to_ask) & (asked_last == (beats == to_ask))))
    claims.rely(~active | (come_last == (to_come == 1)))
    claims.lemma("free is the complement of valid", inside.signal("bursts.free") == ~requesting)
    left = sum_of([Mux(there, its, 0) for (there, _), its in zip(entries, queued, strict=True)])
    claims.lemma(
        "awaited and unrequested beats are those to come",
        owed + Mux(requesting, to_ask, 0) == Mux(active, to_come, 0) + left,
    )
    claims.lemma("a request has beats", ~requesting | (to_ask != 0))
    claims.lemma("an active LOAD has beats to come", ~active | (to_come != 0))
    for (there, _), its in zip(entries, queued, strict=True):
        claims.lemma("a queued LOAD has beats", ~there | (its != 0))
    count = inside.signal("data_queue.count")
    claims.lemma(
        "without an active LOAD, at most one has just started",
        active | (count == 0) | ((count == 1) & requesting & (to_ask == head)),
    )
    return owed, entries


def _parts_in_flight(
    claims: Claims,
    component: LoadExecutor,
    config: Config,
    depth: int,
    entries: list[tuple[Value, Signal]],
    *,
    shared: bool,
) -> Value:
    inside = claims.inside
    flying = numbered(claims, depth, component.flush)
    active, flushed = inside.signal("beats.active"), claims.before(component.flush)
    written = component.data_valid & inside.signal("written_last") & ~flushed
    slot_bits = (depth - 1).bit_length()
    one: Value = Const(0)

    def slot(held: Signal) -> Value:
        return held[len(held) - slot_bits :] if depth > 1 else one

    now, late = (inside.signal(name) if depth > 1 else one for name in ("slot", "written_slot"))
    for n in range(depth):
        sources = [active & (now == n), written & (late == n)]
        sources += [there & (slot(held) == n) for there, held in entries]
        each_in_one_place(claims, f"data {n}", flying[n], inside.signal(f"flight.data_left_{n}"), sources)
    if depth > 1 or shared:
        for n in range(depth):
            filled = RangeLayout(config)(inside.signal(f"flight.filled_{n}"))
            claims.lemma("only transfers in flight have ranges", ~filled.any | flying[n])
            if shared:
                left = filled.any & inside.signal(f"flight.data_left_{n}")
                claims.lemma("awaited parts are incomplete", inside.signal(f"flight.awaits_{n}") == left)
    if shared:
        for n in range(depth):
            claims.lemma("no transfer has pads left", ~flying[n] | ~inside.signal(f"flight.pads_left_{n}"))
        return Const(0, 1)
    pads: Value = inside.signal("pads.valid")
    entries = claims.queue("pads_queue.queue", depth)
    claims.lemma("pads are queued only after other pads", ~inside.signal("pads_queue.queue.valid") | pads)
    now = inside.input("flight.pads_slot") if depth > 1 else one
    for n in range(depth):
        sources = [pads & (now == n), *(there & (slot(held) == n) for there, held in entries)]
        each_in_one_place(claims, f"pads {n}", flying[n], inside.signal(f"flight.pads_left_{n}"), sources)
    return pads


def numbered(claims: Claims, depth: int, flush: Value) -> list[Value]:
    """Return for each slot whether its transfer is in flight."""
    flying = [there for there, _ in claims.queue("flight.records", depth)]
    for name, pointer in (("head", "first"), ("slot", "tail")) if depth > 1 else ():
        same = claims.inside.signal(f"flight.{name}") == claims.inside.signal(f"flight.records.{pointer}")
        claims.lemma(f"numbers are places, {name}", same)
    flushed = claims.before(flush)
    for part in ("data", "pads"):
        left = [claims.inside.signal(f"flight.{part}_left_{n}") for n in range(depth)]
        oldest = Array(left)[claims.inside.signal("flight.head")] if depth > 1 else left[0]
        claims.lemma(
            f"{part}_due is that of the oldest",
            flushed | (claims.inside.signal(f"flight.{part}_due") == oldest),
        )
    return flying


def each_in_one_place(
    claims: Claims,
    name: str,
    flying: Value,
    left: Value,
    sources: list[Value],
    abandoned: Value = Const(0, 1),  # noqa: B008  # a constant
) -> None:
    """Claim that each unfinished part is in exactly one place, except in an abandoned run."""
    claims.lemma(f"{name}: an incomplete part has a source", abandoned | ~flying | (left == any_of(sources)))
    claims.lemma(f"{name}: the transfer of a source is in flight", abandoned | ~any_of(sources) | flying)
    claims.lemma(f"{name}: a part has at most one source", abandoned | (sum_of(sources) <= 1))
