"""Which part of which tensor an instruction works on.

A transfer's addresses say it. Of a GEMM or ALU instruction it follows from what was loaded into the elements
that it reads, and from where the accumulators that it writes are stored later.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accel.access import DramRows, Touch, dram_rows
from accel.assembly.names import places
from accel.faults import instruction_fault
from accel.image import Image, ImageTensor
from accel.isa import Alu, Gemm, Load, Memory, Store, Transfer
from accel.layout import PackedLayout

MICRO_OPS = "micro-ops"
ELSEWHERE = "elsewhere"
_NOTHING = -1
Box = tuple[tuple[int, int], ...]
"""First and last index of each dimension."""


class Tile(NamedTuple):
    """A box of a tensor; without a box, something in DRAM by its name."""

    name: str
    box: Box

    def __str__(self) -> str:
        ranges = ", ".join(f"{a}:{b + 1}" if b > a else f"{a}" for a, b in self.box)
        return f"{self.name}[{ranges}]" if ranges else self.name


def joined(tiles: Iterable[Tile]) -> tuple[Tile, ...]:
    """One tile for each name, which holds all of that name."""
    found: dict[str, Box] = {}
    for name, box in tiles:
        old = found.get(name, box)
        found[name] = tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(old, box, strict=True))
    return tuple(Tile(name, box) for name, box in found.items())


class Places:
    """What lies where in DRAM."""

    def __init__(self, image: Image) -> None:
        self._config = image.config
        tensors = {tensor.offset: tensor for tensor in image.tensors}
        named = sorted((offset, nbytes, name) for name, (offset, nbytes) in places(image).items())
        self._starts = [offset for offset, _, _ in named]
        self._named = [(*one, tensors.get(one[0])) for one in named]
        self._box = lru_cache(maxsize=1 << 16)(_box)

    def contents(self) -> list[tuple[str, str, int]]:
        """Name, role and bytes of what has a name, in order."""
        return [
            (name, "region" if tensor is None else tensor.role, nbytes)
            for _, nbytes, name, tensor in self._named
        ]

    def tile(self, transfer: Transfer) -> Tile | None:
        """The smallest box that holds what a transfer moves; None if it moves nothing or is at fault."""
        if instruction_fault(transfer, self._config) is not None:
            return None
        rows = dram_rows(transfer, self._config)
        if rows is None:
            return None
        offset = rows.start - self._config.mem_base
        place = bisect_right(self._starts, offset) - 1
        if place >= 0:
            start, nbytes, name, tensor = self._named[place]
            if offset < start + nbytes:
                return Tile(name, () if tensor is None else self._tensor_box(tensor, offset - start, rows))
        return Tile(MICRO_OPS if transfer.memory == Memory.UOP else ELSEWHERE, ())

    def _tensor_box(self, tensor: ImageTensor, offset: int, rows: DramRows) -> Box:
        size = np.dtype(tensor.dtype).itemsize
        return self._box(
            tensor.layout, offset // size, rows.rows, -(-rows.row_bytes // size), rows.stride // size
        )


def _box(layout: PackedLayout, first: int, rows: int, length: int, stride: int) -> Box:
    """The box of the plain tensor that holds ``rows`` runs of the packed one."""
    if stride == length:
        rows, length = 1, rows * length
    starts = first + np.arange(rows, dtype=np.int64) * stride
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
    sources = _sources(image, touches, order, tiles)
    targets = _targets(image, touches, order, tiles)
    return [
        Work(targets[n], sources[n]) if tile is None else Work((tile,), ()) for n, tile in enumerate(tiles)
    ]


def _sources(
    image: Image, touches: Sequence[Sequence[Touch]], order: Sequence[int], tiles: Sequence[Tile | None]
) -> list[tuple[Tile, ...]]:
    """What was loaded into the elements that each GEMM and ALU instruction reads."""
    owners = _Owners(image, tiles)
    found: list[tuple[Tile, ...]] = [()] * len(tiles)
    for index in order:
        one = image.instructions[index]
        if isinstance(one, Load):
            owners.own(touches[index], index)
        elif isinstance(one, Gemm | Alu):
            reads = [t for t in touches[index] if not t.write and t.memory in ("inp", "wgt")]
            if isinstance(one, Alu) and not one.use_imm:
                reads = [t for t in touches[index] if not t.write and t.memory == "acc"][-1:]
            found[index] = owners.of(reads)
            if isinstance(one, Gemm) and one.reset:
                owners.own([t for t in touches[index] if t.write], _NOTHING)
    return found


def _targets(
    image: Image, touches: Sequence[Sequence[Touch]], order: Sequence[int], tiles: Sequence[Tile | None]
) -> list[tuple[Tile, ...]]:
    """Where the accumulators that each GEMM and ALU instruction writes are stored."""
    owners = _Owners(image, tiles)
    found: list[tuple[Tile, ...]] = [()] * len(tiles)
    for index in reversed(order):
        one = image.instructions[index]
        written = [t for t in touches[index] if t.write and t.memory == "acc"]
        if isinstance(one, Store):
            owners.own(touches[index], index)
        elif isinstance(one, Load) or (isinstance(one, Gemm) and one.reset):
            found[index] = owners.of(written)
            owners.own(written, _NOTHING)
        else:
            found[index] = owners.of(written)
    return found


class _Owners:
    """For every scratchpad element, the transfer that it belongs to."""

    def __init__(self, image: Image, tiles: Sequence[Tile | None]) -> None:
        self._tiles = tiles
        self._owners: dict[str, npt.NDArray[np.int64]] = {
            name: np.full(getattr(image.config, f"{name}_depth"), _NOTHING, dtype=np.int64)
            for name in ("uop", "inp", "wgt", "acc")
        }

    def own(self, touches: Iterable[Touch], index: int) -> None:
        """The elements belong to this transfer from now on."""
        for touch in touches:
            self._owners[touch.memory][touch.elements] = index

    def of(self, touches: Iterable[Touch]) -> tuple[Tile, ...]:
        """The tiles of those to whom the elements belong."""
        found: list[Tile] = []
        for touch in touches:
            owners = self._owners[touch.memory][touch.elements]
            found += [tile for n in _distinct(owners) if n >= 0 and (tile := self._tiles[n]) is not None]
        return joined(found)


def _distinct(values: npt.NDArray[np.int64]) -> list[int]:
    if not len(values) or (values[0] == values).all():
        values = values[:1]
    return [int(value) for value in np.unique(values)]
