"""Proofs of progress, from which docs/explain/verification.md argues that every run ends."""

from functools import partial

from amaranth.hdl import Cat, Const, Mux, Signal, Value

from accel.core.config import NAMED, Config
from accel.core.isa import Load, Unit
from accel.core.timing_rules import compute_depth
from accel.core.token_rules import WORKERS, queue_depth
from accel.hw.core import Core
from accel.hw.datapath.register_copies import COPIES
from accel.hw.datapath.transfer_memories import kinds_of
from accel.hw.datapath.word_layouts import UNIT_BITS
from accel.hw.formal.claims import Claims, Proof, any_of, sum_of
from accel.hw.formal.prove_load_progress import loads
from accel.hw.formal.prove_unit_progress import compute_unit, load_unit, store_unit
from accel.hw.units.fetch import Fetch
from accel.hw.units.run_control import RunControl

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
"""Enough transfers and bursts that one can overtake another."""
CONFIGS = {name: NAMED[name].override(_SMALL) for name in ("tiny", "tiny-int8", "tiny-npu")}


def fetch(config: Config) -> Claims:
    """Claims from the first start on, on a bus that delivers all requested beats."""
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
    claims.defined(
        coming, sum_of([Mux(there, its, 0) for there, its in entries]) - Mux(fresh, 0, head - left)
    )
    for there, its in entries:
        claims.lemma("a burst has instructions", ~there | ((its != 0) & (its <= config.fetch_chunk)))
    claims.lemma("an unfinished burst has instructions left", fresh | (valid & (left != 0) & (left < head)))
    claims.lemma("half an instruction has another half", ~half | valid)
    claims.lemma("awaited beats are those of requested instructions", owed + half == coming * halves)
    room, held = inside.signal("room"), inside.signal("held")
    chunk, count = inside.signal("chunk"), inside.signal("count")
    behind = inside.signal("left")
    claims.lemma(
        "free, held and awaited instructions fill the buffer",
        ~begun | (room + held + coming == config.fetch_buffer),
    )
    following = component.next
    asked, arrived = inside.signal("asked"), inside.signal("arrived")
    claims.lemma(
        "requested and unrequested instructions are the program", ~begun | (asked + chunk + behind == length)
    )
    claims.lemma("requested instructions have arrived or are awaited", ~begun | (arrived + coming == asked))
    claims.lemma("arrived instructions are dispatched or held", ~begun | (following + held == arrived))
    claims.lemma(
        "a chunk is planned while instructions remain",
        (chunk <= config.fetch_chunk) & ((chunk != 0) | (behind == 0) | ~begun),
    )
    claims.lemma(
        "a burst has instructions of its chunk", ~begun | (chunk == 0) | ((count != 0) & (count <= chunk))
    )
    claims.lemma("more is right", ~begun | (component.more == (following != length)))
    claims.lemma(
        "last is right",
        ~begun | ~component.more | (inside.signal("last") == (following + 1 == length)),
    )
    claims.lemma("waiting is set while none is held", component.waiting == (held == 0))
    nothing = (chunk == 0) & ~component.more & (owed == 0) & (held == 0)
    claims.lemma("nothing is in flight before a run", begun | nothing)
    claims.claim("every beat belongs to a burst", ~beat | valid)
    claims.claim(
        "fetch requests or awaits the next instruction",
        ~(component.enable & component.more & component.waiting) | read.valid | (owed != 0),
    )
    claims.claim(
        "after the last dispatch, fetch requests and awaits nothing",
        component.more | ~begun | ~(read.valid | (owed != 0)),
    )
    gone = component.fetched.push & ~flush
    claims.claim(
        "each dispatch advances to the next instruction",
        ~claims.before(gone) | (following == claims.before(following + 1)),
    )
    return claims


