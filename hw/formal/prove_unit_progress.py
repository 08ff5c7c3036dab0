"""Proofs of progress for units whose loaders and walkers satisfy their own claims."""

from amaranth.hdl import Const, Mux, Value

from accel.core.config import Config
from accel.core.isa import Unit
from accel.core.timing_rules import compute_depth
from accel.hw.datapath.loop_sequencer import OperationLayout
from accel.hw.formal.claims import Claims, any_of, sum_of
from accel.hw.formal.prove_bursts import walks
from accel.hw.formal.prove_load_progress import each_in_one_place, numbered
from accel.hw.formal.prove_queue_entries import entry_checks
from accel.hw.units.compute import Compute
from accel.hw.units.load import Load as LoadUnit
from accel.hw.units.store import Store


def load_unit(config: Config) -> Claims:
    component = LoadUnit(config)
    claims = Claims(component)
    inside = claims.inside
    occupied = inside.signal("loader.retirement__occupied")
    _empty_loader(claims, "loader")
    if config.post:
        claims.queue("loader.flight.records", config.loads_in_flight)
        claims.lemma("a SET occupies the unit", ~inside.signal("under_way") | occupied)
    _empty_unit_starts(claims, component, Const(1))
    return claims


def _empty_loader(claims: Claims, path: str, *, shared: bool = False) -> None:
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
        "with nothing in flight, the head of the queue starts, lacks a token, or has a fault",
        ~waits | ~sound | starts,
    )


def compute_unit(config: Config) -> Claims:
    """Claim progress of the compute unit, while no index is at fault."""
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
    claims.lemma("free is the complement of issuing", free == ~inside.signal("sequencer.issuing"))
    claims.lemma("an issuing sequencer is active", free | active)
    claims.lemma("SET or FINISH is alone in flight", ~sound | ~finishing | (count == 1))
    in_pipeline = sum_of([active, *stages])
    is_valid = inside.signal("flight.valid") == (count != 0)
    claims.claim("the unit knows whether something is in flight", (count <= depth) & is_valid)
    claims.claim(
        "every instruction in flight is in the pipeline", ~sound | (count == in_pipeline + finishing)
    )
    claims.lemma("every instruction in the pipeline is in flight", count >= in_pipeline + finishing)
    quiet = claims.register(range(len(stages) + 3), "quiet")
    """Consecutive cycles without a slot although something is in flight."""
    idle = ~active & (count != 0) & ~control.flush
    claims.follows(quiet, Mux(idle, Mux(quiet == len(stages) + 2, quiet, quiet + 1), 0))
    claims.lemma("SET and FINISH start with an empty pipeline", ~sound | ~finishing | (quiet == 0))
    for n, last in enumerate(stages):
        claims.lemma(f"stage {n} is empty after its cycles", ~sound | (quiet <= n) | ~last)
    claims.claim(
        "an instruction retires a fixed number of cycles after its last slot", ~sound | (quiet <= len(stages))
    )
    _empty_unit_starts(claims, component, sound)
    return claims


def store_unit(config: Config) -> Claims:
    """Claim progress of the store unit, in runs that begin with only abandoned bursts open."""
    component = Store(config)
    claims = Claims(component)
    inside, control = claims.inside, component.control
    depth = config.stores_in_flight
    bursts = inside.signal("bursts.valid")
    abandoned = claims.register(1, "run_abandoned")
    claims.follows(abandoned, Mux(control.flush, 0, abandoned | component.abandon))
    claims.assume(~control.flush | component.abandon | ~component.writing)
    claims.assume(~(control.flush | component.abandon | abandoned) | ~control.enable)
    flushed = claims.before(control.flush)
    claims.assume(~flushed | ~component.issue.valid)
    walks(claims, config, "bursts.")
    for right in entry_checks(component.issue.entry, Unit.STORE, config):
        claims.rely(right)
    if config.post:
        is_load, is_set, is_store = inside.signal("known")[:3]
        claims.lemma("the head is one of STORE, LOAD and SET", ~(is_store & (is_load | is_set)))
    flying = numbered(claims, depth, control.flush)
    claims.lemma("nothing is in flight after a flush", ~flushed | ~(bursts | any_of(flying)))
    entries = claims.queue("responses", config.outstanding)
    first, left = inside.signal("responses.first"), inside.signal("abandoned.left")
    claims.lemma("abandoned bursts are in flight", left <= inside.signal("responses.count"))
    slot_bits = (depth - 1).bit_length()
    slot = inside.input("responses.data")[1 : 1 + slot_bits]
    for n in range(depth):
        sources = [bursts & (slot == n)]
        for place, (there, held) in enumerate(entries):
            ahead = Mux(first <= place, place - first, place + config.outstanding - first)
            own = there & (ahead >= left)
            sources.append(own & held[0] & (held[1 : 1 + slot_bits] == n))
        claims.lemma("no transfer has pads left", ~flying[n] | ~inside.signal(f"flight.pads_left_{n}"))
        each_in_one_place(
            claims, f"{n}", flying[n], inside.signal(f"flight.data_left_{n}"), sources, abandoned
        )
    if not config.post:
        claims.claim(
            "a STORE in flight requests, awaits a response, or retires",
            abandoned
            | ~component.retirement.occupied
            | bursts
            | component.writing
            | component.retirement.valid,
        )
    claims.claim(
        "a burst waits only for the bus, or for beats of the previous one",
        ~(bursts & control.enable)
        | component.grant
        | inside.signal("more_left")
        | (component.awvalid & ~component.awready)
        | (component.wvalid & ~component.wready)
        | (inside.signal("responses.count") == config.outstanding),
    )
    claims.lemma("idle is the complement of wvalid", inside.signal("idle") == ~component.wvalid)
    beats_left = inside.signal("left")
    claims.lemma("more_left is right", inside.signal("more_left") == (beats_left != 0))
    claims.claim(
        "each beat that the bus takes leaves one less",
        ~claims.before(inside.signal("more_left") & inside.signal("asking") & ~component.grant)
        | (beats_left < claims.before(beats_left)),
    )
    if not config.post:
        _empty_unit_starts(claims, component, ~abandoned)
    return claims
