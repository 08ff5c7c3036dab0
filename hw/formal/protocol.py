"""Rules of AXI that several ports keep."""

from amaranth.hdl import Value

from accel.hw.formal.claims import Claims


def steady(claims: Claims, channel: str, valid: Value, ready: Value, payload: Value) -> None:
    """Claim that what a channel offers is offered unchanged until it is taken (AXI4, A3.2.1).

    Args:
        claims: where.
        channel: the channel's name.
        valid, ready: of the channel; ``valid`` is the component's.
        payload: everything that goes with ``valid``.
    """
    waits = claims.before(valid & ~ready)
    same = payload == claims.before(payload)
    claims.claim(f"{channel} waits unchanged", ~claims.begun | ~waits | (valid & same))
