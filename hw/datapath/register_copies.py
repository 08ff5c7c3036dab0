"""Copies of a register with large fan-out, which differ so that synthesis does not merge them."""

from amaranth.hdl import Module, Signal, Value

COPIES = 4


def copies(m: Module, value: Value, name: str) -> list[Value]:
    """Return a value one cycle later from :data:`COPIES` registers, some inverted, some without reset. All
    start as 0."""
    found: list[Value] = []
    for number in range(COPIES):
        opposite, reset_less = number % 2 == 1, number // 2 == 1
        init = -1 if opposite else 0
        held = Signal(len(value), name=f"{name}_{number}", init=init, reset_less=reset_less)
        m.d.sync += held.eq(~value if opposite else value)
        found.append(~held if opposite else held)
    return found
