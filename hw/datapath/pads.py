"""The pads of a LOAD: zeros around the data."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.isa import SIZE_BITS
from accel.hw.datapath.word_layouts import GAP_BITS, RUN_BITS, SPAN_BITS, kind_bits, sram_bits


class PadsLayout(data.StructLayout):
    """In scratchpad order, ``head`` pad words come first. If rows have pads, ``gap`` words follow each of the
    first ``y_size - 1`` rows of ``x_size``, and ``tail`` words the last. Otherwise ``tail`` words follow
    ``body`` words of data."""

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "kind": kind_bits(config),
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
    """Walks through the pad words of LOADs. ``start`` loads one while ``free``."""

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
                "kind": Out(kind_bits(config)),
                "index": Out(sram_bits(config)),
                "last": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        run = Signal(RUN_BITS)
        one = Signal()
        """One word of the run is left."""
        gap = Signal(GAP_BITS)
        gap_one = Signal()
        tail = Signal(RUN_BITS)
        tail_one = Signal()
        tail_none = Signal()
        skip = Signal(sram_bits(self._config))
        between = Signal(SIZE_BITS)
        """Runs left between rows."""
        between_any = Signal()
        final = Signal()
        """This run is the last."""
        m.d.comb += [self.last.eq(one & final), self.free.eq(~self.valid | (self.step & self.last))]
        with m.If(self.step):
            m.d.sync += [run.eq(run - 1), one.eq(run == 2), self.index.eq(self.index + 1)]
            with m.If(one):
                m.d.sync += self.index.eq(self.index + 1 + skip)
                with m.If(between_any):
                    m.d.sync += [
                        run.eq(gap),
                        one.eq(gap_one),
                        between.eq(between - 1),
                        between_any.eq(between != 1),
                        final.eq((between == 1) & tail_none),
                    ]
                with m.Else():
                    m.d.sync += [run.eq(tail), one.eq(tail_one), final.eq(1)]

        new = self.pads
        skips = Signal(sram_bits(self._config))
        headless, no_tail, several = Signal(), Signal(), Signal()
        m.d.comb += [
            skips.eq(Mux(new.gap != 0, new.x_size, new.body)),
            headless.eq(new.head == 0),
            no_tail.eq(new.tail == 0),
            several.eq((new.gap != 0) & (new.y_size > 1)),
        ]
        with m.If(self.free):
            m.d.sync += [
                self.valid.eq(self.start),
                self.kind.eq(new.kind),
                gap.eq(new.gap),
                gap_one.eq(new.gap == 1),
                tail.eq(new.tail),
                tail_one.eq(new.tail == 1),
                tail_none.eq(no_tail),
                skip.eq(skips),
                run.eq(new.head),
                one.eq(new.head == 1),
                between.eq(new.y_size - 1),
                between_any.eq(several),
                final.eq(~several & no_tail),
                self.index.eq(new.sram),
            ]
            with m.If(headless):
                m.d.sync += self.index.eq(new.sram + skips)
                with m.If(several):
                    m.d.sync += [
                        run.eq(new.gap),
                        one.eq(new.gap == 1),
                        between.eq(new.y_size - 2),
                        between_any.eq(new.y_size != 2),
                        final.eq((new.y_size == 2) & no_tail),
                    ]
                with m.Else():
                    m.d.sync += [run.eq(new.tail), one.eq(new.tail == 1), final.eq(1)]
        with m.If(self.flush):
            m.d.sync += self.valid.eq(0)
        return m
