"""Exchanges: rows of elements that change their places between two layers.

No instruction moves a value from one row of an element to another: products keep rows apart, and transfers
move whole elements. But an element of activations has as many bytes as one of weights, where blocks are
cubes, and a product with weights X and the unit matrix is X transposed. A second product of that, with a
matrix that chooses rows, is made of rows of several elements, each where it is wanted:

    T = I X'            LOAD.WGT X, MAC, STORE.OUT T
    Y = sum S T' = S X  LOAD.WGT T, MAC for each S, STORE.OUT Y

The first product alone is what a turned layout is made of. Only the low bytes are stored, so that what the
bytes mean does not matter. Lines beyond the picture are one more product, of the rows that they lie in and an
element that has their value.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from accel.base.errors import ScheduleError
from accel.core.config import Config
from accel.core.isa import Instruction, Load, Mac, Memory, SetInp, Store, encode_uops
from accel.network.layout import Layout, Picture

SOURCE, TARGET, TURNED, ROWS, FILL, UOPS = "source", "target", "turned", "rows", "fill", "uops"
"""What instructions of an exchange move: elements of either layout, transposed ones, and constants."""
_CHUNK = 48
"""Elements that are on their way at once, about: enough to hide latencies, few enough to overlap."""
_SLOTS = 4
"""Of scratchpads: two of transposed elements and two of results, in turn."""


def can_exchange(config: Config) -> bool:
    """Whether a machine can move rows: its elements of activations and weights are alike, and it has MACs."""
    return bool(config.post) and config.batch == config.block_in == config.block_out > 1


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """What fills a tensor's layout from another one.

    Attributes:
        config: the machine.
        picture: whose layouts they are.
        source: that a layer has written; of lines above and below strips nothing is taken.
        target: that is to be filled.
        in_place: whether the target is the source, whose lines above and below strips are to be filled.
    """

    config: Config
    picture: Picture
    source: Layout
    target: Layout
    in_place: bool = False

    @cached_property
    def filled(self) -> tuple[int, ...]:
        """The target's lines that are filled."""
        own = range(self.target.above, self.target.above + self.target.lines)
        return tuple(line for line in range(self.target.height) if not (self.in_place and line in own))

    @cached_property
    def shifting(self) -> npt.NDArray[np.int8]:
        """The matrix by which a product adds the same to all values of an element."""
        found = np.zeros((self.config.batch, self.config.block_in), dtype=np.int8)
        found[:, 0] = 1
        return found

    @cached_property
    def terms(self) -> list[dict[int | None, npt.NDArray[np.int8]]]:
        """For each of the lines that are filled: by the source's line, None where it is none, a matrix whose
        ones say which of its rows goes to which row."""
        size, found = self.config.batch, []
        for line in self.filled:
            terms: dict[int | None, npt.NDArray[np.int8]] = {}
            for number in range(self.picture.pictures):
                for strip in range(self.target.strips):
                    pixel = strip * self.target.lines + line - self.target.above
                    row = number * self.target.strips + strip
                    if 0 <= pixel < self.picture.height:
                        own, inside = divmod(pixel, self.source.lines)
                        place, column = inside + self.source.above, number * self.source.strips + own
                    else:
                        place, column = None, 0
                    terms.setdefault(place, np.zeros((size, size), dtype=np.int8))[row, column] = 1
            found.append(terms)
        return found

    @cached_property
    def taken(self) -> list[int]:
        """The source's lines that are taken."""
        if self.target.turned:
            return [line + self.source.above for line in self.filled]
        return sorted({line for terms in self.terms for line in terms if line is not None})

    @cached_property
    def matrices(self) -> list[npt.NDArray[np.int8]]:
        """The unit matrix, and those of the terms, each once."""
        found = {one.tobytes(): one for one in [np.eye(self.config.batch, dtype=np.int8)]}
        if self.target.turned:
            found[self.shifting.tobytes()] = self.shifting
        else:
            found |= {one.tobytes(): one for terms in self.terms for one in terms.values()}
        return list(found.values())

    @cached_property
    def chunks(self) -> list[tuple[range, range]]:
        """Blocks and columns that are exchanged together.

        Raises:
            ScheduleError: a column of a block does not fit, or other strips are to be turned.
        """
        strips = (self.source.strips, self.source.lines)
        if self.target.turned and strips != (self.target.strips, self.target.lines):
            raise ScheduleError("a layout is turned that has other strips")
        lines = max(len(self.taken), len(self.filled))
        most = min((self.config.wgt_depth - 1) // _SLOTS, self.config.acc_depth // _SLOTS)
        if lines > most:
            raise ScheduleError(f"{lines} lines of a layout do not fit into the scratchpads at once")
        uops = 2 + 4 * sum(map(len, [] if self.target.turned else self.terms)) + 2 * lines
        if len(self.matrices) > self.config.inp_depth or uops > self.config.uop_depth:
            raise ScheduleError(f"what an exchange of {lines} lines needs does not fit into the scratchpads")
        room = min(most, max(_CHUNK, lines))
        blocks, width = self.picture.blocks, self.picture.width
        if lines * width > room:
            columns = _even(width, room // lines)
            return [(range(block, block + 1), one) for block in range(blocks) for one in columns]
        return [(one, range(width)) for one in _even(blocks, room // (lines * width))]

    @property
    def _turned(self) -> int:
        """Elements that are transposed."""
        return len(self.taken) * self.picture.blocks * self.picture.width

    @property
    def room(self) -> int:
        """Elements that need room meanwhile: transposed ones."""
        return 0 if self.target.turned else self._turned

    @cached_property
    def constants(self) -> dict[str, bytes]:
        """What must lie in DRAM, by name; micro-ops are those of :data:`UOPS`."""
        fill = np.zeros((self.config.block_out, self.config.block_in), dtype=np.uint8)
        fill[:, 0] = (self.target.shift if self.target.turned else self.target.fill) % 256
        words = encode_uops(self._plan.uops, self.config)
        return {
            ROWS: np.stack(self.matrices).tobytes(),
            FILL: fill.tobytes(),
            UOPS: words.astype("<u4").tobytes(),
        }

    @cached_property
    def _plan(self) -> "_Plan":
        return _Plan(self)

    def instructions(self, offsets: Mapping[str, int]) -> list[tuple[Instruction, str]]:
        """The exchange as instructions without tokens, each with the name of what it moves, empty if nothing.

        Args:
            offsets: where these things lie, in bytes from the start of the window.
        """
        sizes = {UOPS: 4}
        found: list[tuple[Instruction, str]] = []
        for one, part in self._plan.steps:
            if isinstance(one, Load | Store):
                size = sizes.get(part, self.config.out_element_bytes)
                base = offsets[part] // size
                found.append((replace(one, dram_base=base + one.dram_base), part))
            else:
                found.append((one, part))
        return found

    @cached_property
    def cycles(self) -> int:
        """Cycles that it is predicted to take: that of the first chunk step after step, then what is slowest.

        Raises:
            ScheduleError: it does not fit the scratchpads.
        """
        config, columns, count = self.config, self.picture.blocks * self.picture.width, len(self.chunks)
        beats = -(-config.out_element_bytes // config.bus_bytes)
        made = len(self.filled) * columns
        if self.target.turned:
            products = self._turned * (2 if self.target.shift else 1)
            loads = stores = self._turned * beats
            latency = 3 * config.read_latency + config.write_latency
        else:
            products = self._turned + sum(map(len, self.terms)) * columns
            loads, stores = 2 * self._turned * beats, (self._turned + made) * beats
            latency = 4 * config.read_latency + 2 * config.write_latency
        steady = max(products, loads, stores) * (count - 1)
        return latency + (products + loads + stores + steady) // count


class _Plan:
    """The instructions of an exchange, with DRAM counted from the start of what they move, and micro-ops.

    Scratchpads are filled from their ends, so that what layers have at the start may stay there.

    Attributes:
        steps: instructions, each with the name of what it moves, empty if nothing.
        uops: rows (dst, src, wgt).
    """

    def __init__(self, exchange: Exchange) -> None:
        self._source, self._target = exchange.source, exchange.target
        self._blocks, self._width = exchange.picture.blocks, exchange.picture.width
        self._lines, self._filled = exchange.taken, exchange.filled
        self._terms, self._chunks = exchange.terms, exchange.chunks
        config, matrices = exchange.config, exchange.matrices
        self._first = config.inp_depth - len(matrices)
        self._inp = {one.tobytes(): self._first + n for n, one in enumerate(matrices)}
        self._shifting = self._inp.get(exchange.shifting.tobytes(), 0)
        most = max(len(blocks) * len(columns) for blocks, columns in self._chunks)
        turned, made = most * len(self._lines), most * max(len(self._lines), len(self._filled))
        self._fill = config.wgt_depth - 1
        self._wgt = [self._fill - (slot + 1) * turned for slot in range(_SLOTS)]
        self._acc = [config.acc_depth - (slot + 1) * made for slot in range(_SLOTS)]
        sizes = [len(blocks) * len(columns) * len(self._lines) for blocks, columns in self._chunks]
        self._begins = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        self._ranges: dict[tuple[object, ...], tuple[int, int]] = {}
        self.uops: list[tuple[int, int, int]] = []
        body = list(self._turned() if self._target.turned else self._chosen())
        base = config.uop_depth - len(self.uops)
        self.steps: list[tuple[Instruction, str]] = [
            (SetInp(), ""),
            (_whole(Memory.INP, self._first, len(matrices)), ROWS),
            (_whole(Memory.WGT, self._fill, 1), FILL),
            (_whole(Memory.UOP, base, len(self.uops)), UOPS),
            *((_with_uops(one, base), part) for one, part in body),
        ]

    def _turned(self) -> Iterator[tuple[Instruction, str]]:
        """Elements are transposed, and that is all."""
        for at, (blocks, columns) in enumerate(self._chunks):
            count, slot = len(blocks) * len(columns), at % 2
            yield from self._loaded(at)
            places = [
                (self._acc[slot] + n * count, self._first, self._wgt[slot] + n * count)
                for n in range(len(self._lines))
            ]
            product = self._product(("turn", slot, count), places, len(columns), overwrite=True)
            yield (
                replace(
                    product,
                    iter_out=len(blocks),
                    dst_factor_out=1,
                    dst_factor_in=len(blocks),
                    wgt_factor_out=len(columns),
                ),
                "",
            )
            if self._target.shift:
                place = [(self._acc[slot], self._shifting, self._fill)]
                shift = self._product(("shift", slot), place, count * len(self._lines), overwrite=False)
                yield replace(shift, wgt_factor_in=0), ""
            for n in range(len(self._lines)):
                yield (
                    Store(
                        sram_base=self._acc[slot] + n * count,
                        dram_base=(n * self._width + columns.start) * self._blocks + blocks.start,
                        y_size=len(columns),
                        x_size=len(blocks),
                        x_stride=self._blocks,
                    ),
                    TARGET,
                )

    def _chosen(self) -> Iterator[tuple[Instruction, str]]:
        """Elements are transposed, and while the next ones are, made into rows that are chosen."""
        yield from self._turn(0)
        for at in range(len(self._chunks)):
            if at + 1 < len(self._chunks):
                yield from self._turn(at + 1)
            yield from self._choose(at)

    def _loaded(self, at: int) -> Iterator[tuple[Instruction, str]]:
        blocks, columns = self._chunks[at]
        for n, line in enumerate(self._lines):
            yield (
                Load(
                    memory=Memory.WGT,
                    sram_base=self._wgt[at % 2] + n * len(blocks) * len(columns),
                    dram_base=(blocks.start * self._source.height + line) * self._width + columns.start,
                    y_size=len(blocks),
                    x_size=len(columns),
                    x_stride=self._source.height * self._width,
                ),
                SOURCE,
            )

    def _turn(self, at: int) -> Iterator[tuple[Instruction, str]]:
        blocks, columns = self._chunks[at]
        slot, whole = at % 2, len(blocks) * len(columns) * len(self._lines)
        yield from self._loaded(at)
        place = [(self._acc[slot], self._first, self._wgt[slot])]
        yield self._product(("turn", slot), place, whole, overwrite=True), ""
        yield (
            Store(
                sram_base=self._acc[slot],
                dram_base=self._begins[at],
                y_size=1,
                x_size=whole,
                x_stride=whole,
            ),
            TURNED,
        )

    def _choose(self, at: int) -> Iterator[tuple[Instruction, str]]:
        blocks, columns = self._chunks[at]
        count, slot = len(blocks) * len(columns), 2 + at % 2
        load = _whole(Memory.WGT, self._wgt[slot], count * len(self._lines))
        yield replace(load, dram_base=self._begins[at]), TURNED
        groups: dict[tuple[bool, bool], list[tuple[int, int, int]]] = {}
        for n, terms in enumerate(self._terms):
            ordered = sorted(terms.items(), key=lambda term: (term[0] is None, term[0] or 0))
            for position, (line, matrix) in enumerate(ordered):
                source = self._fill if line is None else self._wgt[slot] + self._lines.index(line) * count
                uop = self._acc[slot] + n * count, self._inp[matrix.tobytes()], source
                groups.setdefault((position == 0, line is None), []).append(uop)
        for (overwrite, filling), wanted in sorted(groups.items(), reverse=True):
            product = self._product((slot, count, overwrite, filling), wanted, count, overwrite=overwrite)
            yield replace(product, wgt_factor_in=0) if filling else product, ""
        for n, line in enumerate(self._filled):
            yield (
                Store(
                    sram_base=self._acc[slot] + n * count,
                    dram_base=(blocks.start * self._target.height + line) * self._width + columns.start,
                    y_size=len(blocks),
                    x_size=len(columns),
                    x_stride=self._target.height * self._width,
                ),
                TARGET,
            )

    def _product(
        self, key: tuple[object, ...], uops: list[tuple[int, int, int]], count: int, *, overwrite: bool
    ) -> Mac:
        """So many products of each micro-op, one element behind the other; equal keys mean equal ones."""
        if key not in self._ranges:
            self._ranges[key] = len(self.uops), len(self.uops) + len(uops)
            self.uops += uops
        begin, end = self._ranges[key]
        return Mac(
            overwrite=overwrite,
            uop_begin=begin,
            uop_end=end,
            iter_in=count,
            dst_factor_in=1,
            wgt_factor_in=1,
        )


def exchanges(config: Config, picture: Picture, first: Layout, others: Sequence[Layout]) -> list[Exchange]:
    """What fills the layouts of a tensor behind the layer that has written the first one."""
    found = []
    if first.above or first.below:
        found.append(Exchange(config=config, picture=picture, source=first, target=first, in_place=True))
    for other in others:
        found.append(Exchange(config=config, picture=picture, source=first, target=other))
    return found


def _even(whole: int, most: int) -> list[range]:
    """Ranges of at most so many numbers, as long as one another if possible."""
    size = -(-whole // -(-whole // most))
    return [range(begin, min(begin + size, whole)) for begin in range(0, whole, size)]


def _whole(memory: Memory, first: int, count: int) -> Load:
    """A LOAD of so many elements that lie one behind the other."""
    return Load(memory=memory, sram_base=first, dram_base=0, y_size=1, x_size=count, x_stride=count)


def _with_uops(one: Instruction, base: int) -> Instruction:
    """A product whose micro-ops begin behind others."""
    if not isinstance(one, Mac):
        return one
    return replace(one, uop_begin=base + one.uop_begin, uop_end=base + one.uop_end)
