"""The hardware of lane expressions computes what numpy computes."""

from typing import Any

import numpy as np
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from accel.core.lane_expressions import (
    evaluate,
    lane_input,
    maximum,
    minimum,
    rounded_shift,
    saturated,
    select,
    wrapped,
)
from accel.hw.datapath.lane_values import lane_value

X, Y = lane_input("x"), lane_input("y")
EXPRESSIONS = {
    "absolute difference": wrapped(maximum(X - Y, Y - X)),
    "rounded high product": wrapped(rounded_shift(X * Y, 31)),
    "saturated sum": saturated(X + Y, -128, 127),
    "shift by a part": wrapped(X << minimum(maximum(Y, 0), 31)),
    "select": select(X < Y, X, Y >> 3),
    "low byte": wrapped(X, 8),
}


def test_random_operands() -> None:
    m = Module()
    operands = {name: Signal(32, name=name) for name in "xy"}
    results = {}
    for number, (name, node) in enumerate(EXPRESSIONS.items()):
        results[name] = Signal(64, name=f"result_{number}")
        value = lane_value(node, {one: signal.as_signed() for one, signal in operands.items()})
        m.d.comb += results[name].eq(value)
    rng = np.random.default_rng(3)
    values = rng.integers(-(2**31), 2**31, (2, 400))
    values[:, :100] = rng.integers(-40, 40, (2, 100))
    found: dict[str, list[int]] = {name: [] for name in EXPRESSIONS}

    async def drive(context: Any) -> None:
        for x, y in values.T.tolist():
            context.set(operands["x"], x & 0xFFFFFFFF)
            context.set(operands["y"], y & 0xFFFFFFFF)
            await context.delay(1e-9)
            for name, signal in results.items():
                found[name].append(context.get(signal))

    simulator = Simulator(m)
    simulator.add_testbench(drive)
    simulator.run()
    arrays = {name: row.astype(np.int32) for name, row in zip("xy", values, strict=True)}
    for name, node in EXPRESSIONS.items():
        wanted = evaluate(node, arrays).astype(np.int64)
        np.testing.assert_array_equal(np.array(found[name], np.uint64).astype(np.int64), wanted)
