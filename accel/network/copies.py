"""Operands that a layer takes several times, as its weights are sums of several int8 values.

Compiled by itself, a layer has the copies one behind the other. In a chain its LOADs take the only one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from accel.core.faults import dram_element_bytes
from accel.core.isa import Load
from accel.graph.graph import Graph
from accel.image.tensor import ImageTensor
from accel.network.lower import Operand
from accel.network.views import Stored
from accel.run.program import Program
from accel.run.tensors import numbers_of

_Integers = npt.NDArray[np.int64]


def loads_of_copies(
    graph: Graph, program: Program, operand: Operand, stored: Stored
) -> Mapping[int, Sequence[Load]] | None:
    """LOADs in the place of those that take an operand's copies.

    Args:
        graph: the operand's.
        program: the layer's, by itself.
        operand: taken several times.
        stored: how its only copy lies in DRAM.

    Returns:
        For each instruction that takes it, by its number, one LOAD or several, as if the only copy lay where
        the copies begin; None where elements hold values of several, or do not lie one behind the other.
    """
    tensor = next(one for one in program.tensors if one.name == operand.name)
    if program.references is None or tensor.dtype != stored.dtype or tensor.preparation is not None:
        return None
    found: dict[int, Sequence[Load]] = {}
    places: dict[int, _Integers | None] = {}
    for at, number in enumerate(program.references.of.tolist()):
        if number < 0 or program.references.parts[number].offset != tensor.offset:
            continue
        one = program.instructions[at]
        if not isinstance(one, Load):
            return None
        size = dram_element_bytes(one, program.config)
        if size not in places:
            places[size] = _elements(graph, tensor, operand, stored, size)
        elements = places[size]
        base = (program.config.mem_base + tensor.offset) // size
        taken = None if elements is None else _taken(one, base, elements)
        if taken is None:
            return None
        found[at] = taken
    return found


def _elements(
    graph: Graph, tensor: ImageTensor, operand: Operand, stored: Stored, size: int
) -> _Integers | None:
    """For each element of the copies that of the only one, by numbers; None where there is none."""
    numbers = numbers_of(tensor)
    source = graph.tensors[operand.tensor]
    if numbers is None or len(numbers) % size or len(stored.numbers) % size:
        return None
    indexes = np.arange(1, source.size + 1, dtype=np.int32).reshape(operand.whole)
    copied = operand.values(graph, indexes).reshape(-1)
    wide = np.concatenate([np.zeros(1, dtype=np.int32), copied])[numbers].reshape(-1, size)
    once = stored.numbers.reshape(-1, size)
    places = np.zeros(source.size + 1, dtype=np.int64)
    places[stored.numbers] = np.arange(len(stored.numbers)) // size
    found = places[wide.max(axis=1)]
    return found if np.array_equal(once[found], wide) else None


def _taken(one: Load, base: int, elements: _Integers) -> Sequence[Load] | None:
    """A LOAD of copies as LOADs of the only one, which may need several."""
    rows = np.arange(one.y_size)[:, None] * one.x_stride + np.arange(one.x_size)
    if not rows.size:
        return [one]
    wanted = elements[rows + (one.dram_base - base)]
    width = one.x_pad_0 + one.x_size + one.x_pad_1
    if (np.diff(wanted, axis=1) == 1).all():
        return _by_rows(one, base, wanted[:, 0], width)
    if one.y_pad_0 or one.y_pad_1:
        return None
    found: list[Load] = []
    for row, places in enumerate(wanted):
        breaks = (np.flatnonzero(np.diff(places) != 1) + 1).tolist()
        for begin, end in pairwise([0, *breaks, one.x_size]):
            first, last = begin == 0, end == one.x_size
            found.append(
                replace(
                    one,
                    sram_base=one.sram_base + row * width + (0 if first else one.x_pad_0 + begin),
                    dram_base=base + int(places[begin]),
                    y_size=1,
                    x_size=end - begin,
                    x_stride=end - begin,
                    x_pad_0=one.x_pad_0 if first else 0,
                    x_pad_1=one.x_pad_1 if last else 0,
                )
            )
    return found


def _by_rows(one: Load, base: int, starts: _Integers, width: int) -> Sequence[Load]:
    """Rows that are whole, as few LOADs as have one stride each."""
    found: list[Load] = []
    count, at = len(starts), 0
    while at < count:
        end = at + 1
        stride = int(starts[end] - starts[at]) if end < count else one.x_stride
        while end < count and starts[end] - starts[end - 1] == stride and stride >= 0:
            end += 1
        found.append(
            replace(
                one,
                sram_base=one.sram_base + (0 if at == 0 else (one.y_pad_0 + at) * width),
                dram_base=base + int(starts[at]),
                y_size=end - at,
                x_stride=stride if end - at > 1 else one.x_size,
                y_pad_0=one.y_pad_0 if at == 0 else 0,
                y_pad_1=one.y_pad_1 if end == count else 0,
            )
        )
        at = end
    return found