def ending() -> Claims:
    """Claim the end of a run that is complete or has an error."""
    component = RunControl(3, 4, 5)
    claims = Claims(component)
    inside = claims.inside
    since, settled = inside.signal("since"), inside.signal("settled")
    levels = len(since)
    claims.assume(~component.start | ~component.running)
    claims.assume(component.flush == (component.start | component.clear))
    claims.assume(~component.clear | ~component.running | component.draining)
    halted, running, going = component.halted, component.running, component.going
    claims.lemma("going is running and not halted", going == (running & ~halted))
    ago = claims.register(range(levels + 2), "ago")
    claims.follows(ago, Mux(component.flush | ~halted, 0, Mux(ago == levels, ago, ago + 1)))
    claims.lemma("cycles since the error stop at their limit", ago <= levels)
    claims.lemma(
        "one bit moves through the shift register",
        since == Mux(halted & (ago < levels), 1 << ago, 0)[:levels],
    )
    claims.lemma("the cause is settled after the last level", settled == (halted & (ago == levels)))
    claims.claim(
        "an error halts the run",
        ~claims.before(inside.signal("stopping")) | halted | claims.before(component.flush),
    )
    claims.claim(
        "a run drains a fixed number of cycles after its error",
        ~(halted & running & (ago == levels)) | component.draining,
    )
    claims.claim(
        "a draining run ends when the bus has drained or timed out",
        ~(component.draining & (component.drained | component.late | component.clear)) | component.ended,
    )
    claims.claim("a complete run ends", ~(going & component.complete) | component.ended)
    claims.claim("a run continues until it ends", ~claims.before(running & ~component.ended) | running)
    claims.claim("an ended run no longer runs", ~claims.before(component.ended & ~component.start) | ~running)
    return claims


def stalls(config: Config) -> Claims:
    """Claims for a core whose units satisfy their own claims."""
    component = Core(config)
    claims = Claims(component)
    inside = claims.inside
    going, running = inside.signal("ending.going"), inside.signal("ending.running")
    start, clear, flush = (inside.signal(f"control.{name}") for name in ("start", "clear", "flush"))
    begins = (start | clear).replicate(COPIES)
    claims.lemma("start and clear flush", flush == begins)
    claims.lemma("going is running and not halted", going == (running & ~inside.signal("ending.halted")))
    claims.lemma("a run starts only while none is running", ~start | ~running)
    stopped = inside.signal("ending.halted") & inside.signal("ending.settled")
    claims.lemma("only a stopped run is abandoned", ~clear | ~running | stopped)
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
        claims.lemma(f"{name}: entries imply a head", valid | (behind == 0))
        under_way = sum_of([one & (its == unit) for one, its in stages])
        claims.lemma(f"{name}: taken counts entries and reservations", taken == valid + behind + under_way)
        claims.lemma(
            f"{name}: room is set while there is space",
            inside.signal(f"{name}_queue.reservation__room") == (taken != depth),
        )
        claims.lemma(f"{name}: entries fit", taken <= depth)
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
            claims.lemma("a queued instruction belongs to one unit", ~units[number] | (its == unit))
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
        "serial: the dispatched instruction is in one place",
        ~going | ~serial | (sum_of([*inside_all, *flying]) == blocked),
    )
    at_work = any_of([*occupied, inside.signal("read_port.busy"), inside.signal("fetch.read__valid")])
    at_work |= inside.signal("store.writing") | push | (more & waiting) | busy
    ends = inside.input("ending.complete") | inside.signal("ending.stopping")
    claims.claim(
        "with nothing in flight, an instruction starts, or the run ends",
        ~(going & inside.signal("ending.begun")) | at_work | any_of(starts) | ends,
    )
    cause = inside.signal("ending.stopping")
    deadlock = ~at_work & any_of(there) & (Cat(lacking) == Cat(there))
    claims.claim("if all remaining instructions lack tokens, the run stops", ~(going & deadlock) | cause)
    return claims


PROOFS = (
    *(
        Proof(
            name=f"progress of {unit.label} LOADs, {name}",
            statement="a LOAD in flight waits only for the bus; an empty loader can start any LOAD",
            build=partial(loads, config, unit),
        )
        for name, config in CONFIGS.items()
        for unit in (Unit.LOAD, Unit.COMPUTE, Unit.STORE)
        if kinds_of(Load, unit, config)
    ),
    Proof(
        name="progress of fetch",
        statement="fetch has requested the instruction that it waits for; at the end it awaits nothing",
        build=partial(fetch, CONFIGS["tiny"]),
    ),
    *(
        Proof(
            name=f"progress of {kind}, {name}",
            statement="work in flight continues; an empty unit starts, lacks tokens or reports a fault",
            build=partial(build, config),
        )
        for name, config in CONFIGS.items()
        for kind, build in (("load", load_unit), ("compute", compute_unit), ("store", store_unit))
    ),
    Proof(
        name="ends of runs",
        statement="an error ends a run a fixed number of cycles after it, once the bus is drained",
        build=ending,
    ),
    Proof(
        name="progress of a core",
        statement="an idle core starts an instruction or ends the run, with a deadlock if tokens are missing",
        build=partial(stalls, CONFIGS["tiny"]),
    ),
)
