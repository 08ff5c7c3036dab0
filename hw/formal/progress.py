"""Nothing waits for nothing: what each unit waits for that has begun something, and that it starts the next
where it has not.

Together with :mod:`~accel.hw.formal.finite`: on a bus that takes what it is offered and answers what it is
asked, every run ends, well or with an error; where units wait for tokens alone, it is the error deadlock.
"""

from functools import partial, reduce
from operator import or_

from amaranth.hdl import Array, Cat, Const, Mux, Signal, Value

from accel.core.config import NAMED, Config
from accel.core.isa import Load, Unit
from accel.core.timing_rules import compute_depth
from accel.core.token_rules import WORKERS, queue_depth
from accel.hw.core import Core
from accel.hw.datapath.copies import COPIES
from accel.hw.datapath.kinds import kinds_of
from accel.hw.datapath.layouts import UNIT_BITS
from accel.hw.datapath.sequencer import OperationLayout
from accel.hw.formal.claims import Claims, Proof
from accel.hw.formal.transfers import walks
from accel.hw.units.compute import Compute
from accel.hw.units.ending import Ending
from accel.hw.units.fetch import Fetch
from accel.hw.units.flight import RangeLayout
from accel.hw.units.load import Load as LoadUnit
from accel.hw.units.loader import Loader
from accel.hw.units.store import Store

_SMALL = {
    "outstanding": 2,
    "max_burst_beats": 16,
    "loads_in_flight": 2,
    "stores_in_flight": 2,
    "fetch_buffer": 4,
    "fetch_chunk": 2,
    "load_queue": 2,
    "compute_queue": 2,
    "store_queue": 2,
    "dispatch_stages": 2,
}
"""So much in flight that one may pass another."""
CONFIGS = {name: NAMED[name].override(_SMALL) for name in ("tiny", "tiny-int8")}
_TOTAL_BITS = 8
"""Of transfers of so few beats; nothing depends on how many there are."""


def _any(values: list[Value]) -> Value:
    return reduce(or_, values, Const(0, 1))


def _sum(values: list[Value]) -> Value:
    return sum(values, Const(0, 1))


def loads(config: Config, unit: Unit) -> Claims:
    """The loader of a unit, on a bus that brings as many beats as it was asked for.

    The walkers over bursts and over beats are those of any transfer with as many beats of the one as of the
    other, which the proofs of "ends" claim; where that one ends is left open.
    """
    shared = unit is Unit.STORE
    depth = 1 if unit is Unit.COMPUTE else config.loads_in_flight
    component = Loader(kinds_of(Load, unit, config), depth, config, shared=shared)
    claims = Claims(component)
    read, retirement = component.read, component.retirement
    requesting, flushed = read.valid, claims.before(component.flush)
    claims.assume(~component.start | (component.room & ~requesting & ~component.flush & ~flushed))
    claims.assume(~read.granted | (requesting & ~component.flush))
    owed, entries = _as_many_beats(claims, component, depth)
    active = claims.inside.signal("beats.active")
    claims.lemma(
        "a run begins with nothing", ~flushed | ~(active | requesting | (owed != 0) | retirement.occupied)
    )
    pads = _parts_in_flight(claims, component, config, depth, entries, shared=shared)
    claims.claim("every beat has its place", ~read.beat_valid | active)
    retires = retirement.valid | (component.hold if shared else Const(0))
    claims.claim(
        "a LOAD in flight asks, is owed beats, writes or retires",
        ~retirement.occupied | requesting | (owed != 0) | component.data_valid | pads | retires,
    )
    unwritten = component.unwritten if shared else Const(0)
    claims.claim(
        "who has no LOAD in flight may start any, and is owed nothing",
        retirement.occupied
        | (component.room & ~requesting & ~component.conflict & ~unwritten & ((owed == 0) | component.flush)),
    )
    return claims


