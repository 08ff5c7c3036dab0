"""A map of DRAM."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accel.assembly.symbolic_names import places
from accel.core.fault_causes import dram_element_bytes, dram_span, instruction_fault
from accel.core.instruction_access import dram_rows
from accel.core.isa import Instruction, Load, Transfer
from accel.core.scratchpad_specs import UOP, Route
from accel.image.dram_references import Part
from accel.image.image import Image, ImageTensor
from accel.image.packed_layout import PackedLayout

MICRO_OPS = "micro-ops"
DRAM = "dram"
_MAX_CACHED_BOXES = 1 << 16
Box = tuple[tuple[int, int], ...]


class Tile(NamedTuple):
    """A box of a tensor, for example ``A[0:64, 0:16]``.

    A region has an empty box. Unnamed DRAM has a range of addresses and an ``area``: a part of the program,
    for example its constants, or addresses.
    """

    name: str
    box: Box
    area: str = ""

    def __str__(self) -> str:
        if self.area:
            ((first, last),) = self.box
            return f"{self.name}[{first:#x}:{last + 1:#x}]"
        ranges = ", ".join(f"{a}:{b + 1}" if b > a else f"{a}" for a, b in self.box)
        return f"{self.name}[{ranges}]" if ranges else self.name


def merge_tiles(tiles: Iterable[Tile]) -> tuple[Tile, ...]:
    """Return the smallest box around the tiles of each tensor or area."""
    found: dict[tuple[str, str], Box] = {}
    for name, box, area in tiles:
        old = found.get((name, area), box)
        found[name, area] = tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(old, box, strict=True))
    return tuple(Tile(name, box, area) for (name, area), box in found.items())


class DramMap:
    """Finds the tensor, region or unnamed area at a DRAM address.

    An area is a contiguous range of unnamed bytes of transfers of one scratchpad.
    """

    def __init__(self, image: Image) -> None:
        self._config = image.config
        tensors = {tensor.offset: tensor for tensor in image.tensors}
        named = sorted((offset, nbytes, name) for name, (offset, nbytes) in places(image).items())
        self._starts = [offset for offset, _, _ in named]
        self._named = [(*one, tensors.get(one[0])) for one in named]
        self._references = () if image.references is None else image.references.parts
        self._box = lru_cache(maxsize=_MAX_CACHED_BOXES)(box_of_rows)
        self._areas = self._unnamed_areas(image.instructions)

    def named_parts(self) -> list[tuple[str, str, int]]:
        return [
            (name, "region" if tensor is None else tensor.role, nbytes)
            for _, nbytes, name, tensor in self._named
        ]

    def unnamed_parts(self) -> list[tuple[str, str, int]]:
        """Return label, scratchpads and bytes. A part of the program is one area."""
        pads: dict[tuple[int, int], list[str]] = {}
        for name, (starts, stops) in self._areas.items():
            for span in zip(starts, stops, strict=True):
                pads.setdefault(span, []).append(name.lower())
        found: dict[str, tuple[dict[str, None], int]] = {}
        for (start, stop), names in sorted(pads.items()):
            label = self._label(start, stop)
            known, nbytes = found.get(label, ({}, 0))
            found[label] = (known | dict.fromkeys(names), nbytes + stop - start)
        return [(label, ", ".join(names), nbytes) for label, (names, nbytes) in found.items()]

    def _label(self, start: int, stop: int) -> str:
        first, last = (one - self._config.mem_base for one in (start, stop - 1))
        part = self._reference(first)
        return part.name if part is not None and part.name and last < part.stop else _area(start, stop)

    def _reference(self, offset: int) -> Part | None:
        return next((part for part in self._references if part.offset <= offset < part.stop), None)

    def tile(self, transfer: Transfer) -> Tile | None:
        if instruction_fault(transfer, self._config) is not None:
            return None
        rows = dram_rows(transfer, self._config)
        if rows is None:
            return None
        found = self._named_part(rows.start - self._config.mem_base)
        if found is not None:
            start, name, tensor = found
            if tensor is None:
                return Tile(name, ())
            size = np.dtype(tensor.dtype).itemsize
            offset = (rows.start - self._config.mem_base - start) // size
            length, stride = -(-rows.row_bytes // size), rows.stride // size
            return Tile(name, self._box(tensor.layout, offset, rows.rows, length, stride))
        if _route(transfer).scratchpad is UOP:
            return Tile(MICRO_OPS, ())
        return self._addresses(transfer, *dram_span(transfer, self._config))

    def tile_of_elements(self, transfer: Transfer, elements: npt.NDArray[np.intp]) -> Tile | None:
        """Return the box around scratchpad elements, or None if all are padding."""
        y, x = np.divmod(elements - transfer.sram_base, transfer.width)
        if isinstance(transfer, Load):
            y, x = y - transfer.y_pad_0, x - transfer.x_pad_0
        inside = (y >= 0) & (y < transfer.y_size) & (x >= 0) & (x < transfer.x_size)
        if not inside.any():
            return None
        size = dram_element_bytes(transfer, self._config)
        offsets = (transfer.dram_base + y[inside] * transfer.x_stride + x[inside]) * size
        found = self._named_part(transfer.dram_base * size)
        if found is None:
            low, high = int(offsets.min()), int(offsets.max()) + size
            return self._addresses(transfer, self._config.mem_base + low, self._config.mem_base + high)
        start, name, tensor = found
        if tensor is None:
            return Tile(name, ())
        value = np.dtype(tensor.dtype).itemsize
        return Tile(name, _box_of_runs(tensor.layout, (offsets - start) // value, -(-size // value)))

    def _named_part(self, offset: int) -> tuple[int, str, ImageTensor | None] | None:
        number = bisect_right(self._starts, offset) - 1
        if number < 0:
            return None
        start, nbytes, name, tensor = self._named[number]
        return (start, name, tensor) if offset < start + nbytes else None

    def _addresses(self, transfer: Transfer, start: int, stop: int) -> Tile:
        starts, stops = self._areas[_route(transfer).name]
        number = bisect_right(starts, start) - 1
        offset = start - self._config.mem_base
        part = self._reference(offset)
        name = DRAM if part is None else part.name
        return Tile(name, ((start, stop - 1),), self._label(starts[number], stops[number]))

    def _unnamed_areas(self, instructions: Sequence[Instruction]) -> dict[str, tuple[list[int], list[int]]]:
        spans: dict[str, set[tuple[int, int]]] = {}
        for one in instructions:
            if not isinstance(one, Transfer) or instruction_fault(one, self._config) is not None:
                continue
            if dram_rows(one, self._config) is None or _route(one).scratchpad is UOP:
                continue
            start, stop = dram_span(one, self._config)
            if self._named_part(start - self._config.mem_base) is None:
                spans.setdefault(_route(one).name, set()).add((start, stop))
        return {name: _joined_spans(found) for name, found in sorted(spans.items())}


def _joined_spans(spans: Iterable[tuple[int, int]]) -> tuple[list[int], list[int]]:
    starts: list[int] = []
    stops: list[int] = []
    for start, stop in sorted(spans):
        if stops and start <= stops[-1]:
            stops[-1] = max(stops[-1], stop)
        else:
            starts.append(start)
            stops.append(stop)
    return starts, stops


def _route(transfer: Transfer) -> Route:
    assert transfer.route is not None, "only a transfer at fault has no route"
    return transfer.route


def _area(start: int, stop: int) -> str:
    return f"{start:#x}..{stop - 1:#x}"


def box_of_rows(layout: PackedLayout, first: int, rows: int, length: int, stride: int) -> Box:
    """Return the box in the unpacked tensor around rows of the packed one.

    Lengths, strides and ``first`` count packed values.
    """
    if stride == length:
        rows, length = 1, rows * length
    return _box_of_runs(layout, first + np.arange(rows, dtype=np.int64) * stride, length)


def _box_of_runs(layout: PackedLayout, starts: npt.NDArray[np.int64], length: int) -> Box:
    last = prod(layout.packed) - 1
    low = np.stack(np.unravel_index(np.minimum(starts, last), layout.packed))
    high = np.stack(np.unravel_index(np.minimum(starts + length - 1, last), layout.packed))
    # a run that crosses a boundary of a dimension covers all later dimensions
    is_whole = np.cumsum(low != high, axis=0) - (low != high) > 0
    low[is_whole] = 0
    high = np.where(is_whole, np.array(layout.packed)[:, None] - 1, high)
    begin, end = low.min(axis=1).tolist(), high.max(axis=1).tolist()
    return tuple(
        (
            min(size - 1, sum(c * n for c, n in zip(row, begin, strict=True))),
            min(size - 1, sum(c * n for c, n in zip(row, end, strict=True))),
        )
        for size, row in zip(layout.shape, layout.coefficients, strict=True)
    )
