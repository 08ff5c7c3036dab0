"""The zeros around what a LOAD copies: one scratchpad word after the other."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.isa import SIZE_BITS
from accel.hw.datapath.layouts import GAP_BITS, KIND_BITS, RUN_BITS, SPAN_BITS, sram_bits


class PadsLayout(data.StructLayout):
    """The pads of a LOAD that has some.

    In scratchpad order: ``head`` words, then, if rows have pads (``gap``), ``y_size - 1`` times ``gap``
    words between rows of ``x_size``, then ``tail`` words; if rows have none, ``tail`` words behind
    ``body`` words of data.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "kind": KIND_BITS,
                "sram": sram_bits(config),
                "head": RUN_BITS,
                "gap": GAP_BITS,
                "tail": RUN_BITS,
                "body": SPAN_BITS,
                "x_size": SIZE_BITS,
                "y_size": SIZE_BITS,
            }
        )


class PadWalker(wiring.Component):
    """Pad words of one LOAD after the other; loaded like :class:`~accel.hw.datapath.transfer.BeatWalker`:
    when it is ``free``, by ``start``.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "flush": In(1),
                "start": In(1),
                "pads": In(PadsLayout(config)),
                "step": In(1),
                "valid": Out(1),
                "free": Out(1),
                "kind": Out(KIND_BITS),
                "index": Out(sram_bits(config)),
                "last": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        run = Signal(RUN_BITS)
        gap = Signal(GAP_BITS)
        tail = Signal(RUN_BITS)
        skip = Signal(sram_bits(self._config))
        between = Signal(SIZE_BITS)
        """Runs between rows that are left."""
        final = Signal()
        m.d.comb += [
            self.last.eq((run == 1) & (final | ((between == 0) & (tail == 0)))),
            self.free.eq(~self.valid | (self.step & self.last)),
        ]
        with m.If(self.step):
            m.d.sync += [run.eq(run - 1), self.index.eq(self.index + 1)]
            with m.If(run == 1):
                m.d.sync += self.index.eq(self.index + 1 + skip)
                with m.If(between != 0):
                    m.d.sync += [run.eq(gap), between.eq(between - 1)]
                with m.Else():
                    m.d.sync += [run.eq(tail), final.eq(1)]

        new = self.pads
        skips = Signal(sram_bits(self._config))
        runs = Signal(SIZE_BITS)
        m.d.comb += skips.eq(Mux(new.gap != 0, new.x_size, new.body))
        with m.If((new.gap != 0) & (new.y_size != 0)):
            m.d.comb += runs.eq(new.y_size - 1)
        with m.If(self.free):
            m.d.sync += [
                self.valid.eq(self.start),
                self.kind.eq(new.kind),
                gap.eq(new.gap),
                tail.eq(new.tail),
                skip.eq(skips),
                final.eq(0),
                run.eq(new.head),
                between.eq(runs),
                self.index.eq(new.sram),
            ]
            with m.If(new.head == 0):
                m.d.sync += self.index.eq(new.sram + skips)
                with m.If(runs != 0):
                    m.d.sync += [run.eq(new.gap), between.eq(runs - 1)]
                with m.Else():
                    m.d.sync += [run.eq(new.tail), final.eq(1)]
        with m.If(self.flush):
            m.d.sync += self.valid.eq(0)
        return m
