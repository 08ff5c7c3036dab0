"""Transfers of a layer's own program that find a tensor's elements elsewhere in a chain."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from accel.core.faults import dram_element_bytes
from accel.core.isa import LoadRes, StoreReq, Transfer
from accel.run.program import Program

_Integers = npt.NDArray[np.int64]
_TransferT = TypeVar("_TransferT", bound=Transfer)


def transfers_of(program: Program, offset: int) -> dict[int, Transfer]:
    """The instructions of a program that mean the part of DRAM at an offset, by their numbers."""
    assert program.references is not None
    parts = program.references.parts
    found: dict[int, Transfer] = {}
    for at, number in enumerate(program.references.of.tolist()):
        if number >= 0 and parts[number].offset == offset:
            one = program.instructions[at]
            assert isinstance(one, Transfer)
            found[at] = one
    return found


def moved_elements(
    program: Program, offset: int, elements: _Integers
) -> dict[int, Sequence[Transfer]] | None:
    """Transfers of a tensor whose elements lie in another order.

    Args:
        program: a layer's, by itself.
        offset: of the tensor, in bytes.
        elements: int64[elements], for each element of the tensor the number of the one that it is.

    Returns:
        For each instruction that touches the tensor, by its number, one or several in its place, as if
        element 0 lay where the tensor does; None where that is not possible.
    """
    found: dict[int, Sequence[Transfer]] = {}
    for at, one in transfers_of(program, offset).items():
        base = offset // dram_element_bytes(one, program.config)
        taken = taken_elsewhere(one, base, elements)
        if taken is None:
            return None
        found[at] = taken
    return found


def taken_elsewhere(one: _TransferT, base: int, elements: _Integers) -> Sequence[_TransferT] | None:
    """A transfer of elements that lie elsewhere, which may need several.

    Args:
        one: as if they lay one behind the other.
        base: the first of them in DRAM, counted in elements.
        elements: int64[elements], the place of each, from ``base`` on.

    Returns:
        None where rows that come apart have rows of pads around them.
    """
    rows = np.arange(one.y_size)[:, None] * one.x_stride + np.arange(one.x_size)
    if not rows.size:
        return [one]
    wanted = elements[rows + (one.dram_base - base)]
    if (np.diff(wanted, axis=1) == 1).all():
        return _by_rows(one, base, wanted[:, 0])
    if one.y_pad_0 or one.y_pad_1:
        return None
    found: list[_TransferT] = []
    for row, places in enumerate(wanted):
        breaks = (np.flatnonzero(np.diff(places) != 1) + 1).tolist()
        for begin, end in pairwise([0, *breaks, one.x_size]):
            first, last = begin == 0, end == one.x_size
            piece = replace(
                _behind(one, row, begin, row * one.width + (0 if first else one.x_pad_0 + begin)),
                dram_base=base + int(places[begin]),
                y_size=1,
                x_size=end - begin,
                x_stride=end - begin,
            )
            if one.width > one.x_size:
                piece = replace(
                    piece,
                    x_pad_0=one.x_pad_0 if first else 0,
                    x_pad_1=one.x_pad_1 if last else 0,
                )
            found.append(piece)
    return found


def _by_rows(one: _TransferT, base: int, starts: _Integers) -> Sequence[_TransferT]:
    """Rows that are whole, as few transfers as have one stride each."""
    found: list[_TransferT] = []
    count, at = len(starts), 0
    while at < count:
        end = at + 1
        stride = int(starts[end] - starts[at]) if end < count else one.x_stride
        while end < count and starts[end] - starts[end - 1] == stride and stride >= 0:
            end += 1
        piece = replace(
            _behind(one, at, 0, 0 if at == 0 else (one.y_pad_0 + at) * one.width),
            dram_base=base + int(starts[at]),
            y_size=end - at,
            x_stride=stride if end - at > 1 else one.x_size,
        )
        if one.height > one.y_size:
            piece = replace(
                piece,
                y_pad_0=one.y_pad_0 if at == 0 else 0,
                y_pad_1=one.y_pad_1 if end == count else 0,
            )
        found.append(piece)
        at = end
    return found


def _behind(one: _TransferT, row: int, column: int, elements: int) -> _TransferT:
    """A transfer that begins at a row and a column of another one, so many elements of its scratchpad
    behind."""
    if isinstance(one, LoadRes):  # appends to what is there
        return one
    if isinstance(one, StoreReq):
        par = one.par + (row if one.par_y else column if one.par_x else 0)
        return replace(one, sram_base=one.sram_base + elements, par=par)
    return replace(one, sram_base=one.sram_base + elements)
