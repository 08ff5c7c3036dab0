"""The four token counters between load, compute and store."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.isa import Instruction, Unit
from accel.core.token_rules import WORKERS, Counter
from accel.hw.datapath.unit_ports import port_of
from accel.hw.datapath.word_layouts import view


class TokenAccess(wiring.Signature):
    """Bit 0 concerns the previous unit, bit 1 the next.

    ``pops`` names the tokens that the queue's head needs. ``there`` shows in the same cycle that all are
    present, and ``take`` removes them. ``give`` adds the tokens ``pushes``, present from the next cycle on.
    """

    def __init__(self) -> None:
        super().__init__({"pops": Out(2), "there": In(1), "take": Out(1), "pushes": Out(2), "give": Out(1)})


def connect_tokens(m: Module, unit: Any, config: Config) -> None:
    """Take tokens with a unit's starts, and give tokens with its retirements."""
    flags = view(Instruction, config, unit.issue.entry.word)
    retired = unit.retirement.retired
    m.d.comb += [
        unit.tokens.pops.eq(Cat(flags.pop_prev, flags.pop_next)),
        unit.tokens.take.eq(unit.issue.start),
        unit.tokens.pushes.eq(Cat(retired.push_prev, retired.push_next)),
        unit.tokens.give.eq(unit.retirement.valid),
    ]


def token_counters(unit: Unit) -> tuple[Sequence[Counter | None], Sequence[Counter | None]]:
    """Return the counters that a unit pops and pushes, previous unit first."""
    ends = {(counter.source, counter.target): counter for counter in Counter}
    neighbours = (unit.previous, unit.next)
    pops = [None if n is None else ends[n, unit] for n in neighbours]
    pushes = [None if n is None else ends[unit, n] for n in neighbours]
    return pops, pushes


class TokenCounters(wiring.Component):
    """The counters, with a :class:`TokenAccess` under each unit's name.

    ``overflow`` shows, in the cycle of a push, that a counter is full. ``count_n`` is counter n.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "clear": In(1),
                "overflow": Out(len(Counter)),
                **{f"count_{counter.value}": Out(config.token_bits) for counter in Counter},
                **{unit.label: In(TokenAccess()) for unit in WORKERS},
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        available, pushed, popped = (Signal(len(Counter), name=name) for name in ("available", "push", "pop"))
        for counter in Counter:
            tokens = Signal(self._config.token_bits, name=counter.name.lower())
            push, pop = pushed[counter], popped[counter]
            full = Signal(name=f"{counter.name.lower()}_full")
            most = self._config.token_limit
            m.d.comb += [
                getattr(self, f"count_{counter.value}").eq(tokens),
                self.overflow[counter].eq(push & ~pop & full),
            ]
            with m.If(push & ~pop):
                m.d.sync += [available[counter].eq(1), full.eq(full | (tokens == most - 1))]
                with m.If(~full):
                    m.d.sync += tokens.eq(tokens + 1)
            with m.If(pop & ~push):
                m.d.sync += [tokens.eq(tokens - 1), available[counter].eq(tokens != 1), full.eq(0)]
            with m.If(self.clear):
                m.d.sync += [tokens.eq(0), available[counter].eq(0), full.eq(0)]
        for unit in WORKERS:
            self._meet(m, unit, available, pushed, popped)
        return m

    def _meet(self, m: Module, unit: Unit, available: Signal, pushed: Signal, popped: Signal) -> None:
        """Connect a unit. Tokens of a missing neighbour are always present."""
        access = port_of(self, unit)
        pops, pushes = token_counters(unit)
        taken = [(access.pops[n], counter) for n, counter in enumerate(pops) if counter is not None]
        given = [(access.pushes[n], counter) for n, counter in enumerate(pushes) if counter is not None]
        m.d.comb += [
            access.there.eq(~Cat(flag & ~available[counter] for flag, counter in taken).any()),
            *(popped[counter].eq(access.take & flag) for flag, counter in taken),
            *(pushed[counter].eq(access.give & flag) for flag, counter in given),
        ]
