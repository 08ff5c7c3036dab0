"""Proofs about the write channels."""

from functools import partial

from amaranth.hdl import Const, Mux, Signal, Value

from accel.core.config import NAMED, Config
from accel.core.isa import Unit
from accel.core.timing_rules import post_depth
from accel.hw.datapath.requantize_lanes import slots_per_beat
from accel.hw.datapath.word_layouts import log2
from accel.hw.formal.claims import Claims, Proof
from accel.hw.formal.prove_bursts import walks
from accel.hw.formal.prove_queue_entries import entry_checks
from accel.hw.units.store import Store


def writes(config: Config) -> Claims:
    """Claims for a store unit, on a bus that answers each burst once, in order, after its data."""
    component = Store(config)
    claims = Claims(component)
    inside = claims.inside
    claims.assume(~component.control.flush)
    beats = inside.signal("bursts.beats")
    written = component.wvalid & component.wready
    claims.assume(~component.abandon | ~component.grant)
    walks(claims, config, "bursts.")
    for right in entry_checks(component.issue.entry, Unit.STORE, config):
        claims.rely(right)
    claims.queue("responses", config.outstanding)

    sent = claims.register(range(config.outstanding + 2), "sent")
    claims.follows(sent, sent + (written & component.wlast) - component.bvalid)
    claims.assume((sent != 0) | ~component.bvalid)

    announced = claims.before(beats)
    claims.claim(
        "AWLEN agrees with the beats of the burst",
        ~claims.before(component.grant) | (component.awlen + 1 == announced),
    )
    count = inside.signal("responses.count")
    claims.claim("no more bursts are in flight than allowed", count <= config.outstanding)

    answered = inside.signal("answered")
    abandoned = claims.register(range(config.outstanding + 1), "abandoned_bursts")
    dropped = abandoned != 0
    claims.follows(
        abandoned, Mux(component.abandon, count - component.bvalid, abandoned - (dropped & component.bvalid))
    )
    claims.claim("no expected response is stray", answered == component.bvalid)
    claims.claim(
        "a response to an abandoned burst retires nothing and is no error",
        ~dropped | ~(inside.signal("heard") | component.bad),
    )
    claims.claim(
        "writing is set while bursts that are not abandoned are in flight",
        component.writing == (count > abandoned),
    )
    claims.lemma(
        "left counts the abandoned bursts",
        (inside.signal("abandoned.left") == abandoned) & (abandoned <= count),
    )

    asked, left, rest = _asked(claims, config)
    claims.lemma("idle is the complement of wvalid", inside.signal("idle") == ~component.wvalid)
    claims.lemma("more_left is right", inside.signal("more_left") == (left != 0))
    unsent = (component.wvalid & component.wlast) + (left != 0)
    for there, last in asked:
        unsent = unsent + (there & last)
    claims.lemma("bursts in flight are sent or unsent", count == sent + unsent)
    _on_their_way(claims, config, unsent)

    # One arbitrary burst: beats until its last is on the bus, and its own beats.
    watched = claims.register(1, "watched")
    until = claims.register(10, "until")
    own = claims.register(10, "own")
    enters = component.grant & ~watched & claims.free(1, "chosen")
    claims.follows(watched, Mux(watched, ~(written & (until == 1)), enters))
    claims.follows(own, Mux(watched, own, beats))
    under_way = sum((there for there, _ in asked), Const(0))
    claims.follows(until, Mux(watched, until - written, under_way + beats))
    its = component.wvalid & watched & (until <= own)
    claims.claim("WLAST agrees with AWLEN", ~its | (component.wlast == (until == 1)))

    under_way = component.wvalid + under_way
    claims.lemma("a burst has beats", ~watched | ((until != 0) & (own != 0)))
    claims.lemma(
        "the watched burst is requested or still to be",
        ~watched | (until <= under_way) | (until == under_way + rest),
    )
    position: Value = component.wvalid
    for number, (there, last) in enumerate(asked):
        position = position + there
        inside_own = watched & there & (position <= until) & (until < position + own)
        claims.lemma(f"its last beat is marked, {number}", ~inside_own | (last == (until == position)))
    return claims


def _on_their_way(claims: Claims, config: Config, unsent: Value) -> None:
    inside, unit = claims.inside, claims.inside.component
    claims.queue("sent", config.outstanding)
    claims.lemma("the queue holds the unsent bursts", inside.signal("sent.count") == unsent)
    claims.claim(
        "a burst is on its way from its grant to its last beat",
        (~unit.grant | inside.signal("sent.room")) & (~unit.last | inside.signal("sent.valid")),
    )


def _asked(claims: Claims, config: Config) -> tuple[list[tuple[Value, Value]], Signal, Value]:
    """Return the beats that are requested from the mirror and not on the bus, next first, the rest of the
    burst to request, and its beats. Each has a bit that it becomes a beat (with ``post=1``, the last slot
    does), and one that it ends its burst."""
    inside = claims.inside
    left = inside.signal("left")
    if not config.post:
        return [(inside.signal("read"), inside.signal("read_last"))], left, left
    slots = slots_per_beat(config)
    number, finished = inside.signal("walker.number"), inside.signal("walker.finished")
    of_burst = claims.register(1, "finished_burst")
    grant = claims.inside.component.grant
    claims.follows(of_burst, Mux(grant, finished, of_burst))
    claims.assume((left == 0) | (finished == of_burst))
    claims.lemma("a beat begins with its first slot", ((left != 0) & of_burst) | (number == 0))
    claims.lemma("a burst ends with a beat", ~of_burst | ((left + number)[: log2(slots)] == 0))
    names = [f"stage_{stage}" for stage in reversed(range(post_depth(config)))]
    parts = [tuple(inside.signal(f"{name}_{part}") for part in range(3)) for name in names]
    parts.append(tuple(inside.signal(f"read_{name}") for name in ("valid", "last", "complete")))
    asked = [(valid & complete, last) for valid, last, complete in parts]
    return asked, left, Mux(of_burst, (left + number) >> log2(slots), left)


PROOFS = tuple(
    Proof(
        name=f"writes of {name}",
        statement="WLAST matches AWLEN; at most `outstanding` bursts are open; abandoned ones retire nothing",
        build=partial(writes, NAMED[name]),
    )
    for name in ("tiny", "tiny-int8", "tiny-npu")
)