def _as_many_beats(
    claims: Claims, component: Loader, depth: int
) -> tuple[Signal, list[tuple[Value, Signal]]]:
    """As many beats are asked for as come; gives how many the bus owes, and the transfers whose beats come
    behind those of others."""
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
    claims.lemma("the walker knows that it is free", inside.signal("bursts.free") == ~requesting)
    left = _sum([Mux(there, its, 0) for (there, _), its in zip(entries, queued, strict=True)])
    claims.lemma(
        "what is asked for comes", owed + Mux(requesting, to_ask, 0) == Mux(active, to_come, 0) + left
    )
    claims.lemma("there is something to ask for", ~requesting | (to_ask != 0))
    claims.lemma("there is something to come", ~active | (to_come != 0))
    for (there, _), its in zip(entries, queued, strict=True):
        claims.lemma("it has beats", ~there | (its != 0))
    count = inside.signal("data_queue.count")
    claims.lemma(
        "only what has just started waits alone",
        active | (count == 0) | ((count == 1) & requesting & (to_ask == head)),
    )
    return owed, entries


def _parts_in_flight(
    claims: Claims,
    component: Loader,
    config: Config,
    depth: int,
    entries: list[tuple[Value, Signal]],
    *,
    shared: bool,
) -> Value:
    """What has not retired is somewhere; gives whether pads are being written."""
    inside = claims.inside
    flying = _numbered(claims, depth, component.flush)
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
        _sources(claims, f"data {n}", flying[n], inside.signal(f"flight.data_left_{n}"), sources)
    if depth > 1 or shared:
        for n in range(depth):
            filled = RangeLayout(config)(inside.signal(f"flight.filled_{n}"))
            claims.lemma("ranges are of what is in flight", ~filled.any | flying[n])
    if shared:
        claims.assume(~component.start | ~inside.input("flight.has_pads"))
        for n in range(depth):
            claims.lemma("there are no pads", ~flying[n] | ~inside.signal(f"flight.pads_left_{n}"))
        return Const(0, 1)
    pads: Value = inside.signal("pads.valid")
    entries = claims.queue("pads_queue.queue", depth)
    claims.lemma("pads wait for others", ~inside.signal("pads_queue.queue.valid") | pads)
    now = inside.input("flight.pads_slot") if depth > 1 else one
    for n in range(depth):
        sources = [pads & (now == n), *(there & (slot(held) == n) for there, held in entries)]
        _sources(claims, f"pads {n}", flying[n], inside.signal(f"flight.pads_left_{n}"), sources)
    return pads


def _numbered(claims: Claims, depth: int, flush: Value) -> list[Value]:
    """Of each number of a transfer, whether it is in flight; numbers are places of the queue."""
    flying = [there for there, _ in claims.queue("flight.records", depth)]
    for name, pointer in (("head", "first"), ("slot", "tail")) if depth > 1 else ():
        same = claims.inside.signal(f"flight.{name}") == claims.inside.signal(f"flight.records.{pointer}")
        claims.lemma(f"numbers are places, {name}", same)
    flushed = claims.before(flush)
    for part in ("data", "pads"):
        left = [claims.inside.signal(f"flight.{part}_left_{n}") for n in range(depth)]
        oldest = Array(left)[claims.inside.signal("flight.head")] if depth > 1 else left[0]
        claims.lemma(
            f"of the oldest it is known, {part}",
            flushed | (claims.inside.signal(f"flight.{part}_due") == oldest),
        )
    return flying


def _sources(
    claims: Claims,
    name: str,
    flying: Value,
    left: Value,
    sources: list[Value],
    given_up: Value = Const(0, 1),  # noqa: B008  # a constant
) -> None:
    """What has a part left is in one place, in a run that has not been given up."""
    claims.lemma(f"{name}: what is left is somewhere", given_up | ~flying | (left == _any(sources)))
    claims.lemma(f"{name}: it is in flight", given_up | ~_any(sources) | flying)
    claims.lemma(f"{name}: it is in one place", given_up | (_sum(sources) <= 1))


