"""LOADs of operands that a layer reads several times, because its weights are sums of int8 values.

A layer's own program has copies in DRAM, a chain only one.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from accel.core.fault_causes import dram_element_bytes
from accel.core.isa import Load
from accel.graph.graph import Graph
from accel.image.image_tensor import ImageTensor
from accel.network.byte_orders import ByteOrder
from accel.network.lowering.layer_operand import Operand
from accel.network.relocated_transfers import relocate_transfer
from accel.run.program import Program
from accel.run.session_tensors import value_numbers

_Integers = npt.NDArray[np.int64]


def loads_of_copies(
    graph: Graph, program: Program, operand: Operand, order: ByteOrder
) -> Mapping[int, Sequence[Load]] | None:
    """Return replacements of the LOADs of copies, by index of instruction.

    None if an element mixes copies, for example of 20 channels in blocks of 16.
    """
    tensor = next(one for one in program.tensors if one.name == operand.name)
    if program.references is None or tensor.dtype != order.dtype or tensor.preparation is not None:
        return None
    loads: dict[int, Sequence[Load]] = {}
    positions_by_size: dict[int, _Integers | None] = {}
    for index, part in enumerate(program.references.of.tolist()):
        if part < 0 or program.references.parts[part].offset != tensor.offset:
            continue
        instruction = program.instructions[index]
        if not isinstance(instruction, Load):
            return None
        size = dram_element_bytes(instruction, program.config)
        if size not in positions_by_size:
            positions_by_size[size] = _element_positions(graph, tensor, operand, order, size)
        positions = positions_by_size[size]
        base = tensor.offset // size
        replacement = None if positions is None else relocate_transfer(instruction, base, positions)
        if replacement is None:
            return None
        loads[index] = replacement
    return loads


def _element_positions(
    graph: Graph, tensor: ImageTensor, operand: Operand, order: ByteOrder, size: int
) -> _Integers | None:
    numbers = value_numbers(tensor)
    source = graph.tensors[operand.tensor]
    if numbers is None or len(numbers) % size or len(order.numbers) % size:
        return None
    indices = np.arange(1, source.size + 1, dtype=np.int32).reshape(operand.tensor_shape)
    copied = operand.values(graph, indices).reshape(-1)
    copies = np.concatenate([np.zeros(1, dtype=np.int32), copied])[numbers].reshape(-1, size)
    once = order.numbers.reshape(-1, size)
    element_of_value = np.zeros(source.size + 1, dtype=np.int64)
    element_of_value[order.numbers] = np.arange(len(order.numbers)) // size
    positions = element_of_value[copies.max(axis=1)]
    return positions if np.array_equal(once[positions], copies) else None
