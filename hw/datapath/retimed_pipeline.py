"""Registers distributed over steps of logic so that the longest path is as short as possible."""

from collections.abc import Sequence
from types import SimpleNamespace

from amaranth.hdl import Module, Signal, Value, ValueLike

from accel.core.pipeline_stages import spread


def divide(stages: int, before: Sequence[int], after: Sequence[int]) -> int:
    """Divide ``stages`` registers between the steps ``before`` and ``after`` a fixed register. Return the
    number for the steps before."""

    def stretches(first: int) -> list[int]:
        return sorted([*_stretches(first, before), *_stretches(stages - first, after)], reverse=True)

    return min(range(stages + 1), key=stretches)


def _stretches(stages: int, steps: Sequence[int]) -> list[int]:
    found = [0]
    for step, registers in zip(steps, spread(stages, steps), strict=True):
        found[-1] += step
        if registers:
            found.append(0)
    return found


class Pipeline:
    """All ``stages`` registers load in cycles with ``advance``. A value for a later step passes through every
    step in between. ``steps`` are relative delays of each call of :meth:`step`, and of the logic after the
    last.
    """

    def __init__(self, m: Module, *, steps: Sequence[int], stages: int, advance: ValueLike) -> None:
        self._m = m
        self._advance = advance
        *behind, more = spread(stages, steps)
        behind[-1] += more
        self._registers = iter(behind)

    def step(self, **values: ValueLike) -> SimpleNamespace:
        held = {name: self._wire(name, Value.cast(value)) for name, value in values.items()}
        for _ in range(next(self._registers)):
            held = {name: self._register(name, value) for name, value in held.items()}
        return SimpleNamespace(**held)

    def _wire(self, name: str, value: Value) -> Signal:
        wire = Signal(value.shape(), name=name)
        self._m.d.comb += wire.eq(value)
        return wire

    def _register(self, name: str, value: Signal) -> Signal:
        register = Signal(value.shape(), name=name, reset_less=True)
        with self._m.If(self._advance):
            self._m.d.sync += register.eq(value)
        return register
