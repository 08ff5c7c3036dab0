"""Tensors that lie within others: operands of a Concat within its result, a Slice within what it is cut from.

Nothing is moved where layers write operands side by side in DRAM, or take a part of what others wrote, and
what comes of it are bytes as the readers expect them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from accel.core.config import Config
from accel.graph.graph import Graph
from accel.graph.movement import Concat, Slice
from accel.graph.tensor import QUANTIZED
from accel.image.tensor import ImageTensor
from accel.network.place import Part
from accel.run.tensors import numbers_of

_Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class Stored:
    """How a tensor's values lie in DRAM.

    Attributes:
        dtype: of its values.
        numbers: for every byte the number of the value that it is, in row-major order, from 1 on; 0 where it
            is none.
    """

    dtype: str
    numbers: _Numbers

    def is_taken_as(self, tensor: ImageTensor) -> bool:
        """Whether a program takes its values from there as it expects them."""
        if tensor.dtype != self.dtype or tensor.preparation is not None:
            return False
        found = numbers_of(tensor)
        return found is not None and np.array_equal(found, self.numbers)


def stored_as(tensor: ImageTensor) -> Stored | None:
    """How a program has a tensor; None where the host would prepare it."""
    numbers = numbers_of(tensor)
    return None if numbers is None else Stored(dtype=tensor.dtype, numbers=numbers)


def may_be_view(graph: Graph, part: Part) -> bool:
    """Whether a part does nothing but gather integers, or cut them out."""
    integers = graph.tensors[part.stage.output].dtype in QUANTIZED
    return integers and isinstance(part.stage.main.operator, Concat | Slice)


def view_of(graph: Graph, part: Part, sources: Sequence[Stored | None]) -> tuple[Stored, int] | None:
    """A Concat's result where its operands lie side by side, or a Slice and the bytes before it.

    Args:
        graph: the part's.
        part: one that may be a view.
        sources: its operands, None where they do not lie in DRAM.

    Returns:
        None where it is none: values lie between those of a Slice that are none of it.
    """
    known = [one for one in sources if one is not None]
    if len(known) < len(sources):
        return None
    operator = part.stage.main.operator
    operands, out = graph.operands(part.stage.main), graph.tensors[part.stage.output]
    if isinstance(operator, Concat):
        places = np.arange(1, out.size + 1, dtype=np.int32).reshape(out.shape)
        ends = np.cumsum([one.shape[operator.axis] for one in operands])[:-1]
        pieces = np.split(places, ends, axis=operator.axis)
        numbers = [_renumbered(one.numbers, piece) for one, piece in zip(known, pieces, strict=True)]
        return Stored(dtype=out.dtype, numbers=np.concatenate(numbers)), 0
    assert isinstance(operator, Slice)
    source = np.arange(operands[0].size).reshape(operands[0].shape)
    chosen = operator.evaluate(operands, [source], out)
    places = np.zeros(operands[0].size, dtype=np.int32)
    places[chosen.reshape(-1)] = np.arange(1, out.size + 1)
    found = _renumbered(known[0].numbers, places)
    inside = np.flatnonzero(found)
    first, stop = int(inside[0]), int(inside[-1]) + 1
    foreign = (found[first:stop] == 0) & (known[0].numbers[first:stop] != 0)
    return None if foreign.any() else (Stored(dtype=out.dtype, numbers=found[first:stop]), first)


def _renumbered(numbers: _Numbers, places: _Numbers) -> _Numbers:
    """Bytes of a tensor by the numbers that its values have in another."""
    return np.concatenate([np.zeros(1, dtype=np.int32), places.reshape(-1)])[numbers]


@dataclass
class Views:
    """Which tensors of a chain are others, or lie within others.

    Attributes:
        inside: for each of them another one, and the bytes of that before it.
        nbytes: of those that several layers write.
        wrong: results of parts that would have to move values after all.
        stored: how tensors lie that others are made of or are taken from, or that layers take several times.
    """

    inside: dict[str, tuple[str, int]] = field(default_factory=dict)
    nbytes: dict[str, int] = field(default_factory=dict)
    wrong: set[str] = field(default_factory=set)
    stored: dict[str, Stored | None] = field(default_factory=dict)

    def place(self, name: str) -> tuple[str, int]:
        """The tensor that one lies in, which lies in no other, and the bytes before it."""
        offset = 0
        while name in self.inside:
            name, more = self.inside[name]
            offset += more
        return name, offset


def find_views(graph: Graph, parts: Sequence[Part], needed: Collection[str], config: Config) -> Views:
    """How the tensors of a chain lie.

    Args:
        graph: the parts'.
        parts: of the machine, and others that are to move nothing.
        needed: tensors that are needed outside.
        config: the machine, by whose elements tensors can lie apart within another.
    """
    element = max(config.inp_element_bytes, config.out_element_bytes, config.res_element_bytes)
    found = Views()
    stored = found.stored
    gathering = any(
        may_be_view(graph, part)
        if part.layer is None
        else any(operand.copies > 1 for operand in part.layer.operands)
        for part in parts
    )
    for part in parts:
        out, sources = part.stage.output, part.stage.inputs
        if part.on_machine:
            stored[out] = stored_as(part.output) if gathering else None
        elif not may_be_view(graph, part):
            stored[out] = stored.get(sources[0])
            found.inside[out] = (sources[0], 0)
        else:
            view = view_of(graph, part, [stored.get(name) for name in part.stage.main.inputs])
            if view is None or not _is_placed(found, stored, part, view[1], element):
                found.wrong.add(out)
                found.inside[out] = (sources[0], 0)
                continue
            stored[out] = view[0]
            if isinstance(part.stage.main.operator, Slice):
                found.inside[out] = (sources[0], view[1])
                continue
            reached = 0
            for name in sources:
                own = stored[name]
                assert own is not None
                found.inside[found.place(name)[0]] = (out, reached)
                reached += len(own.numbers)
            found.nbytes[out] = reached
    # outside, a tensor is what one layer has written, all of it
    made = {part.stage.output for part in parts if part.on_machine}
    unfit = {found.place(name)[0] for name in needed if not _is_whole(found, stored, made, name)}
    found.wrong |= {
        part.stage.output
        for part in parts
        if not part.on_machine and may_be_view(graph, part) and found.place(part.stage.output)[0] in unfit
    }
    return found


def _is_whole(found: Views, stored: Mapping[str, Stored | None], made: Collection[str], name: str) -> bool:
    """Whether a tensor is all that one layer has written, where that lies in no other."""
    root, offset = found.place(name)
    own, whole = stored.get(name), stored.get(root)
    if root not in made or own is None or whole is None:
        return root in made
    return not offset and len(own.numbers) == len(whole.numbers)


def _is_placed(
    found: Views, stored: Mapping[str, Stored | None], part: Part, offset: int, element: int
) -> bool:
    """Whether the operands of a part can lie where it has them."""
    node = part.stage.main
    if isinstance(node.operator, Slice):
        return offset % element == 0
    roots = [found.place(name) for name in node.inputs]
    if len({name for name, _ in roots}) < len(roots) or any(before for _, before in roots):
        return False
    for name, (root, _) in zip(node.inputs, roots, strict=True):
        own, whole = stored.get(name), stored.get(root)
        if own is None or whole is None or len(own.numbers) != len(whole.numbers):
            return False
        if len(own.numbers) % element:
            return False
    return True
