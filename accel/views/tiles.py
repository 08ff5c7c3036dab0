"""Which part of which tensor an instruction works on.

A transfer's address says it. Which tensors a GEMM or ALU instruction works on is known of programs that say
where their instructions come from; which part of them follows from what was loaded into the elements that it
reads, and from where the accumulators that it writes are stored later.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accel.assembly.names import places
from accel.core.access import Touch, dram_rows
from accel.core.faults import dram_element_bytes, dram_span, instruction_fault
from accel.core.isa import Alu, Instruction, Load, Products, Store, Transfer, Unit
from accel.core.memories import SCRATCHPADS, UOP, Route, scratchpads_of
from accel.image.image import Image, ImageTensor
from accel.image.layout import PackedLayout
from accel.image.provenance import Statement

_STORE_OPERANDS = tuple(name for name, pad in SCRATCHPADS.items() if pad.filled_by is Unit.STORE)
MICRO_OPS = "micro-ops"
DRAM = "dram"
"""In place of a name where there is none."""
_NOTHING = -1
Box = tuple[tuple[int, int], ...]
"""First and last index of each dimension."""


class Tile(NamedTuple):
    """A box of a tensor; without a box, something in DRAM by its name; of an area without one, addresses."""

    name: str
    box: Box
    area: str = ""

    def __str__(self) -> str:
        if self.area:
            ((first, last),) = self.box
            return f"{self.name}[{first:#x}:{last + 1:#x}]"
        ranges = ", ".join(f"{a}:{b + 1}" if b > a else f"{a}" for a, b in self.box)
        return f"{self.name}[{ranges}]" if ranges else self.name


def joined(tiles: Iterable[Tile]) -> tuple[Tile, ...]:
    """One tile for each name or area, which holds all of that."""
    found: dict[tuple[str, str], Box] = {}
    for name, box, area in tiles:
        old = found.get((name, area), box)
        found[name, area] = tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(old, box, strict=True))
    return tuple(Tile(name, box, area) for (name, area), box in found.items())


class Places:
    """What lies where in DRAM."""

    def __init__(self, image: Image) -> None:
        self._config = image.config
        tensors = {tensor.offset: tensor for tensor in image.tensors}
        named = sorted((offset, nbytes, name) for name, (offset, nbytes) in places(image).items())
        self._starts = [offset for offset, _, _ in named]
        self._named = [(*one, tensors.get(one[0])) for one in named]
        self._parts = () if image.references is None else image.references.parts
        self._box = lru_cache(maxsize=1 << 16)(_box)
        self._areas = self._nameless(image.instructions)

    def contents(self) -> list[tuple[str, str, int]]:
        """Name, role and bytes of what has a name, in order."""
        return [
            (name, "region" if tensor is None else tensor.role, nbytes)
            for _, nbytes, name, tensor in self._named
        ]

    def areas(self) -> list[tuple[str, str, int]]:
        """Addresses, what is moved there and bytes of what has no name, in order."""
        kinds: dict[tuple[int, int], list[str]] = {}
        for name, (starts, stops) in self._areas.items():
            for span in zip(starts, stops, strict=True):
                kinds.setdefault(span, []).append(name.lower())
        return [(_area(a, b), ", ".join(found), b - a) for (a, b), found in sorted(kinds.items())]

    def tile(self, transfer: Transfer) -> Tile | None:
        """The smallest box that holds what a transfer moves; None if it moves nothing or is at fault."""
        if instruction_fault(transfer, self._config) is not None:
            return None
        rows = dram_rows(transfer, self._config)
        if rows is None:
            return None
        found = self._holding(rows.start - self._config.mem_base)
        if found is not None:
            start, name, tensor = found
            if tensor is None:
                return Tile(name, ())
            size = np.dtype(tensor.dtype).itemsize
            offset = (rows.start - self._config.mem_base - start) // size
            length, stride = -(-rows.row_bytes // size), rows.stride // size
            return Tile(name, self._box(tensor.layout, offset, rows.rows, length, stride))
        if _route_of(transfer).scratchpad is UOP:
            return Tile(MICRO_OPS, ())
        return self._addresses(transfer, *dram_span(transfer, self._config))

    def part(self, transfer: Transfer, elements: npt.NDArray[np.intp]) -> Tile | None:
        """The smallest box that holds some of the scratchpad elements of a transfer; None if all of them are
        padding."""
        y, x = np.divmod(elements - transfer.sram_base, transfer.width)
        if isinstance(transfer, Load):
            y, x = y - transfer.y_pad_0, x - transfer.x_pad_0
        inside = (y >= 0) & (y < transfer.y_size) & (x >= 0) & (x < transfer.x_size)
        if not inside.any():
            return None
        size = dram_element_bytes(transfer, self._config)
        offsets = (transfer.dram_base + y[inside] * transfer.x_stride + x[inside]) * size
        found = self._holding(transfer.dram_base * size)
        if found is None:
            low, high = int(offsets.min()), int(offsets.max()) + size
            return self._addresses(transfer, self._config.mem_base + low, self._config.mem_base + high)
        start, name, tensor = found
        if tensor is None:
            return Tile(name, ())
        value = np.dtype(tensor.dtype).itemsize
        return Tile(name, _box_of(tensor.layout, (offsets - start) // value, -(-size // value)))

    def _holding(self, offset: int) -> tuple[int, str, ImageTensor | None] | None:
        """What has a name and holds an offset: where it starts, its name, and the tensor if it is one."""
        place = bisect_right(self._starts, offset) - 1
        if place < 0:
            return None
        start, nbytes, name, tensor = self._named[place]
        return (start, name, tensor) if offset < start + nbytes else None

    def _addresses(self, transfer: Transfer, start: int, stop: int) -> Tile:
        """Bytes in an area that has no name."""
        starts, stops = self._areas[_route_of(transfer).name]
        place = bisect_right(starts, start) - 1
        offset = start - self._config.mem_base
        name = next((part.name for part in self._parts if part.offset <= offset < part.stop), DRAM)
        return Tile(name, ((start, stop - 1),), _area(starts[place], stops[place]))

    def _nameless(self, instructions: Sequence[Instruction]) -> dict[str, tuple[list[int], list[int]]]:
        """By what is moved, where the areas start and stop that such transfers touch and that have no
        name."""
        spans: dict[str, set[tuple[int, int]]] = {}
        for one in instructions:
            if not isinstance(one, Transfer) or instruction_fault(one, self._config) is not None:
                continue
            if dram_rows(one, self._config) is None or _route_of(one).scratchpad is UOP:
                continue
            start, stop = dram_span(one, self._config)
            if self._holding(start - self._config.mem_base) is None:
                spans.setdefault(_route_of(one).name, set()).add((start, stop))
        areas = {}
        for name, found in sorted(spans.items()):
            starts: list[int] = []
            stops: list[int] = []
            for start, stop in sorted(found):
                if stops and start <= stops[-1]:
                    stops[-1] = max(stops[-1], stop)
                else:
                    starts.append(start)
                    stops.append(stop)
            areas[name] = (starts, stops)
        return areas


def _route_of(transfer: Transfer) -> Route:
    """What the memory id of a transfer that is not at fault stands for."""
    assert transfer.route is not None
    return transfer.route


def _area(start: int, stop: int) -> str:
    return f"{start:#x}..{stop - 1:#x}"


def _box(layout: PackedLayout, first: int, rows: int, length: int, stride: int) -> Box:
    """The box of the plain tensor that holds ``rows`` runs of the packed one."""
    if stride == length:
        rows, length = 1, rows * length
    return _box_of(layout, first + np.arange(rows, dtype=np.int64) * stride, length)


def _box_of(layout: PackedLayout, starts: npt.NDArray[np.int64], length: int) -> Box:
    """The box of the plain tensor that holds the runs of the packed one that begin at ``starts``."""
    last = prod(layout.packed) - 1
    low = np.stack(np.unravel_index(np.minimum(starts, last), layout.packed))
    high = np.stack(np.unravel_index(np.minimum(starts + length - 1, last), layout.packed))
    carried = np.cumsum(low != high, axis=0) - (low != high) > 0
    low[carried] = 0
    high = np.where(carried, np.array(layout.packed)[:, None] - 1, high)
    begin, end = low.min(axis=1).tolist(), high.max(axis=1).tolist()
    return tuple(
        (
            min(size - 1, sum(c * n for c, n in zip(row, begin, strict=True))),
            min(size - 1, sum(c * n for c, n in zip(row, end, strict=True))),
        )
        for size, row in zip(layout.shape, layout.coefficients, strict=True)
    )


class Work(NamedTuple):
    """What an instruction takes and gives, as far as it is known."""

    target: tuple[Tile, ...]
    sources: tuple[Tile, ...]

    def __str__(self) -> str:
        target, sources = (", ".join(map(str, tiles)) for tiles in self)
        return f"{target} from {sources}" if target and sources else target or sources


def work(image: Image, touches: Sequence[Sequence[Touch]], order: Sequence[int], where: Places) -> list[Work]:
    """The tiles that each instruction works on.

    Args:
        image: the program.
        touches: of each instruction.
        order: in which they started.
        where: what lies where in DRAM.
    """
    instructions = image.instructions
    tiles = [where.tile(one) if isinstance(one, Transfer) else None for one in instructions]
    sources = _sources(image, touches, order, tiles, where)
    targets = _targets(image, touches, order, tiles, where)
    found = [Work(targets[n] if tile is None else (tile,), sources[n]) for n, tile in enumerate(tiles)]
    if image.provenance is None:
        return found
    return [_as_said(one, image.provenance[n]) for n, one in enumerate(found)]


def _as_said(found: Work, statement: Statement) -> Work:
    """What a GEMM or ALU instruction works on, with the tensors that its statement names."""
    if statement.kind not in ("intrinsic", "alu", "clear"):
        return found
    return Work(_named(found.target, (statement.tensor,)), _named(found.sources, statement.reads))


def _named(tiles: tuple[Tile, ...], names: Sequence[str]) -> tuple[Tile, ...]:
    """The tiles of these tensors; a name alone where no part is known."""
    kept = tuple(tile for tile in tiles if tile.name.partition(".")[0] in names)
    if tiles and not kept:
        return tiles
    known = {tile.name.partition(".")[0] for tile in kept}
    return kept + tuple(Tile(name, ()) for name in names if name not in known)


Tiles = Sequence[Tile | None]


def _sources(
    image: Image, touches: Sequence[Sequence[Touch]], order: Sequence[int], tiles: Tiles, where: Places
) -> list[tuple[Tile, ...]]:
    """What was loaded into the elements that each GEMM and ALU instruction reads, and each STORE of what only
    the store unit reads."""
    owners = _Owners(image, tiles, where)
    found: list[tuple[Tile, ...]] = [()] * len(tiles)
    for index in order:
        one = image.instructions[index]
        if isinstance(one, Load):
            owners.own(touches[index], index)
        elif isinstance(one, Store):
            found[index] = owners.of(t for t in touches[index] if t.memory in _STORE_OPERANDS)
        elif isinstance(one, Products | Alu):
            reads = [t for t in touches[index] if not t.write and t.memory in ("inp", "wgt")]
            if isinstance(one, Alu) and not one.use_imm:
                reads = [t for t in touches[index] if not t.write and t.memory == "acc"][-1:]
            found[index] = owners.of(reads)
            if isinstance(one, Products) and not one.accumulates:
                owners.own([t for t in touches[index] if t.write], _NOTHING)
    return found


def _targets(
    image: Image, touches: Sequence[Sequence[Touch]], order: Sequence[int], tiles: Tiles, where: Places
) -> list[tuple[Tile, ...]]:
    """Where the accumulators that each GEMM and ALU instruction writes are stored."""
    owners = _Owners(image, tiles, where)
    found: list[tuple[Tile, ...]] = [()] * len(tiles)
    for index in reversed(order):
        one = image.instructions[index]
        written = [t for t in touches[index] if t.write and t.memory == "acc"]
        if isinstance(one, Store):
            owners.own(touches[index], index)
        elif isinstance(one, Load) or (isinstance(one, Products) and not one.accumulates):
            found[index] = owners.of(written)
            owners.own(written, _NOTHING)
        else:
            found[index] = owners.of(written)
    return found


class _Owners:
    """For every scratchpad element, the transfer that it belongs to."""

    def __init__(self, image: Image, tiles: Tiles, where: Places) -> None:
        self._instructions = image.instructions
        self._tiles = tiles
        self._where = where
        self._owners: dict[str, npt.NDArray[np.int64]] = {
            name: np.full(getattr(image.config, f"{name}_depth"), _NOTHING, dtype=np.int64)
            for name in scratchpads_of(image.config)
        }

    def own(self, touches: Iterable[Touch], index: int) -> None:
        """The elements belong to this transfer from now on."""
        for touch in touches:
            self._owners[touch.memory][touch.elements] = index

    def of(self, touches: Iterable[Touch]) -> tuple[Tile, ...]:
        """What the elements hold of what those to whom they belong have moved."""
        found: list[Tile] = []
        for touch in touches:
            owners = self._owners[touch.memory][touch.elements]
            for index in _distinct(owners):
                tile = None if index < 0 else self._part(index, touch, owners)
                if tile is not None:
                    found.append(tile)
        return joined(found)

    def _part(self, index: int, touch: Touch, owners: npt.NDArray[np.int64]) -> Tile | None:
        """What a transfer has moved to or from those of the elements that belong to it."""
        one, tile = self._instructions[index], self._tiles[index]
        mine = owners == index
        if tile is None or not isinstance(one, Transfer) or int(mine.sum()) == one.sram_elements:
            return tile
        elements = touch.elements
        numbers = np.arange(elements.start, elements.stop) if isinstance(elements, slice) else elements
        return self._where.part(one, numbers[mine])


def _distinct(values: npt.NDArray[np.int64]) -> list[int]:
    if not len(values) or (values[0] == values).all():
        values = values[:1]
    return [int(value) for value in np.unique(values)]
