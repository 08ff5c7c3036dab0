"""The time-out of the bus: told after as many quiet cycles as were asked for."""

from amaranth.hdl import Mux

from accel.hw.bus.watch import Watch
from accel.hw.formal.claims import Claims, Proof


def watch() -> Claims:
    """A watch whose limit stands, on a bus that owes nothing in the first cycle."""
    component = Watch()
    claims = Claims(component)
    limit, late = component.limit, component.late
    claims.assume(~claims.begun | (limit == claims.before(limit)))
    claims.assume(claims.begun | ~component.owes)
    quiet = component.owes & ~component.moved & ~late
    row = claims.register(len(limit), "row")
    """Quiet cycles up to now; without a limit none are counted."""
    claims.follows(row, Mux(quiet & (limit != 0), row + 1, 0))
    claims.claim("it is late after that many quiet cycles", late == ((limit != 0) & (row == limit)))
    left = claims.inside.signal("left")
    claims.lemma("it knows how many are left", ~claims.begun | (left == limit - row))
    claims.lemma("no more are counted", row <= limit)
    return claims


PROOFS = (
    Proof(
        name="watch",
        statement="late after as many quiet cycles as asked for, and only then",
        build=watch,
    ),
)
