"""Proof that RES never overflows, and that no STORE takes an unwritten element."""

from amaranth.hdl import Const, Mux, Value

from accel.core.config import NAMED
from accel.core.scratchpad_specs import RES
from accel.hw.datapath.res_occupancy import ResOccupancy
from accel.hw.formal.claims import Claims, Proof

_CONFIG = NAMED["tiny-int8"].override({"loads_in_flight": 2, "stores_in_flight": 2})


def residuals() -> Claims:
    """Claims for a store unit that starts LOADs with ``room``, and STOREs whose elements are ``there``."""
    component = ResOccupancy(_CONFIG)
    claims = Claims(component)
    depth = RES.depth(_CONFIG)
    free = (component.room & component.there) & ~component.full & ~component.empty
    load, store = component.start & component.is_load, component.start & component.is_store
    valid, elements = component.valid, component.elements
    claims.assume(~component.start | (valid & free))
    claims.assume(claims.before(~component.flush) | ~valid)
    claims.assume(~component.is_load | ~component.is_store)
    claims.assume(~component.is_add | component.is_store)
    stays = claims.before(valid & ~component.start)
    was = Mux(stays, claims.before(elements), claims.before(component.following))
    claims.assume(~valid | (elements == was))
    for name in ("loads", "stores"):
        count = claims.inside.signal(f"{name}.count")
        claims.assume(~(load if name == "loads" else store) | (count < getattr(_CONFIG, f"{name}_in_flight")))
        claims.assume(~(component.written if name == "loads" else component.retire) | (count != 0))

    held, spare, vacant, ready = (claims.inside.signal(name) for name in ("held", "spare", "vacant", "ready"))
    for name, count in (("held", held), ("spare", spare), ("vacant", vacant), ("ready", ready)):
        known = claims.inside.signal(f"{name}_all")
        claims.lemma(
            f"{name}_all compares the next instruction with {name}", ~valid | (known == (elements <= count))
        )
    sums = {}
    for name in ("loads", "stores"):
        total: Value = Const(0)
        for there, its in claims.queue(name, getattr(_CONFIG, f"{name}_in_flight")):
            total = total + Mux(there, its, 0)
        sums[name] = total
    kept = held + sums["stores"]
    claims.lemma("kept elements are held, or taken by STOREs in flight", kept + vacant == depth)
    claims.lemma("spare elements are those not held", held + spare == depth)
    claims.lemma("held elements are ready, or being loaded", held == ready + sums["loads"])
    claims.claim("kept elements fit", kept <= depth)
    claims.claim("held elements fit", held <= depth)
    claims.claim("a STORE takes only written elements", ~store | ~component.is_add | (elements <= ready))
    return claims


PROOFS = (
    Proof(
        name="residuals",
        statement="RES never overflows, and no STORE takes an unwritten element",
        build=residuals,
    ),
)
