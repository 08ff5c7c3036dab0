"""Reset on the global wires of an ECP5."""

from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Instance, Module, ResetSignal, ValueLike


def globally_reset(m: Module, name: str, reset: ValueLike) -> DomainRenamer:
    """Return a transformer that gives a part its own clock domain: the same clock, and this reset from
    registers.

    Reset reaches thousands of registers, but the tools use global wires for clocks only. The result is for
    synthesis: simulation sees the other clock's edge later.
    """
    m.domains += ClockDomain(name, local=True)
    m.d.comb += ClockSignal(name).eq(ClockSignal())
    m.submodules.global_reset = Instance("DCCA", i_CLKI=reset, o_CLKO=ResetSignal(name))
    return DomainRenamer(name)