def fetch(config: Config) -> Claims:
    """Fetch, from a first start on, on a bus that brings as many beats as it was asked for."""
    component = Fetch(config)
    claims = Claims(component)
    inside = claims.inside
    halves = 16 // config.bus_bytes
    read, flush = component.read, component.flush
    granted, beat = read.granted, read.beat_valid
    begun = claims.register(1, "run_begun")
    claims.follows(begun, begun | flush)
    length = claims.register(len(component.length), "its_length")
    claims.follows(length, Mux(flush, component.length, length))
    claims.assume(~component.active | ~begun | (component.length == length))
    claims.assume(~granted | (read.valid & ~flush & inside.signal("counts.room")))
    owed = claims.register(8, "owed")
    beats = read.request.beats
    claims.follows(owed, Mux(flush, 0, owed + Mux(granted, beats, 0) - beat))
    claims.assume(~beat | ((owed != 0) & ~flush))

    entries = claims.queue("counts", config.outstanding)
    head, valid = inside.signal("counts.head"), inside.signal("counts.valid")
    fresh, left, half = inside.signal("fresh"), inside.signal("burst_left"), inside.signal("half")
    coming = Signal(8)
    claims.defined(coming, _sum([Mux(there, its, 0) for there, its in entries]) - Mux(fresh, 0, head - left))
    for there, its in entries:
        claims.lemma("a burst has instructions", ~there | ((its != 0) & (its <= config.fetch_chunk)))
    claims.lemma("of a burst under way something is left", fresh | (valid & (left != 0) & (left < head)))
    claims.lemma("half an instruction has another half", ~half | valid)
    claims.lemma("as many beats come as were asked for", owed + half == coming * halves)
    room, held = inside.signal("room"), inside.signal("held")
    chunk, count = inside.signal("chunk"), inside.signal("count")
    behind = inside.signal("left")
    claims.lemma("room is kept", ~begun | (room + held + coming == config.fetch_buffer))
    following = component.next
    asked, arrived = inside.signal("asked"), inside.signal("arrived")
    claims.lemma("what is not asked for is behind", ~begun | (asked + chunk + behind == length))
    claims.lemma("what was asked for comes", ~begun | (arrived + coming == asked))
    claims.lemma("what has arrived is handed out or held", ~begun | (following + held == arrived))
    claims.lemma("chunks are filled", (chunk <= config.fetch_chunk) & ((chunk != 0) | (behind == 0) | ~begun))
    claims.lemma("a burst has an instruction", ~begun | (chunk == 0) | ((count != 0) & (count <= chunk)))
    claims.lemma("the end is known", ~begun | (component.more == (following != length)))
    claims.lemma(
        "the last one is known",
        ~begun | ~component.more | (inside.signal("last") == (following + 1 == length)),
    )
    claims.lemma("it is known whether one is there", component.waiting == (held == 0))
    nothing = (chunk == 0) & ~component.more & (owed == 0) & (held == 0)
    claims.lemma("no run, nothing", begun | nothing)
    claims.claim("every beat has its burst", ~beat | valid)
    claims.claim(
        "who waits for an instruction asks for it, or is owed beats",
        ~(component.enable & component.more & component.waiting) | read.valid | (owed != 0),
    )
    claims.claim(
        "who has handed out everything asks for nothing, and is owed nothing",
        component.more | ~begun | ~(read.valid | (owed != 0)),
    )
    gone = component.fetched.push & ~flush
    claims.claim(
        "what is handed out is counted", ~claims.before(gone) | (following == claims.before(following + 1))
    )
    return claims


def load_unit(config: Config) -> Claims:
    """The load unit, whose loader is as claimed."""
    component = LoadUnit(config)
    claims = Claims(component)
    inside = claims.inside
    occupied = inside.signal("loader.retirement__occupied")
    _empty_loader(claims, "loader")
    if config.post:
        claims.queue("loader.flight.records", config.loads_in_flight)
        claims.lemma("a SET is under way", ~inside.signal("under_way") | occupied)
    _empty_unit_starts(claims, component, Const(1))
    return claims


def _empty_loader(claims: Claims, path: str, *, shared: bool = False) -> None:
    """What the proofs of loaders claim, of one inside a component."""
    inside = claims.inside
    free = inside.signal(f"{path}.room") & ~inside.signal(f"{path}.read__valid")
    free &= ~inside.signal(f"{path}.conflict")
    if shared:
        free &= ~inside.signal(f"{path}.unwritten")
    claims.rely(inside.signal(f"{path}.retirement__occupied") | free)


def _empty_unit_starts(claims: Claims, component: LoadUnit | Compute | Store, sound: Value) -> None:
    issue = component.issue
    waits = component.control.enable & issue.valid & ~component.retirement.occupied
    starts = issue.start | (component.fault != 0) | component.lacking
    claims.claim(
        "with nothing in flight, what heads the queue starts, lacks a token, or is at fault",
        ~waits | ~sound | starts,
    )


