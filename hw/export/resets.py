"""Reset by the wires of an ECP5 that go all over the device."""

from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Instance, Module, ResetSignal, ValueLike


def globally_reset(m: Module, name: str, reset: ValueLike) -> DomainRenamer:
    """What puts a part into a clock domain of its own, with the clock of the other and this reset.

    Reset goes to thousands of registers, and the tools give such wires to clocks alone. What has it is not
    for simulation: that has no such wires, and sees an edge of the other clock later.

    Args:
        m: where the domain is.
        name: of the domain.
        reset: from what registers; it is there in the same cycle.
    """
    m.domains += ClockDomain(name, local=True)
    m.d.comb += ClockSignal(name).eq(ClockSignal())
    m.submodules.global_reset = Instance("DCCA", i_CLKI=reset, o_CLKO=ResetSignal(name))
    return DomainRenamer(name)
