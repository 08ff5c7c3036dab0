"""Transfers of a layer whose tensor's elements lie elsewhere in a chain."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from accel.base.records import replace
from accel.core.fault_causes import dram_element_bytes
from accel.core.isa import LoadRes, Store, StoreAdd, StoreReq, Transfer
from accel.core.isa.field_widths import SIZE_BITS
from accel.run.program import Program

_Integers = npt.NDArray[np.int64]
_TransferT = TypeVar("_TransferT", bound=Transfer)
_MAX_STRIDE = (1 << SIZE_BITS) - 1


def transfers_at(program: Program, offset: int) -> dict[int, Transfer]:
    assert program.references is not None
    parts = program.references.parts
    transfers: dict[int, Transfer] = {}
    for index, part in enumerate(program.references.of.tolist()):
        if part >= 0 and parts[part].offset == offset:
            instruction = program.instructions[index]
            assert isinstance(instruction, Transfer)
            transfers[index] = instruction
    return transfers


def relocate_transfers(
    program: Program, offset: int, positions: _Integers
) -> dict[int, Sequence[Transfer]] | None:
    """Change a tensor's transfers to ``positions``, int64[elements] relative to its start.

    Returns:
        Replacements by index of instruction, or None if impossible.
    """
    relocated: dict[int, Sequence[Transfer]] = {}
    for index, transfer in transfers_at(program, offset).items():
        base = offset // dram_element_bytes(transfer, program.config)
        replacement = relocate_transfer(transfer, base, positions)
        if replacement is None:
            return None
        relocated[index] = replacement
    return relocated


def relocate_transfer(transfer: _TransferT, base: int, positions: _Integers) -> Sequence[_TransferT] | None:
    """For example, a LOAD of two rows becomes a LOAD with another stride if both remain whole, otherwise
    several LOADs of one row.

    Args:
        positions: int64[elements], relative to ``base``, the tensor's first element in DRAM.

    Returns:
        None if this would divide a row of a transfer with rows of padding, or a STORE that uses one residual
        for all elements.
    """
    rows = np.arange(transfer.y_size)[:, None] * transfer.x_stride + np.arange(transfer.x_size)
    if not rows.size:
        return [transfer]
    moved = positions[rows + (transfer.dram_base - base)]
    holds = isinstance(transfer, StoreAdd) and transfer.hold
    if (np.diff(moved, axis=1) == 1).all():
        found = _relocate_whole_rows(transfer, base, moved[:, 0])
        return None if holds and len(found) > 1 else found
    if transfer.y_pad_0 or transfer.y_pad_1 or holds:
        return None
    pieces: list[_TransferT] = []
    for row, row_positions in enumerate(moved):
        breaks = (np.flatnonzero(np.diff(row_positions) != 1) + 1).tolist()
        for begin, end in pairwise([0, *breaks, transfer.x_size]):
            is_first, is_last = begin == 0, end == transfer.x_size
            elements = row * transfer.width + (0 if is_first else transfer.x_pad_0 + begin)
            piece = replace(
                _with_scratchpad_offset(transfer, row, begin, elements),
                dram_base=base + int(row_positions[begin]),
                y_size=1,
                x_size=end - begin,
                x_stride=end - begin,
            )
            if transfer.width > transfer.x_size:
                piece = replace(
                    piece,
                    x_pad_0=transfer.x_pad_0 if is_first else 0,
                    x_pad_1=transfer.x_pad_1 if is_last else 0,
                )
            pieces.append(piece)
    return pieces


def _relocate_whole_rows(transfer: _TransferT, base: int, starts: _Integers) -> Sequence[_TransferT]:
    pieces: list[_TransferT] = []
    count, at = len(starts), 0
    while at < count:
        end = at + 1
        stride = int(starts[end] - starts[at]) if end < count else transfer.x_stride
        while end < count and starts[end] - starts[end - 1] == stride and stride >= 0:
            end += 1
        elements = 0 if at == 0 else (transfer.y_pad_0 + at) * transfer.width
        piece = replace(
            _with_scratchpad_offset(transfer, at, 0, elements),
            dram_base=base + int(starts[at]),
            y_size=end - at,
            x_stride=stride if end - at > 1 else transfer.x_size,
        )
        if transfer.height > transfer.y_size:
            piece = replace(
                piece,
                y_pad_0=transfer.y_pad_0 if at == 0 else 0,
                y_pad_1=transfer.y_pad_1 if end == count else 0,
            )
        pieces.append(piece)
        at = end
    return pieces


def _with_scratchpad_offset(transfer: _TransferT, row: int, column: int, elements: int) -> _TransferT:
    if isinstance(transfer, LoadRes):  # appends to a queue, without address
        return transfer
    if isinstance(transfer, StoreReq):
        par = transfer.par + (row if transfer.par_y else column if transfer.par_x else 0)
        return replace(transfer, sram_base=transfer.sram_base + elements, par=par)
    return replace(transfer, sram_base=transfer.sram_base + elements)


def scatter_store(store: Store, base: int, positions: _Integers) -> list[tuple[Store, _Integers]]:
    """Replace a STORE by ones that write its elements elsewhere. Return the numbers of each one's elements.

    For example, a row of elements at the positions 0, 2, 4, 6, 8 is one STORE of five rows with stride 2.

    Args:
        positions: int64[elements], relative to ``base``. Elements with negative or without positions are left
            out.
    """
    rows = np.arange(store.y_size)[:, None] * store.x_stride + np.arange(store.x_size)
    rows += store.dram_base - base
    if not rows.size:
        return []
    known = rows < len(positions)
    moved = np.where(known, positions[np.minimum(rows, len(positions) - 1)], -1)
    pieces: list[tuple[Store, _Integers]] = []
    if (moved >= 0).all() and (np.diff(moved, axis=1) == 1).all():
        first = 0
        for piece in _relocate_whole_rows(store, base, moved[:, 0]):
            pieces.append((piece, first + np.arange(piece.sram_elements)))
            first += piece.sram_elements
        return pieces
    for row, row_positions in enumerate(moved.tolist()):
        for begin, count, stride in _runs(row_positions):
            piece = _stored_run(store, row, begin, count, stride, base + row_positions[begin])
            pieces.append((piece, row * store.x_size + begin + np.arange(count)))
    return pieces


def _runs(positions: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield begin, count and stride of elements at equal distances. Skip negative positions."""
    at = 0
    while at < len(positions):
        if positions[at] < 0:
            at += 1
            continue
        end, stride = at + 1, 1
        if end < len(positions) and 0 < positions[end] - positions[at] <= _MAX_STRIDE:
            stride = positions[end] - positions[at]
            while end < len(positions) and positions[end] - positions[end - 1] == stride:
                end += 1
        yield at, end - at, stride
        at = end


def _stored_run(store: Store, row: int, begin: int, count: int, stride: int, target: int) -> Store:
    is_row = stride == 1
    piece = replace(
        _with_scratchpad_offset(store, row, begin, row * store.width + begin),
        dram_base=target,
        y_size=1 if is_row else count,
        x_size=count if is_row else 1,
        x_stride=count if is_row else stride,
    )
    if isinstance(piece, StoreReq) and isinstance(store, StoreReq):
        # a column of PAR has one element for each row of the piece
        steps = store.par_x and not is_row
        piece = replace(piece, par_y=steps, par_x=store.par_x and is_row)
    return piece