def compute_unit(config: Config) -> Claims:
    """The compute unit, as long as a run goes on in which no index is at fault."""
    component = Compute(config)
    claims = Claims(component)
    inside, control = claims.inside, component.control
    _empty_loader(claims, "loader")
    sound = claims.register(1, "sound")
    claims.follows(sound, control.flush | (sound & control.enable & (component.index_fault == 0)))
    claims.assume(~control.enable | (sound & ~control.flush))
    depth = compute_depth(config) + 1
    claims.queue("flight", depth)
    count = inside.signal("flight.count")
    active, free = inside.signal("sequencer.active"), inside.signal("sequencer.free")
    layout = OperationLayout(config)
    names = [
        "read",
        "checked",
        *(f"product_{n}" for n in range(config.tree_stages + 1)),
        "operating",
        "writing",
    ]
    stages = [layout(inside.signal(name)).last for name in names]
    finishing = inside.signal("finishing")
    claims.lemma("the sequencer knows that it is free", free == ~inside.signal("sequencer.issuing"))
    claims.lemma("who issues is active", free | active)
    claims.lemma("what takes no pipeline is alone", ~sound | ~finishing | (count == 1))
    in_pipeline = _sum([active, *stages])
    told = inside.signal("flight.valid") == (count != 0)
    claims.claim("the unit knows whether something is in flight", (count <= depth) & told)
    claims.claim("what is in flight is in the pipeline", ~sound | (count == in_pipeline + finishing))
    claims.lemma("what is in the pipeline is in flight", count >= in_pipeline + finishing)
    quiet = claims.register(range(len(stages) + 3), "quiet")
    """Cycles in which the sequencer has no slot, and something is in flight."""
    idle = ~active & (count != 0) & ~control.flush
    claims.follows(quiet, Mux(idle, Mux(quiet == len(stages) + 2, quiet, quiet + 1), 0))
    claims.lemma("what takes no pipeline has found it empty", ~sound | ~finishing | (quiet == 0))
    for n, last in enumerate(stages):
        claims.lemma(f"stage {n} has been left", ~sound | (quiet <= n) | ~last)
    claims.claim("what has no slot left retires in so many cycles", ~sound | (quiet <= len(stages)))
    _empty_unit_starts(claims, component, sound)
    return claims


def store_unit(config: Config) -> Claims:
    """The store unit, in runs that begin when the bus owes it nothing that was not given up."""
    component = Store(config)
    claims = Claims(component)
    inside, control = claims.inside, component.control
    depth = config.stores_in_flight
    bursts = inside.signal("bursts.valid")
    given_up = claims.register(1, "run_given_up")
    claims.follows(given_up, Mux(control.flush, 0, given_up | component.abandon))
    claims.assume(~control.flush | component.abandon | ~component.writing)
    claims.assume(~(control.flush | component.abandon | given_up) | ~control.enable)
    flushed = claims.before(control.flush)
    claims.assume(~flushed | ~component.issue.valid)
    walks(claims, config, "bursts.")
    if config.post:
        is_load, is_set, is_store = inside.signal("known")[:3]
        claims.lemma("the head is of one kind", ~(is_store & (is_load | is_set)))
    flying = _numbered(claims, depth, control.flush)
    claims.lemma("a run begins with nothing", ~flushed | ~(bursts | _any(flying)))
    entries = claims.queue("responses", config.outstanding)
    first, left = inside.signal("responses.first"), inside.signal("abandoned.left")
    claims.lemma("no more are given up than there are", left <= inside.signal("responses.count"))
    slot_bits = (depth - 1).bit_length()
    slot = inside.input("responses.data")[1 : 1 + slot_bits]
    for n in range(depth):
        sources = [bursts & (slot == n)]
        for place, (there, held) in enumerate(entries):
            ahead = Mux(first <= place, place - first, place + config.outstanding - first)
            own = there & (ahead >= left)
            sources.append(own & held[0] & (held[1 : 1 + slot_bits] == n))
        claims.lemma("there are no pads", ~flying[n] | ~inside.signal(f"flight.pads_left_{n}"))
        _sources(claims, f"{n}", flying[n], inside.signal(f"flight.data_left_{n}"), sources, given_up)
    if not config.post:
        claims.claim(
            "a STORE in flight asks, is owed an answer, or retires",
            given_up
            | ~component.retirement.occupied
            | bursts
            | component.writing
            | component.retirement.valid,
        )
    claims.claim(
        "a burst waits for the bus, or for beats of the one before",
        ~(bursts & control.enable)
        | component.grant
        | inside.signal("more_left")
        | (component.awvalid & ~component.awready)
        | (component.wvalid & ~component.wready)
        | (inside.signal("responses.count") == config.outstanding),
    )
    claims.lemma("it knows whether there is a beat", inside.signal("idle") == ~component.wvalid)
    beats_left = inside.signal("left")
    claims.lemma("it knows whether beats are left", inside.signal("more_left") == (beats_left != 0))
    claims.claim(
        "where the bus takes beats, there is one less",
        ~claims.before(inside.signal("more_left") & inside.signal("asking") & ~component.grant)
        | (beats_left < claims.before(beats_left)),
    )
    if not config.post:
        _empty_unit_starts(claims, component, ~given_up)
    return claims


