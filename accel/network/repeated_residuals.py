"""Residuals of STOREs that store their elements more than once.

A STORE.ADD takes its residuals from a queue. If its elements are also stored elsewhere, the residuals of each
piece are loaded again. If the queue has room, the LOADs of a piece come before the previous piece's STORE.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.records import replace
from accel.core.config import Config
from accel.core.fault_causes import residual_change
from accel.core.isa import Instruction, LoadRes, Store
from accel.core.scratchpad_specs import RES

_Integers = npt.NDArray[np.int64]
Located = tuple[Instruction, int | None]
"""An instruction with the DRAM offset of its part."""


class StorePiece(Struct, frozen=True, kw_only=True, eq=False):
    """A STORE of some elements of another one.

    Attributes:
        offset: of the buffer that it writes.
        elements: int64[elements], their numbers.
    """

    store: Store
    offset: int
    elements: _Integers


class RepeatedStore(Struct, frozen=True, kw_only=True, eq=False):
    """A STORE, dropped or not, with the pieces that follow it."""

    store: Store
    offset: int | None
    pieces: Sequence[StorePiece]
    is_dropped: bool

    def located(self) -> Iterator[Located]:
        if not self.is_dropped:
            yield self.store, self.offset
        for piece in self.pieces:
            yield piece.store, piece.offset


Entry = Located | RepeatedStore


def without_repeats(entries: Sequence[Entry], config: Config) -> list[Located]:
    """Insert the pieces of STOREs, with residuals for each."""
    takes_residuals = any(
        isinstance(one, RepeatedStore) and residual_change(one.store) < 0 for one in entries
    )
    if takes_residuals:
        return list(_with_residuals(entries, RES.depth(config)))
    found: list[Located] = []
    for one in entries:
        found += one.located() if isinstance(one, RepeatedStore) else [one]
    return found


class _Taker(Struct, frozen=True, kw_only=True, eq=False):
    store: Store
    offset: int | None
    addresses: _Integers
    source: int | None


def _with_residuals(entries: Sequence[Entry], depth: int) -> Iterator[Located]:
    loads = [
        (one[0], one[1])
        for one in entries
        if not isinstance(one, RepeatedStore) and isinstance(one[0], LoadRes)
    ]
    parts = [(_addresses(load), source) for load, source in loads]
    addresses = np.concatenate([one for one, _ in parts])
    sources = [source for one, source in parts for _ in range(len(one))]
    load = loads[0][0]
    takers = _takers(entries, addresses, sources)
    flat = [taker for group in takers.values() for taker in group]
    loaded = emitted = 0
    for index, entry in enumerate(entries):
        if not isinstance(entry, RepeatedStore) and isinstance(entry[0], LoadRes):
            continue
        if index not in takers:
            assert not isinstance(entry, RepeatedStore)
            yield entry
            continue
        for taker in takers[index]:
            ahead = flat[emitted : emitted + 2]
            count = 2 if sum(len(one.addresses) for one in ahead) <= depth else 1
            while loaded < min(emitted + count, len(flat)):
                yield from _loads(load, flat[loaded])
                loaded += 1
            yield taker.store, taker.offset
            emitted += 1


def _takers(
    entries: Sequence[Entry], addresses: _Integers, sources: Sequence[int | None]
) -> dict[int, list[_Taker]]:
    found: dict[int, list[_Taker]] = {}
    at = 0
    for index, entry in enumerate(entries):
        store = entry.store if isinstance(entry, RepeatedStore) else entry[0]
        count = -residual_change(store)
        if not isinstance(store, Store) or count <= 0:
            if isinstance(entry, RepeatedStore):
                found[index] = [
                    _Taker(store=one, offset=offset, addresses=addresses[:0], source=None)
                    for one, offset in entry.located()
                    if isinstance(one, Store)
                ]
            continue
        own, source = addresses[at : at + count], sources[at]
        at += count
        offset = entry.offset if isinstance(entry, RepeatedStore) else entry[1]
        found[index] = []
        if not (isinstance(entry, RepeatedStore) and entry.is_dropped):
            found[index].append(_Taker(store=store, offset=offset, addresses=own, source=source))
        for piece in entry.pieces if isinstance(entry, RepeatedStore) else ():
            # a STORE with one residual for all elements has it in every piece
            chosen = own[piece.elements] if count == store.sram_elements else own
            taker = _Taker(store=piece.store, offset=piece.offset, addresses=chosen, source=source)
            found[index].append(taker)
    return found


def _addresses(load: LoadRes) -> _Integers:
    rows = load.dram_base + np.arange(load.y_size)[:, None] * load.x_stride + np.arange(load.x_size)
    return rows.reshape(-1).astype(np.int64)


def _loads(load: LoadRes, taker: _Taker) -> Iterator[Located]:
    """Yield as few LOADs as rows of one length allow."""
    addresses = taker.addresses
    if not len(addresses):
        return
    breaks = np.flatnonzero(np.diff(addresses) != 1) + 1
    rows = np.split(addresses, breaks)
    at = 0
    while at < len(rows):
        end, stride = at + 1, len(rows[at])
        if end < len(rows) and rows[end][0] > rows[at][0]:
            stride = int(rows[end][0] - rows[at][0])
            while (
                end < len(rows)
                and len(rows[end]) == len(rows[at])
                and rows[end][0] - rows[end - 1][0] == stride
            ):
                end += 1
        yield (
            replace(
                load,
                dram_base=int(rows[at][0]),
                y_size=end - at,
                x_size=len(rows[at]),
                x_stride=stride if end - at > 1 else len(rows[at]),
            ),
            taker.source,
        )
        at = end
