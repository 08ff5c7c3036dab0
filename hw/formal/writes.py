"""The write channels: what AW announces is what W brings, and no more than the bus was promised."""

from functools import partial

from amaranth.hdl import Mux

from accel.core.config import NAMED, Config
from accel.hw.formal.claims import Claims, Proof
from accel.hw.formal.transfers import walks
from accel.hw.units.store import Store


def writes(config: Config) -> Claims:
    """A store unit with anything in its queue, on a bus that answers each burst once, in order, behind all of
    its data."""
    component = Store(config)
    claims = Claims(component)
    inside = claims.inside
    claims.assume(~component.flush)
    beats = inside.signal("bursts.beats")
    written = component.wvalid & component.wready
    claims.assume(~component.abandon | ~component.grant)
    walks(claims, config, "bursts.")
    claims.queue("responses", config.outstanding)

    # Answers come to bursts that were sent.
    sent = claims.register(range(config.outstanding + 2), "sent")
    claims.follows(sent, sent + (written & component.wlast) - component.bvalid)
    claims.assume((sent != 0) | ~component.bvalid)

    announced = claims.before(beats)
    claims.claim("AWLEN is the burst's", ~claims.before(component.grant) | (component.awlen + 1 == announced))
    count = inside.signal("responses.count")
    claims.claim("never more bursts than the machine may have", count <= config.outstanding)

    answered = inside.signal("answered")
    given_up = claims.register(range(config.outstanding + 1), "given_up")
    dropped = given_up != 0
    claims.follows(
        given_up, Mux(component.abandon, count - component.bvalid, given_up - (dropped & component.bvalid))
    )
    claims.claim("no answer is stray that was due", answered == component.bvalid)
    claims.claim(
        "an answer to a burst that was given up retires nothing and is no error",
        ~dropped | ~(inside.signal("heard") | component.bad),
    )
    claims.claim("the unit waits for the others", component.writing == (count > given_up))
    claims.lemma("it knows how many", (inside.signal("abandoned.left") == given_up) & (given_up <= count))

    read, left = inside.signal("read"), inside.signal("left")
    claims.lemma("it knows whether beats are left", inside.signal("more_left") == (left != 0))
    unsent = (component.wvalid & component.wlast) + (read & inside.signal("read_last")) + (left != 0)
    claims.lemma("bursts are sent or on their way", count == sent + unsent)

    # Of one burst, any of them: beats until its last is on the bus, and how many are its own.
    watched = claims.register(1, "watched")
    until = claims.register(10, "until")
    own = claims.register(10, "own")
    enters = component.grant & ~watched & claims.free(1, "chosen")
    claims.follows(watched, Mux(watched, ~(written & (until == 1)), enters))
    claims.follows(own, Mux(watched, own, beats))
    claims.follows(until, Mux(watched, until - written, read + beats))
    its = component.wvalid & watched & (until <= own)
    claims.claim("WLAST is where AWLEN says", ~its | (component.wlast == (until == 1)))

    under_way = component.wvalid + read
    position = component.wvalid + 1
    claims.lemma("a burst has beats", ~watched | ((until != 0) & (own != 0)))
    claims.lemma("it is still to be asked for", ~watched | (until <= under_way) | (until == under_way + left))
    inside_own = watched & read & (position <= until) & (until < position + own)
    claims.lemma("its last beat is marked", ~inside_own | (inside.signal("read_last") == (until == position)))
    return claims


PROOFS = (
    Proof(
        name="writes of tiny",
        statement="WLAST is where AWLEN says; no more bursts are open than may be; none given up retires",
        build=partial(writes, NAMED["tiny"]),
    ),
)
