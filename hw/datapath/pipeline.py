"""Pipelines of a chosen depth: steps of logic, with registers spread between them."""

from types import SimpleNamespace

from amaranth.hdl import Module, Signal, Value, ValueLike

from accel.hw.datapath.gemm import spread


class Pipeline:
    """``stages`` registers over ``steps`` steps of logic, as even as can be.

    All registers load in the same cycles, those in which ``advance`` holds. A value that a later step needs
    goes through every step in between.

    Args:
        m: where the logic goes.
        steps: how many times :meth:`step` is called.
        stages: cycles from the first step's operands to the last one's results.
        advance: whether the pipeline moves on.
    """

    def __init__(self, m: Module, *, steps: int, stages: int, advance: ValueLike) -> None:
        self._m = m
        self._advance = advance
        before, first, *rest = spread(stages, steps)
        self._registers = iter([before + first, *rest])

    def step(self, **values: ValueLike) -> SimpleNamespace:
        """The values by name, behind the registers that follow this step."""
        held = {name: self._wire(name, Value.cast(value)) for name, value in values.items()}
        for _ in range(next(self._registers)):
            held = {name: self._register(name, value) for name, value in held.items()}
        return SimpleNamespace(**held)

    def _wire(self, name: str, value: Value) -> Signal:
        wire = Signal(value.shape(), name=name)
        self._m.d.comb += wire.eq(value)
        return wire

    def _register(self, name: str, value: Signal) -> Signal:
        register = Signal(value.shape(), name=name)
        with self._m.If(self._advance):
            self._m.d.sync += register.eq(value)
        return register
