"""Copies of a register for signals that many take, so that none goes all over the device."""

from amaranth.hdl import Module, Signal, Value

COPIES = 4
"""Of a register. So many differ in what they hold, so that synthesis does not make one of them."""


def copies(m: Module, value: Value, name: str) -> list[Value]:
    """A value in the next cycle, from :data:`COPIES` registers: some of them hold the opposite, some are
    those that reset does not concern. All of them start as 0."""
    found: list[Value] = []
    for number in range(COPIES):
        opposite, reset_less = number % 2 == 1, number // 2 == 1
        init = -1 if opposite else 0
        held = Signal(len(value), name=f"{name}_{number}", init=init, reset_less=reset_less)
        m.d.sync += held.eq(~value if opposite else value)
        found.append(~held if opposite else held)
    return found
