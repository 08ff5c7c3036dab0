"""Emission of store-unit epilogues: LOAD.RES, STORE.REQ, STORE.ADD and STORE.MUL."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple, TypeVar

from accel.base.errors import TensorizeError
from accel.base.records import replace
from accel.compiler.target.emitter_registry import AccessPtr, Emitted, Target
from accel.core.isa import SIZE_BITS, LoadRes, StoreAdd, StoreMul, StoreReq

StoreReqT = TypeVar("StoreReqT", bound=StoreReq)
_LONGEST = (1 << SIZE_BITS) - 1


class _Dim(NamedTuple):
    """One dimension of a tile: strides in DRAM, in the accumulators and in the parameters."""

    extent: int
    dram: int
    sram: int
    par: int


class _Piece(NamedTuple):
    """The part of a tile that one STORE writes: its start in each memory, its rows, and a row's elements."""

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
    is_product: bool = False,
) -> tuple[list[Emitted], list[Emitted]]:
    """Return the STOREs of a tile, and the LOADs of their residuals, in order.

    The k-th STORE takes the residuals of the k-th LOAD. Two neighbouring LOADs fit in the residual
    scratchpad, so that a LOAD does not wait for the STORE before it.

    Args:
        par: the parameters, along each dimension of the tile.
        residual: the tensor to combine with, in DRAM, in the tile's layout or with one element for all pixels
            of a block of channels. Then all strides but the first two are 0, and each STORE holds one.
        table: the element of TAB through which results pass, or None.
        is_product: whether STOREs multiply by the residual.
    """
    entry = 0 if table is None else table + 1
    if residual is None:
        pieces = _tile_pieces(target, to, acc, par)
        return [Emitted(_store(StoreReq(table=entry), piece)) for piece in pieces], []
    kind = StoreMul(table=entry) if is_product else StoreAdd(table=entry)
    stores, loads = list[Emitted](), list[Emitted]()
    if residual.strides == to.strides:
        most = max(1, target.config.res_depth // 2)
        for piece in _tile_pieces(target, to, acc, par, most):
            store = _store(kind, piece)
            at = residual.base + piece.dram - to.base
            load = replace(_LOAD, dram_base=at, y_size=store.y_size, x_size=store.x_size)
            stores.append(Emitted(store))
            loads.append(Emitted(replace(load, x_stride=store.x_stride)))
        return stores, loads
    if len(residual.strides) < 3 or any(residual.strides[2:]):
        raise TensorizeError(
            "the store unit takes a residual that lies in DRAM as the result does, or one element of it for "
            "all pixels of a block of channels"
        )
    for position in product(*map(range, target.extents[:2])):
        block = replace(target, extents=(1, 1, *target.extents[2:]))
        moved_to, moved_acc, moved_par = (_moved(pointer, position) for pointer in (to, acc, par))
        pieces = _tile_pieces(block, moved_to, moved_acc, moved_par)
        load = replace(_LOAD, dram_base=_moved(residual, position).base, y_size=1, x_size=1, x_stride=1)
        for piece in pieces:
            stores.append(Emitted(replace(_store(kind, piece), hold=True)))
            loads.append(Emitted(load))
    return stores, loads


def _moved(pointer: AccessPtr, position: Sequence[int]) -> AccessPtr:
    distance = sum(n * stride for n, stride in zip(position, pointer.strides, strict=False))
    return pointer._replace(base=pointer.base + distance)


def _store(kind: StoreReqT, piece: _Piece) -> StoreReqT:
    return replace(
        kind,
        sram_base=piece.sram,
        dram_base=piece.dram,
        y_size=piece.rows.extent,
        x_size=piece.row.extent,
        x_stride=piece.rows.dram if piece.rows.extent > 1 else piece.row.extent,
        par=piece.par,
        par_y=piece.rows.par > 0,
        par_x=piece.row.par > 0,
    )


def _tile_pieces(
    target: Target, to: AccessPtr, acc: AccessPtr, par: AccessPtr, most: int = _LONGEST * _LONGEST
) -> Iterator[_Piece]:
    boxes = zip(target.extents, to.strides, acc.strides, par.strides, strict=True)
    return _pieces(to.base, acc.base, par.base, [_Dim(*sizes) for sizes in boxes], most)


def _pieces(dram: int, sram: int, par: int, dims: Sequence[_Dim], most: int) -> Iterator[_Piece]:
    """Divide a box into rows that the fields of a STORE can hold, each of at most ``most`` elements."""
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
