"""RES never holds more than there is room for, and nothing is taken that is not there."""

from amaranth.hdl import Const, Mux, Value

from accel.core.config import NAMED
from accel.core.memories import RES
from accel.hw.datapath.residuals import Residuals
from accel.hw.formal.claims import Claims, Proof

_CONFIG = NAMED["tiny-int8"].override({"loads_in_flight": 2, "stores_in_flight": 2})


def residuals() -> Claims:
    """The counts, with a store unit that starts what is free of faults and finds room or elements."""
    component = Residuals(_CONFIG)
    claims = Claims(component)
    depth = RES.depth(_CONFIG)
    free = (component.room & component.there) & ~component.full & ~component.empty
    claims.assume(~component.load | (component.is_load & ~component.is_add & free & ~component.store))
    claims.assume(~component.store | (~component.is_load & free))
    for name in ("loads", "stores"):
        count = claims.inside.signal(f"{name}.count")
        claims.assume(
            ~(component.load if name == "loads" else component.store)
            | (count < getattr(_CONFIG, f"{name}_in_flight"))
        )
        claims.assume(~(component.written if name == "loads" else component.retire) | (count != 0))

    held, spare, vacant, ready = (claims.inside.signal(name) for name in ("held", "spare", "vacant", "ready"))
    sums = {}
    for name in ("loads", "stores"):
        total: Value = Const(0)
        for there, elements in claims.queue(name, getattr(_CONFIG, f"{name}_in_flight")):
            total = total + Mux(there, elements, 0)
        sums[name] = total
    kept = held + sums["stores"]
    claims.lemma("what is kept is held, or taken by STOREs in flight", kept + vacant == depth)
    claims.lemma("what is not held may be loaded", held + spare == depth)
    claims.lemma("what is held is ready, or on its way", held == ready + sums["loads"])
    claims.claim("never more than there is room for", kept <= depth)
    claims.claim("program order never holds more", held <= depth)
    claims.claim(
        "what a STORE takes was written", ~component.store | ~component.is_add | (component.elements <= ready)
    )
    return claims


PROOFS = (
    Proof(
        name="residuals",
        statement="RES never holds more than its depth, and no STORE takes what is not written",
        build=residuals,
    ),
)
