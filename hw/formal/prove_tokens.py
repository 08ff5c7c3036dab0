"""Proof about the token counters."""

from amaranth.hdl import Mux

from accel.core.config import NAMED
from accel.core.token_rules import Counter
from accel.hw.formal.claims import Claims, Proof
from accel.hw.units.token_counters import TokenCounters

_CONFIG = NAMED["tiny"]


def counters() -> Claims:
    """Claims for units that take only tokens that are there."""
    component = TokenCounters(_CONFIG)
    claims = Claims(component)
    pushed, popped, available = (claims.inside.signal(name) for name in ("push", "pop", "available"))
    claims.assume((popped & ~available) == 0)
    for counter in Counter:
        name = counter.name.lower()
        count, push, pop = getattr(component, f"count_{counter.value}"), pushed[counter], popped[counter]
        following = count + push - pop
        overflow = component.overflow[counter]
        full = claims.inside.signal(f"{name}_full")
        claims.lemma(f"{name}: full marks the limit", full == (count == _CONFIG.token_limit))
        claims.claim(f"{name}: an overflow is reported", overflow == (following > _CONFIG.token_limit))
        claims.claim(
            f"{name}: a token is available while the counter is not zero", available[counter] == (count != 0)
        )
        expected = Mux(component.clear, 0, Mux(overflow, count, following))
        claims.claim(
            f"{name}: the counter is pushes minus pops", ~claims.begun | (count == claims.before(expected))
        )
    return claims


PROOFS = (
    Proof(
        name="token counters",
        statement="each counts pushes minus pops, never wraps or goes below zero, reports an overflow",
        build=counters,
    ),
)