def ending() -> Claims:
    """How a run ends that is complete, or has an error."""
    component = Ending(3, 4, 5)
    claims = Claims(component)
    inside = claims.inside
    since, settled = inside.signal("since"), inside.signal("settled")
    levels = len(since)
    claims.assume(~component.start | ~component.running)
    claims.assume(component.flush == (component.start | component.clear))
    claims.assume(~component.clear | ~component.running | component.draining)
    halted, running, going = component.halted, component.running, component.going
    claims.lemma("units go on while it runs", going == (running & ~halted))
    ago = claims.register(range(levels + 2), "ago")
    claims.follows(ago, Mux(component.flush | ~halted, 0, Mux(ago == levels, ago, ago + 1)))
    claims.lemma("cycles since are counted", ago <= levels)
    claims.lemma("it is on its way", since == Mux(halted & (ago < levels), 1 << ago, 0)[:levels])
    claims.lemma("then it is known", settled == (halted & (ago == levels)))
    claims.claim(
        "an error halts the run",
        ~claims.before(inside.signal("stopping")) | halted | claims.before(component.flush),
    )
    claims.claim("so many cycles later it drains", ~(halted & running & (ago == levels)) | component.draining)
    claims.claim(
        "it has ended when the bus is drained, or late",
        ~(component.draining & (component.drained | component.late | component.clear)) | component.ended,
    )
    claims.claim("what is complete has ended", ~(going & component.complete) | component.ended)
    claims.claim("it runs on otherwise", ~claims.before(running & ~component.ended) | running)
    claims.claim("what has ended runs no more", ~claims.before(component.ended & ~component.start) | ~running)
    return claims


