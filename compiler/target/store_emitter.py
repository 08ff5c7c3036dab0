"""Emission of store-unit epilogues: LOAD.RES, STORE.REQ and STORE.ADD from access pointers."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from accel.base.errors import TensorizeError
from accel.compiler.target.emitter_registry import AccessPtr, Emitted, Target
from accel.core.isa import SIZE_BITS, LoadRes, StoreAdd, StoreReq

_LONGEST = (1 << SIZE_BITS) - 1
"""Largest x_size, y_size and x_stride."""


class _Dim(NamedTuple):
    """One dimension of a tile: strides in DRAM, in the accumulators and in the parameters."""

    extent: int
    dram: int
    sram: int
    par: int


class _Piece(NamedTuple):
    """The part of a tile that one STORE writes: its start in each memory, its rows, and the elements in a
    row."""

    dram: int
    sram: int
    par: int
    rows: _Dim
    row: _Dim


_ONE = _Dim(1, 0, 0, 0)
_LOAD = LoadRes()


def emit_stores(
    target: Target,
    to: AccessPtr,
    acc: AccessPtr,
    par: AccessPtr,
    residual: AccessPtr | None = None,
    *,
    table: int | None = None,
) -> tuple[list[Emitted], list[Emitted]]:
    """Return the STOREs of a tile, and the LOADs of the residuals that they add, in order.

    The k-th STORE adds the residuals of the k-th LOAD. Two neighbouring LOADs fit in the residual
    scratchpad, so that a LOAD does not wait for the STORE before it.

    Args:
        target: the machine, and the extents of the tile.
        par: the parameters, along each dimension of the tile.
        residual: the tensor that is added, in DRAM, with the layout of the tile.
        table: the element of TAB through which results pass, or None.
    """
    if residual is not None and residual.strides != to.strides:
        raise TensorizeError("the store unit adds a residual that lies in DRAM as the result does")
    boxes = zip(target.extents, to.strides, acc.strides, par.strides, strict=True)
    dims = [_Dim(*sizes) for sizes in boxes]
    most = _LONGEST * _LONGEST if residual is None else max(1, target.config.res_depth // 2)
    stores, loads = [], []
    for piece in _pieces(to.base, acc.base, par.base, dims, most):
        stride = piece.rows.dram if piece.rows.extent > 1 else piece.row.extent
        kind = StoreReq if residual is None else StoreAdd
        store = kind(
            sram_base=piece.sram,
            dram_base=piece.dram,
            y_size=piece.rows.extent,
            x_size=piece.row.extent,
            x_stride=stride,
            par=piece.par,
            par_y=piece.rows.par > 0,
            par_x=piece.row.par > 0,
            table=0 if table is None else table + 1,
        )
        stores.append(Emitted(store))
        if residual is not None:
            load = replace(_LOAD, dram_base=residual.base + piece.dram - to.base, y_size=store.y_size)
            loads.append(Emitted(replace(load, x_size=store.x_size, x_stride=stride)))
    return stores, loads


def _pieces(dram: int, sram: int, par: int, dims: Sequence[_Dim], most: int) -> Iterator[_Piece]:
    """A box as rows of elements that the fields of a STORE can hold, each of ``most`` elements at most."""
    dims = _merged(dims)
    row = dims[-1] if dims and dims[-1].dram == 1 and dims[-1].par in (0, 1) else _ONE
    outer = dims[:-1] if row is not _ONE else dims
    if row.extent > 1 and row.sram != 1:
        raise TensorizeError("the store unit finishes accumulators that follow one another")
    if row.extent > min(most, _LONGEST) and not outer:
        yield from _cut(dram, sram, par, [row], most, min(most, _LONGEST))
        return
    if not outer:
        yield _Piece(dram, sram, par, _ONE, row)
        return
    rows = outer[-1]
    fits = (
        len(outer) == 1
        and rows.sram == row.extent
        and rows.dram <= _LONGEST
        and rows.par in (0, 1)
        and not (rows.par and row.par)
        and row.extent <= min(most, _LONGEST)
    )
    longest = max(1, min(most // row.extent, _LONGEST)) if fits else 1
    if fits and rows.extent <= longest:
        yield _Piece(dram, sram, par, rows, row)
        return
    yield from _cut(dram, sram, par, dims, most, longest)


def _cut(dram: int, sram: int, par: int, dims: Sequence[_Dim], most: int, step: int) -> Iterator[_Piece]:
    first, *rest = dims
    for n in range(0, first.extent, step):
        part = first._replace(extent=min(step, first.extent - n))
        at = (dram + n * first.dram, sram + n * first.sram, par + n * first.par)
        yield from _pieces(*at, [part, *rest], most)


def _merged(dims: Sequence[_Dim]) -> list[_Dim]:
    """The same box with as few dimensions as possible."""
    merged: list[_Dim] = []
    for dim in dims:
        if dim.extent == 1:
            continue
        inner = tuple(stride * dim.extent for stride in dim[1:])
        if merged and merged[-1][1:] == inner:
            merged[-1] = dim._replace(extent=merged[-1].extent * dim.extent)
        else:
            merged.append(dim)
    return merged
