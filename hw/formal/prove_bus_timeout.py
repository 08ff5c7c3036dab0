"""Proof about the bus timeout."""

from amaranth.hdl import Mux

from accel.hw.bus.bus_timeout import BusTimeout
from accel.hw.formal.claims import Claims, Proof


def watch() -> Claims:
    """Claims for a constant limit, on a bus that owes nothing in the first cycle."""
    component = BusTimeout()
    claims = Claims(component)
    limit, late = component.limit, component.late
    claims.assume(~claims.begun | (limit == claims.before(limit)))
    claims.assume(claims.begun | ~component.owes)
    quiet = component.owes & ~component.moved & ~late
    row = claims.register(len(limit), "row")
    """Consecutive quiet cycles so far, or 0 without a limit."""
    claims.follows(row, Mux(quiet & (limit != 0), row + 1, 0))
    claims.claim(
        "it fires after exactly the configured cycles without a transfer",
        late == ((limit != 0) & (row == limit)),
    )
    left = claims.inside.signal("left")
    claims.lemma("left counts down from the limit", ~claims.begun | (left == limit - row))
    claims.lemma("quiet cycles stop at the limit", row <= limit)
    return claims


PROOFS = (
    Proof(
        name="watch",
        statement="it fires after exactly the configured number of cycles without a transfer",
        build=watch,
    ),
)
