"""The GEMM core."""

from typing import Any

from amaranth.hdl import Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.pipeline_stages import spread
from accel.core.scratchpad_specs import ACC, INP, WGT, bits_of
from accel.hw.datapath.register_copies import COPIES
from accel.hw.datapath.word_layouts import log2

ACC_BITS = bits_of(ACC.dtype)
_READ, _PRODUCT, _SUM = 2, 2, 1
"""Relative delays of a block RAM, a multiplier and an adder."""


def tap_names(config: Config) -> list[str]:
    """Return the port names of a depthwise MAC's further ``inp`` elements."""
    most = min(config.tap_banks, config.block_in)
    return [f"tap_{tap}" for tap in range(1, most)] if config.depthwise else []


class GemmCore(wiring.Component):
    """A pipelined adder tree: ``sums[b][o] = sum over k of inp[b][k] * wgt[o][k]``, ``tree_stages + 1``
    cycles later.

    ``whole``, one bit per group of columns, selects that. Otherwise, for depthwise MACs, the result is ``sum
    over t of tap_t[b][o] * wgt[o][t]`` over the taps set in ``tapped``, where tap_0 is ``inp``.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "inp": In(INP.word_bits(config)),
                "wgt": In(WGT.word_bits(config)),
                **{name: In(INP.word_bits(config)) for name in tap_names(config)},
                **(
                    {"whole": In(COPIES), "tapped": In(1 + len(tap_names(config)))}
                    if config.depthwise
                    else {}
                ),
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
        factors = inp
        if config.depthwise:
            factors = [_if(self._whole(n % size), value) for n, value in enumerate(inp)]
        factors = [_late(m, value, read) for value in factors]
        wgt_bits = WGT.lane_bits(config)
        wgt = [
            _late(m, self.wgt.word_select(n, wgt_bits).as_signed(), read)
            for n in range(config.block_out * size)
        ]
        for b in range(config.batch):
            for o in range(config.block_out):
                columns = factors[b * size : (b + 1) * size]
                for k, lanes in enumerate(taps):
                    column = _if(self._whole(k), inp[b * size + k]) | _if(self.tapped[k], lanes[b * size + o])
                    columns[k] = _late(m, column.as_signed(), read)
                terms = [_late(m, columns[k] * wgt[o * size + k], product) for k in range(size)]
                for stages in sums:
                    pairs = zip(terms[::2], terms[1::2], strict=True)
                    terms = [_late(m, _sum(m, x, y), stages) for x, y in pairs]
                total = Signal(signed(ACC_BITS), reset_less=True)
                m.d.sync += total.eq(terms[0])
                m.d.comb += self.sums.word_select(b * config.block_out + o, ACC_BITS).eq(total)
        return m

    def _whole(self, column: int) -> Value:
        return self.whole[column % COPIES]

    def _taps(self) -> list[list[Value]]:
        config = self._config
        if not config.depthwise:
            return []
        bits = INP.lane_bits(config)
        words = [self.inp, *(getattr(self, name) for name in tap_names(config))]
        return [
            [word.word_select(n, bits).as_signed() for n in range(config.batch * config.block_in)]
            for word in words
        ]


def _if(condition: Value, value: Value) -> Value:
    return (value.as_unsigned() & condition.replicate(len(value))).as_signed()


def _sum(m: Module, left: Value, right: Value) -> Value:
    """Add in a signal that synthesis keeps: three-operand adders would take twice the logic."""
    total = Signal(signed(max(len(left), len(right)) + 1), attrs={"keep": 1})
    m.d.comb += total.eq(left + right)
    return total


def _late(m: Module, value: Value, stages: int) -> Value:
    for _ in range(stages):
        held = Signal(signed(len(value)), reset_less=True)
        m.d.sync += held.eq(value)
        value = held
    return value
