"""Helpers that run one hardware unit in Amaranth's simulator."""

from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from amaranth.lib import wiring
from amaranth.sim import Simulator

from accel.core.config import Config
from accel.core.fault_causes import Cause, instruction_fault, sram_ranges
from accel.core.isa import Instruction, Load, Store, Transfer, encode
from accel.hw.datapath.transfer_memories import kinds_of
from accel.hw.datapath.word_layouts import sram_bits


def run(unit: wiring.Component, bench: Callable[[Any], Awaitable[None]]) -> None:
    """Clock ``unit`` until the coroutine ``bench(context)`` ends."""
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


def offer(context: Any, entry: Any, instruction: Instruction, index: int, config: Config) -> None:
    """Put an instruction, its fault and the derived fields of its transfer into a queue entry."""
    word = int.from_bytes(encode([instruction], config), "little")
    fault = instruction_fault(instruction, config)
    drive(context, entry, word=word, index=index, cause=Cause.NONE if fault is None else fault.cause)
    drive(context, entry.moves, **moves_of(instruction, config))
    if isinstance(instruction, Transfer):
        most = (1 << sram_bits(config)) - 1
        box = {name: min(value, most) for name, value in box_of(instruction).items()}
        end = sum((first + count for _, first, count in sram_ranges(instruction)[-1:]), 0)
        drive(context, entry.box, **box, end=min(end, most))


async def offer_next(
    context: Any, entry: Any, following: Any, instruction: Instruction, index: int, config: Config
) -> None:
    """Offer the instruction as ``following`` for one cycle, and then as ``entry``."""
    offer(context, following, instruction, index, config)
    await context.tick()
    offer(context, entry, instruction, index, config)


def assert_refused(context: Any, unit: Any, instruction: Instruction, index: int, config: Config) -> None:
    """Check that a unit reports the cause of a faulty instruction when it could start it,
    and never starts it."""
    fault = instruction_fault(instruction, config)
    assert fault is not None
    offer(context, unit.issue.entry, instruction, index, config)
    for valid, tokens, enable in ((1, 1, 1), (1, 0, 1), (0, 1, 1), (1, 1, 0)):
        context.set(unit.issue.valid, valid)
        context.set(unit.tokens.there, tokens)
        context.set(unit.control.enable, enable)
        assert context.get(unit.fault) == (fault.cause if valid and tokens else Cause.NONE)
        assert context.get(unit.lacking) == (valid and not tokens)
        assert not context.get(unit.issue.start)


def box_of(transfer: Transfer) -> dict[str, int]:
    """The element counts of a LOAD's or STORE's box that a unit needs to start it."""
    data = np.zeros((transfer.height, transfer.width), dtype=bool)
    top, left = transfer.y_pad_0, transfer.x_pad_0
    data[top : top + transfer.y_size, left : left + transfer.x_size] = True
    places = np.flatnonzero(data)
    return {
        "elements": data.size if transfer.x_size else 0,
        "body": transfer.y_size * transfer.width,
        "head": int(places[0]) if len(places) else data.size,
        "tail": data.size - int(places[-1]) - 1 if len(places) else 0,
    }


def moves_of(instruction: Instruction, config: Config) -> dict[str, int]:
    """The entry's flags about the data and padding that an instruction moves."""
    if not isinstance(instruction, Transfer):
        return dict.fromkeys(("kind", "data", "pads", "some"), 0)
    kinds = [
        kind.memory
        for kind in kinds_of(Load if isinstance(instruction, Load) else Store, instruction.unit, config)
    ]
    data = instruction.x_size * instruction.y_size
    some = instruction.height * instruction.width if instruction.x_size else 0
    return {
        "kind": kinds.index(instruction.memory) if instruction.memory in kinds else 0,
        "data": data != 0,
        "pads": some != data,
        "some": some != 0,
    }
