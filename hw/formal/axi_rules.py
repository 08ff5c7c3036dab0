"""Rules of AXI."""

from amaranth.hdl import Value

from accel.hw.formal.claims import Claims


def steady(claims: Claims, channel: str, valid: Value, ready: Value, payload: Value) -> None:
    """Claim that an offered transfer stays unchanged until it is taken (AXI4, A3.2.1)."""
    waits = claims.before(valid & ~ready)
    same = payload == claims.before(payload)
    claims.claim(f"{channel} stays unchanged until it is accepted", ~claims.begun | ~waits | (valid & same))
