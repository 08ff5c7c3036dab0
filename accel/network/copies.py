"""Operands that a layer takes several times, as its weights are sums of several int8 values.

Compiled by itself, a layer has the copies one behind the other. In a chain its LOADs take the only one.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from accel.core.faults import dram_element_bytes
from accel.core.isa import Load
from accel.graph.graph import Graph
from accel.image.tensor import ImageTensor
from accel.network.lower import Operand
from accel.network.transfers import taken_elsewhere
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
        base = tensor.offset // size
        taken = None if elements is None else taken_elsewhere(one, base, elements)
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
