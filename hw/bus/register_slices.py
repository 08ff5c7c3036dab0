"""Register slices for channels."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Slice(wiring.Component):
    """A slice with two entries of ``bits``. One transfer can enter per cycle, and leaves at least one cycle
    later. No output depends on an input of the same cycle."""

    def __init__(self, bits: int) -> None:
        super().__init__(
            {
                "in_valid": In(1),
                "in_ready": Out(1, init=1),
                "in_data": In(bits),
                "out_valid": Out(1),
                "out_ready": In(1),
                "out_data": Out(bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        spare: Signal = Signal.like(self.in_data)
        """A transfer taken while the output waited, valid while ``in_ready`` is low."""
        with m.If(~self.out_valid | self.out_ready):
            m.d.sync += [
                self.out_valid.eq(self.in_valid | ~self.in_ready),
                self.out_data.eq(Mux(self.in_ready, self.in_data, spare)),
                self.in_ready.eq(1),
            ]
        with m.Elif(self.in_ready):
            m.d.sync += [self.in_ready.eq(~self.in_valid), spare.eq(self.in_data)]
        return m


def slice_channel(m: Module, name: str, source: Any, target: Any) -> None:
    """Insert a slice between the sides of a channel. ``source`` drives ``valid``."""
    carried = [field for field in source.signature.members if field not in ("valid", "ready")]
    taken: list[Value] = [getattr(source, field) for field in carried]
    given: list[Value] = [getattr(target, field) for field in carried]
    part = Slice(len(Cat(taken)))
    m.submodules[name] = part
    m.d.comb += [
        part.in_valid.eq(source.valid),
        part.in_data.eq(Cat(taken)),
        source.ready.eq(part.in_ready),
        target.valid.eq(part.out_valid),
        Cat(given).eq(part.out_data),
        part.out_ready.eq(target.ready),
    ]
