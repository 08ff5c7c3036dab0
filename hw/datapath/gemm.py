"""The GEMM core: all products of an inp and a wgt element, summed by a pipelined adder tree; where there are
depthwise MACs, also those of several inp elements and the first columns of a wgt element."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.isa.instructions import TAPS_BITS
from accel.core.memories import ACC, INP, WGT, bits_of
from accel.hw.datapath.layouts import log2
from accel.hw.datapath.pipeline import spread

ACC_BITS = bits_of(ACC.dtype)
_READ, _PRODUCT, _SUM = 2, 2, 1
"""How long the steps to a sum take, compared with one another: a block RAM, a multiplier, an adder."""


def tap_names(config: Config) -> list[str]:
    """What the inp elements behind the first are called that a depthwise MAC reads at once, if there are
    such MACs; ports that have to do with them are called alike."""
    most = min(config.tap_banks, config.block_in)
    return [f"tap_{tap}" for tap in range(1, most)] if config.depthwise else []


class GemmCore(wiring.Component):
    """``sums[b][o] = sum over k of inp[b][k] * wgt[o][k]``, ``tree_stages + 1`` cycles later.

    With ``depthwise`` it is ``sum over t < taps of tap_t[b][o] * wgt[o][t]``, where tap_0 is ``inp``.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "inp": In(INP.word_bits(config)),
                "wgt": In(WGT.word_bits(config)),
                **{name: In(INP.word_bits(config)) for name in tap_names(config)},
                **({"depthwise": In(1), "taps": In(TAPS_BITS)} if config.depthwise else {}),
                "sums": Out(config.acc_element_bytes * 8),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self._config
        size = config.block_in
        bits = INP.lane_bits(config)
        inp = [self.inp.word_select(n, bits).as_signed() for n in range(config.batch * size)]
        levels = log2(size)
        read, product, *sums = spread(config.tree_stages, [_READ, _PRODUCT, *[_SUM] * levels])
        taps = self._taps()
        factors = [Mux(self.depthwise, 0, value) for value in inp] if config.depthwise else inp
        factors = [_late(m, value, read) for value in factors]
        wgt = [_late(m, self.wgt.word_select(n, 8).as_signed(), read) for n in range(config.block_out * size)]
        for b in range(config.batch):
            for o in range(config.block_out):
                columns = factors[b * size : (b + 1) * size]
                for k, lanes in enumerate(taps):
                    column = Mux(self.depthwise, lanes[b * size + o], inp[b * size + k]).as_signed()
                    columns[k] = _late(m, column, read)
                terms = [_late(m, columns[k] * wgt[o * size + k], product) for k in range(size)]
                for stages in sums:
                    pairs = zip(terms[::2], terms[1::2], strict=True)
                    terms = [_late(m, x + y, stages) for x, y in pairs]
                m.d.sync += self.sums.word_select(b * config.block_out + o, ACC_BITS).eq(terms[0])
        return m

    def _taps(self) -> list[list[Value]]:
        """The values of each tap; zero of those that there are not."""
        config = self._config
        if not config.depthwise:
            return []
        bits = INP.lane_bits(config)
        words = [self.inp, *(getattr(self, name) for name in tap_names(config))]
        return [
            [
                (word.word_select(n, bits) & (tap < self.taps).replicate(bits)).as_signed()
                for n in range(config.batch * config.block_in)
            ]
            for tap, word in enumerate(words)
        ]


def _late(m: Module, value: Value, stages: int) -> Value:
    """A signed value so many cycles later."""
    for _ in range(stages):
        held = Signal(signed(len(value)))
        m.d.sync += held.eq(value)
        value = held
    return value
