"""Operands of instructions with micro-ops.

``chosen`` is one-hot over instruction classes. Properties that all classes share need no multiplexer, and the
last class is the default.
"""

from collections.abc import Hashable, Mapping
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Const, Mux, Value, ValueLike

from accel.core.config import Config
from accel.core.isa import Loops, Operand, class_slots, loops_of

Chosen = Mapping[type[Loops], Value]


def operand_of(cls: type[Loops], name: str) -> Operand | None:
    return next((operand for operand in cls.OPERANDS if operand.name == name), None)


def factor(name: str, views: Mapping[type[Loops], Any], chosen: Chosen, config: Config) -> Value:
    found: dict[type[Loops], tuple[Hashable, ValueLike]] = {}
    for cls in _classes(chosen, config):
        for slot in class_slots(cls, config):
            if slot.name == name:
                found[cls] = (slot.offset, slot.width), getattr(views[cls], name)
    return _choice(found, chosen)


def depth(name: str, chosen: Chosen, config: Config) -> Value:
    operands = {cls: operand_of(cls, name) for cls in _classes(chosen, config)}
    depths = {cls: operand.memory.depth(config) for cls, operand in operands.items() if operand is not None}
    return _choice({cls: (elements, elements) for cls, elements in depths.items()}, chosen)


def used(name: str, flags: Any, chosen: Chosen, config: Config) -> Value | None:
    """Return whether ``flags`` make an operand read or written, or None if it always is."""
    found: dict[type[Loops], tuple[Hashable, ValueLike]] = {}
    for cls in _classes(chosen, config):
        operand = operand_of(cls, name)
        if operand is not None:
            always = operand.writes or operand.unless is None
            found[cls] = (None, Const(1, 1)) if always else (operand.unless, ~flags[operand.unless])
    if len(found) == len(chosen):
        if not any(key for key, _ in found.values()):
            return None
        return _choice(found, chosen)
    return reduce(or_, (chosen[cls] & condition for cls, (_, condition) in found.items()))


def _classes(chosen: Chosen, config: Config) -> list[type[Loops]]:
    """ALU stands for ALU_HIGH, too, which has the same fields."""
    return [cls for cls in loops_of(config) if cls in chosen]


def _choice(values: Mapping[type[Loops], tuple[Hashable, ValueLike]], chosen: Chosen) -> Value:
    groups: dict[Hashable, tuple[list[type[Loops]], ValueLike]] = {}
    for cls, (key, value) in values.items():
        groups.setdefault(key, ([], value))[0].append(cls)
    *first, (_, remaining) = groups.values()
    result = Value.cast(remaining)
    for classes, value in reversed(first):
        result = Mux(reduce(or_, (chosen[cls] for cls in classes)), value, result)
    return result
