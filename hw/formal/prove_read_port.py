"""Proofs about the read port."""

from functools import partial

from amaranth.hdl import Cat, Mux

from accel.core.config import NAMED, Config
from accel.hw.bus.read_port import BurstLayout, ReadPort, readers_of
from accel.hw.datapath.unit_ports import port_of
from accel.hw.datapath.word_layouts import BEATS_BITS
from accel.hw.formal.axi_rules import steady
from accel.hw.formal.claims import Claims, Proof


def read_port(config: Config) -> Claims:
    """Claims for a bus that answers requests in order."""
    component = ReadPort(config)
    claims = Claims(component)
    inside = claims.inside
    count = inside.signal("flight.count")
    asked = claims.register(range(config.outstanding + 2), "asked")
    claims.assume((asked != 0) | ~component.rvalid)
    claims.follows(
        asked, asked + (component.arvalid & component.arready) - (component.rvalid & component.rlast)
    )

    steady(claims, "AR", component.arvalid, component.arready, Cat(component.araddr, component.arlen))
    claims.claim("no more bursts are in flight than allowed", asked + component.arvalid <= config.outstanding)
    claims.lemma("bursts in flight are those requested", count == asked + component.arvalid)
    channels = [port_of(component, unit) for unit in readers_of(config)]
    for channel in channels:
        claims.assume(~channel.valid | (channel.request.beats != 0))
    grants, requests = Cat(one.granted for one in channels), Cat(one.valid for one in channels)
    beats = Cat(one.beat_valid for one in channels)
    claims.claim("one grant at a time", (grants & (grants - 1))[: len(channels)] == 0)
    claims.claim("only a requester is granted", (grants & ~requests) == 0)
    claims.claim(
        "a request waits only for the bus",
        (requests == 0)
        | component.stop
        | component.grant
        | (component.arvalid & ~component.arready)
        | (count == config.outstanding),
    )
    claims.claim("at most one reader takes a beat", (beats & (beats - 1))[: len(channels)] == 0)

    come, length = claims.register(range(1 << BEATS_BITS), "beats_come"), component.burst.beats
    most = (1 << BEATS_BITS) - 1
    more = Mux(come == most, most, come + 1)
    claims.follows(come, Mux(component.rvalid, Mux(component.rlast, 0, more), come))
    ends = component.rvalid & component.rlast
    abandoned = claims.register(range(config.outstanding + 1), "abandoned_bursts")
    claims.assume(~component.abandon | ~component.grant)
    dropped = abandoned != 0
    claims.follows(abandoned, Mux(component.abandon, count - ends, abandoned - (dropped & ends)))
    beat = component.rvalid & ~dropped
    claims.claim("every beat has a reader", (beats != 0) == (beat & (come < length)))
    claims.claim(
        "busy is set while bursts that are not abandoned are in flight", component.busy == (count > abandoned)
    )
    ends_elsewhere = component.rlast != (come + 1 == length)
    claims.claim(
        "errors and wrong lengths are reported",
        component.bad == (beat & (component.rresp[1] | ends_elsewhere)),
    )
    claims.lemma(
        "left counts the abandoned bursts",
        (inside.signal("abandoned.left") == abandoned) & (abandoned <= count),
    )
    claims.lemma("beats arrive only for a requested burst", (asked != 0) | (come == 0))
    claims.lemma(
        "come counts the beats of a burst", inside.signal("come") == Mux(come < length, come, length)
    )
    claims.lemma(
        "surplus marks beats after the last", inside.signal("surplus") == ((count != 0) & (come >= length))
    )
    for there, bits in claims.queue("flight", config.outstanding):
        burst = BurstLayout()(bits)
        known = Cat(burst.unit == unit for unit in readers_of(config)).any()
        claims.lemma("a burst in flight has a reader", ~there | known)
        claims.lemma("a burst in flight has beats", ~there | (burst.beats != 0))
    return claims


PROOFS = tuple(
    Proof(
        name=f"read port of {name}",
        statement="AR is stable; at most `outstanding` bursts; requests are granted; RLAST is checked",
        build=partial(read_port, NAMED[name]),
    )
    for name in ("tiny", "tiny-int8")
)
