"""A design between registers, for a device with fewer pins than ports."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.hw.export.global_reset import globally_reset


class Registered(wiring.Component):
    """A design whose inputs come from a shift register and whose outputs enter one. So all paths are between
    registers, and none is unused."""

    def __init__(self, design: wiring.Component) -> None:
        self._design = design
        super().__init__({"shift_in": In(1), "shift_out": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.design = self.reset(m, self._design)
        ports: dict[Any, list[Value]] = {In: [], Out: []}
        for name, member in self._design.signature.members.items():
            ports[member.flow].append(Value.cast(getattr(self._design, name)))
        inputs, outputs = Cat(ports[In]), Cat(ports[Out])
        held = Signal(len(inputs), reset_less=True)
        captured, gathered = (Signal(len(outputs), reset_less=True) for _ in range(2))
        m.d.sync += [
            held.eq(Cat(self.shift_in, held)),
            captured.eq(outputs),
            gathered.eq(captured ^ Cat(held[-1], gathered)),
        ]
        m.d.comb += [inputs.eq(held), self.shift_out.eq(gathered[-1])]
        return m

    def reset(self, m: Module, design: wiring.Component) -> Elaboratable:
        return design


class GloballyReset(Registered):
    """The same for an ECP5 with reset on global wires."""

    def reset(self, m: Module, design: wiring.Component) -> Elaboratable:
        found: Elaboratable = globally_reset(m, "design", ResetSignal())(design)
        return found