def stalls(config: Config) -> Claims:
    """A core with any program, whose units are as claimed."""
    component = Core(config)
    claims = Claims(component)
    inside = claims.inside
    going, running = inside.signal("ending.going"), inside.signal("ending.running")
    start, clear, flush = (inside.signal(f"control.{name}") for name in ("start", "clear", "flush"))
    begins = (start | clear).replicate(COPIES)
    claims.lemma("queues are emptied where a run begins", flush == begins)
    claims.lemma("units go on while it runs", going == (running & ~inside.signal("ending.halted")))
    claims.lemma("a run starts when none is there", ~start | ~running)
    stopped = inside.signal("ending.halted") & inside.signal("ending.settled")
    claims.lemma("a run is given up that has stopped", ~clear | ~running | stopped)
    more, waiting, push = (
        inside.signal("fetch.more"),
        inside.signal("fetch.waiting"),
        inside.input("dispatch.fetched__push"),
    )
    busy = inside.signal("dispatch.busy")
    there, occupied, starts, lacking = [], [], [], []
    stages = [
        (inside.signal(f"dispatch.held_{n}_0"), inside.signal(f"dispatch.held_{n}_1"))
        for n in range(config.dispatch_stages)
    ]
    inside_all: list[Value] = []
    for unit in WORKERS:
        name, depth = unit.label, queue_depth(unit, config)
        valid = inside.signal(f"{name}_queue.issue__valid")
        behind, taken = inside.signal(f"{name}_queue.behind.count"), inside.signal(f"{name}_queue.taken")
        claims.queue(f"{name}_queue.behind", max(1, depth - 1))
        claims.lemma(f"{name}: the head is there", valid | (behind == 0))
        under_way = _sum([one & (its == unit) for one, its in stages])
        claims.lemma(f"{name}: it knows how many", taken == valid + behind + under_way)
        claims.lemma(
            f"{name}: room is told", inside.signal(f"{name}_queue.reservation__room") == (taken != depth)
        )
        claims.lemma(f"{name}: there is room", taken <= depth)
        there.append(valid)
        occupied.append(inside.signal(f"{name}.retirement__occupied"))
        starts.append(inside.signal(f"{name}.issue__start"))
        lacking.append(inside.signal(f"{name}.lacking"))
        fault = inside.signal(f"{name}.fault")
        claims.rely(~going | ~valid | occupied[-1] | starts[-1] | (fault != 0) | lacking[-1])
        inside_all.append(taken)
    for place in range(config.fetch_buffer):
        cell = inside.cell("fetch.bank_0", Const(place, range(config.fetch_buffer)))
        its, units = cell[128 : 128 + UNIT_BITS], cell[128 + UNIT_BITS :]
        for number, unit in enumerate(WORKERS):
            claims.lemma("an instruction is one unit's", ~units[number] | (its == unit))
    serial, blocked = inside.signal("control.serial"), inside.signal("fetch.blocked")
    flying = [
        inside.signal("load.loader.flight.records.count"),
        inside.signal("compute.loader.flight.records.count"),
        inside.signal("compute.flight.count"),
        inside.signal("store.flight.records.count"),
    ]
    for path, depth in (
        ("load.loader.flight.records", config.loads_in_flight),
        ("compute.loader.flight.records", 1),
        ("store.flight.records", config.stores_in_flight),
    ):
        claims.queue(path, depth)
    its, depth = inside.signal("compute.flight.count"), compute_depth(config) + 1
    claims.rely((its <= depth) & (inside.signal("compute.flight.valid") == (its != 0)))
    claims.lemma(
        "one after the other: the one that is handed out is somewhere",
        ~going | ~serial | (_sum([*inside_all, *flying]) == blocked),
    )
    at_work = _any([*occupied, inside.signal("read_port.busy"), inside.signal("fetch.read__valid")])
    at_work |= inside.signal("store.writing") | push | (more & waiting) | busy
    ends = inside.input("ending.complete") | inside.signal("ending.stopping")
    claims.claim(
        "where nothing is under way, an instruction starts, or the run ends",
        ~(going & inside.signal("ending.begun")) | at_work | _any(starts) | ends,
    )
    cause = inside.signal("ending.stopping")
    deadlock = ~at_work & _any(there) & (Cat(lacking) == Cat(there))
    claims.claim("where all that is left lacks tokens, the run stops", ~(going & deadlock) | cause)
    return claims


PROOFS = (
    *(
        Proof(
            name=f"progress of {unit.label} LOADs, {name}",
            statement="a LOAD in flight waits for the bus alone; who has none may start any",
            build=partial(loads, config, unit),
        )
        for name, config in CONFIGS.items()
        for unit in (Unit.LOAD, Unit.COMPUTE, Unit.STORE)
        if kinds_of(Load, unit, config)
    ),
    Proof(
        name="progress of fetch",
        statement="who waits for an instruction asks for it, or is owed it; in the end nothing is owed",
        build=partial(fetch, CONFIGS["tiny"]),
    ),
    *(
        Proof(
            name=f"progress of {kind}, {name}",
            statement="what is in flight goes on; where nothing is, the next starts, lacks tokens or fails",
            build=partial(build, config),
        )
        for name, config in CONFIGS.items()
        for kind, build in (("load", load_unit), ("compute", compute_unit), ("store", store_unit))
    ),
    Proof(
        name="ends of runs",
        statement="an error ends a run in so many cycles and those in which the bus is drained",
        build=ending,
    ),
    Proof(
        name="progress of a core",
        statement="where nothing is under way, an instruction starts, or the run ends, with deadlock if so",
        build=partial(stalls, CONFIGS["tiny"]),
    ),
)
