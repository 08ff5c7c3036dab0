"""The tiles that each instruction reads and writes.

A transfer's address determines its tile. GEMM and ALU instructions have the tiles of their operands' LOADs
and of their accumulators' STOREs.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accel.core.instruction_access import Touch
from accel.core.isa import Alu, Load, Products, Store, Transfer, Unit
from accel.core.scratchpad_specs import SCRATCHPADS, scratchpads_of
from accel.image.image import Image
from accel.image.provenance import Statement
from accel.views.dram_map import DramMap, Tile, merge_tiles

_STORE_OPERANDS = tuple(name for name, pad in SCRATCHPADS.items() if pad.filled_by is Unit.STORE)
_NO_TRANSFER = -1


class Operands(NamedTuple):
    target: tuple[Tile, ...]
    sources: tuple[Tile, ...]

    def __str__(self) -> str:
        target, sources = (", ".join(map(str, tiles)) for tiles in self)
        return f"{target} from {sources}" if target and sources else target or sources


def operands_of(
    image: Image, touches: Sequence[Sequence[Touch]], order: Sequence[int], dram_map: DramMap
) -> list[Operands]:
    """Return tiles by instruction. ``order`` is the order of starts."""
    instructions = image.instructions
    tiles = [dram_map.tile(one) if isinstance(one, Transfer) else None for one in instructions]
    sources = _sources(image, touches, order, tiles, dram_map)
    targets = _targets(image, touches, order, tiles, dram_map)
    found = [Operands(targets[n] if tile is None else (tile,), sources[n]) for n, tile in enumerate(tiles)]
    if image.provenance is None:
        return found
    return [_with_provenance(one, image.provenance[n]) for n, one in enumerate(found)]


def _with_provenance(found: Operands, statement: Statement) -> Operands:
    if statement.kind not in ("intrinsic", "alu", "clear"):
        return found
    return Operands(_tiles_of(found.target, (statement.tensor,)), _tiles_of(found.sources, statement.reads))


def _tiles_of(tiles: tuple[Tile, ...], names: Sequence[str]) -> tuple[Tile, ...]:
    matching = tuple(tile for tile in tiles if tile.name.partition(".")[0] in names)
    if tiles and not matching:
        return tiles
    known = {tile.name.partition(".")[0] for tile in matching}
    return matching + tuple(Tile(name, ()) for name in names if name not in known)


Tiles = Sequence[Tile | None]


def _sources(
    image: Image, touches: Sequence[Sequence[Touch]], order: Sequence[int], tiles: Tiles, dram_map: DramMap
) -> list[tuple[Tile, ...]]:
    owners = _ElementOwners(image, tiles, dram_map)
    found: list[tuple[Tile, ...]] = [()] * len(tiles)
    for index in order:
        one = image.instructions[index]
        if isinstance(one, Load):
            owners.assign(touches[index], index)
        elif isinstance(one, Store):
            found[index] = owners.tiles_of(t for t in touches[index] if t.memory in _STORE_OPERANDS)
        elif isinstance(one, Products | Alu):
            reads = [t for t in touches[index] if not t.write and t.memory in ("inp", "wgt")]
            if isinstance(one, Alu) and not one.use_imm:
                reads = [t for t in touches[index] if not t.write and t.memory == "acc"][-1:]
            found[index] = owners.tiles_of(reads)
            if isinstance(one, Products) and not one.accumulates:
                owners.assign([t for t in touches[index] if t.write], _NO_TRANSFER)
    return found


def _targets(
    image: Image, touches: Sequence[Sequence[Touch]], order: Sequence[int], tiles: Tiles, dram_map: DramMap
) -> list[tuple[Tile, ...]]:
    owners = _ElementOwners(image, tiles, dram_map)
    found: list[tuple[Tile, ...]] = [()] * len(tiles)
    for index in reversed(order):
        one = image.instructions[index]
        written = [t for t in touches[index] if t.write and t.memory == "acc"]
        if isinstance(one, Store):
            owners.assign(touches[index], index)
        else:
            found[index] = owners.tiles_of(written)
            if isinstance(one, Load) or (isinstance(one, Products) and not one.accumulates):
                owners.assign(written, _NO_TRANSFER)
    return found


class _ElementOwners:
    """Which transfer filled or will store each scratchpad element."""

    def __init__(self, image: Image, tiles: Tiles, dram_map: DramMap) -> None:
        self._instructions = image.instructions
        self._tiles = tiles
        self._dram_map = dram_map
        self._owners: dict[str, npt.NDArray[np.int64]] = {
            name: np.full(getattr(image.config, f"{name}_depth"), _NO_TRANSFER, dtype=np.int64)
            for name in scratchpads_of(image.config)
        }

    def assign(self, touches: Iterable[Touch], transfer: int) -> None:
        for touch in touches:
            self._owners[touch.memory][touch.elements] = transfer

    def tiles_of(self, touches: Iterable[Touch]) -> tuple[Tile, ...]:
        found: list[Tile] = []
        for touch in touches:
            owners = self._owners[touch.memory][touch.elements]
            for index in _distinct(owners):
                tile = None if index < 0 else self._owned_tile(index, touch, owners)
                if tile is not None:
                    found.append(tile)
        return merge_tiles(found)

    def _owned_tile(self, index: int, touch: Touch, owners: npt.NDArray[np.int64]) -> Tile | None:
        transfer, tile = self._instructions[index], self._tiles[index]
        is_owned = owners == index
        if (
            tile is None
            or not isinstance(transfer, Transfer)
            or int(is_owned.sum()) == transfer.sram_elements
        ):
            return tile
        elements = touch.elements
        numbers = np.arange(elements.start, elements.stop) if isinstance(elements, slice) else elements
        return self._dram_map.tile_of_elements(transfer, numbers[is_owned])


def _distinct(values: npt.NDArray[np.int64]) -> list[int]:
    if (
        not len(values) or (values[0] == values).all()
    ):  # faster than np.unique for the usual case of one value
        values = values[:1]
    return [int(value) for value in np.unique(values)]
