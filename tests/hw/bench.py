"""Running one hardware unit in Amaranth's simulator."""

from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from amaranth.lib import wiring
from amaranth.sim import Simulator


def run(unit: wiring.Component, bench: Callable[[Any], Awaitable[None]]) -> None:
    """Clock ``unit`` while the coroutine ``bench(context)`` goes on."""
    simulator = Simulator(unit)
    simulator.add_clock(1e-6, if_exists=True)
    simulator.add_testbench(bench)
    simulator.run()


def drive(context: Any, target: Any, **values: int) -> None:
    """Set fields of a port, or ports of a component."""
    for name, value in values.items():
        context.set(getattr(target, name), value)


def as_integer(array: npt.NDArray[Any]) -> int:
    """An array's bytes as one little-endian word."""
    return int.from_bytes(np.ascontiguousarray(array).tobytes(), "little")


def as_array(value: int, dtype: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """The inverse of :func:`as_integer`."""
    kind = np.dtype(dtype)
    count = int(np.prod(shape))
    return np.frombuffer(value.to_bytes(count * kind.itemsize, "little"), dtype=kind).reshape(shape)
