"""The four token counters through which load, compute and store meet."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.token_rules import Counter


class TokenCounters(wiring.Component):
    """``push`` and ``pop`` have a bit per counter; a token pushed in cycle t is ``available`` in t + 1.

    ``overflow`` shows, in the cycle of the push, that a counter cannot hold it; ``count_n`` is what counter n
    holds.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        counters = len(Counter)
        super().__init__(
            {
                "push": In(counters),
                "pop": In(counters),
                "clear": In(1),
                "available": Out(counters),
                "overflow": Out(counters),
                **{f"count_{counter}": Out(config.token_bits) for counter in range(counters)},
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        for counter in Counter:
            tokens = Signal(self._config.token_bits, name=counter.name.lower())
            push, pop = self.push[counter], self.pop[counter]
            full = Signal(name=f"{counter.name.lower()}_full")
            most = self._config.token_limit
            m.d.comb += [
                getattr(self, f"count_{counter.value}").eq(tokens),
                self.overflow[counter].eq(push & ~pop & full),
            ]
            with m.If(push & ~pop):
                m.d.sync += [self.available[counter].eq(1), full.eq(full | (tokens == most - 1))]
                with m.If(~full):
                    m.d.sync += tokens.eq(tokens + 1)
            with m.If(pop & ~push):
                m.d.sync += [
                    tokens.eq(tokens - 1),
                    self.available[counter].eq(tokens != 1),
                    full.eq(0),
                ]
            with m.If(self.clear):
                m.d.sync += [tokens.eq(0), self.available[counter].eq(0), full.eq(0)]
        return m
