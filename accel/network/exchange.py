"""Exchanges: rows of elements that change their places between two layers.

No instruction moves a value from one row of an element to another: products keep rows apart, and transfers
move whole elements. But an element of activations has as many bytes as one of weights, where blocks are
cubes, and a product with weights X and the unit matrix is X transposed. A second product of that, with a
matrix that chooses rows, is made of rows of several elements, each where it is wanted:

    T = I X'            LOAD.WGT X, MAC, STORE.OUT T
    Y = sum S T' = S X  LOAD.WGT T, MAC for each S, STORE.OUT Y

Only the low bytes are stored, so that what the bytes mean does not matter. Lines beyond the picture are one
more product, of the rows that they lie in and an element that has their value.
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
    def _filled(self) -> tuple[int, ...]:
        """The target's lines that are filled."""
        own = range(self.target.above, self.target.above + self.target.lines)
        return tuple(line for line in range(self.target.height) if not (self.in_place and line in own))

    @cached_property
    def _terms(self) -> list[dict[int | None, npt.NDArray[np.int8]]]:
        """For each of the lines that are filled: by the source's line, None where it is none, a matrix whose
        ones say which of its rows goes to which row."""
        size, found = self.config.batch, []
        for line in self._filled:
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
    def _lines(self) -> list[int]:
        """The source's lines that are taken."""
        return sorted({line for terms in self._terms for line in terms if line is not None})

    @cached_property
    def _matrices(self) -> list[npt.NDArray[np.int8]]:
        """The unit matrix, and those of the terms, each once."""
        found = {one.tobytes(): one for one in [np.eye(self.config.batch, dtype=np.int8)]}
        found |= {one.tobytes(): one for terms in self._terms for one in terms.values()}
        return list(found.values())

    @cached_property
    def _chunks(self) -> list[tuple[range, range]]:
        """Blocks and columns that are exchanged together.

        Raises:
            ScheduleError: a column of a block does not fit.
        """
        lines = max(len(self._lines), len(self._filled))
        most = min((self.config.wgt_depth - 1) // _SLOTS, self.config.acc_depth // _SLOTS)
        if lines > most:
            raise ScheduleError(f"{lines} lines of a layout do not fit into the scratchpads at once")
        room = min(most, max(_CHUNK, lines))
        blocks, width = self.picture.blocks, self.picture.width
        if lines * width > room:
            columns = _even(width, room // lines)
            return [(range(block, block + 1), one) for block in range(blocks) for one in columns]
        return [(one, range(width)) for one in _even(blocks, room // (lines * width))]

    @cached_property
    def turned_elements(self) -> int:
        """Elements that are transposed."""
        return len(self._lines) * self.picture.blocks * self.picture.width

    @cached_property
    def constants(self) -> dict[str, bytes]:
        """What must lie in DRAM, by name; micro-ops are those of :data:`UOPS`."""
        fill = np.zeros((self.config.block_out, self.config.block_in), dtype=np.uint8)
        fill[:, 0] = self.target.fill % 256
        words = encode_uops(self._plan[1], self.config)
        return {
            ROWS: np.stack(self._matrices).tobytes(),
            FILL: fill.tobytes(),
            UOPS: words.astype("<u4").tobytes(),
        }

    @cached_property
    def _plan(self) -> tuple[list[tuple[Instruction, str]], list[tuple[int, int, int]]]:
        """The instructions, with DRAM counted from the start of what they move, and micro-ops."""
        config, width = self.config, self.picture.width
        numbers = {one.tobytes(): n for n, one in enumerate(self._matrices)}
        first = config.inp_depth - len(numbers)
        most = max(len(blocks) * len(columns) for blocks, columns in self._chunks)
        turned, made = most * len(self._lines), most * max(len(self._lines), len(self._filled))
        fill = config.wgt_depth - 1
        wgt = [fill - (slot + 1) * turned for slot in range(_SLOTS)]
        acc = [config.acc_depth - (slot + 1) * made for slot in range(_SLOTS)]
        uops: list[tuple[int, int, int]] = []
        ranges: dict[tuple[object, ...], tuple[int, int]] = {}

        def uop_range(key: tuple[object, ...], wanted: list[tuple[int, int, int]]) -> tuple[int, int]:
            if key not in ranges:
                ranges[key] = len(uops), len(uops) + len(wanted)
                uops.extend(wanted)
            return ranges[key]

        def product(begin: int, end: int, count: int, *, overwrite: bool, filling: bool = False) -> Mac:
            return Mac(
                overwrite=overwrite,
                uop_begin=begin,
                uop_end=end,
                iter_in=count,
                dst_factor_in=1,
                wgt_factor_in=0 if filling else 1,
            )

        def turn(at: int) -> Iterator[tuple[Instruction, str]]:
            blocks, columns = self._chunks[at]
            count, slot = len(blocks) * len(columns), at % 2
            for n, line in enumerate(self._lines):
                yield (
                    Load(
                        memory=Memory.WGT,
                        sram_base=wgt[slot] + n * count,
                        dram_base=(blocks.start * self.source.height + line) * width + columns.start,
                        y_size=len(blocks),
                        x_size=len(columns),
                        x_stride=self.source.height * width,
                    ),
                    SOURCE,
                )
            begin, end = uop_range(("turn", slot), [(acc[slot], first, wgt[slot])])
            yield product(begin, end, count * len(self._lines), overwrite=True), UOPS
            yield (
                Store(
                    sram_base=acc[slot],
                    dram_base=begins[at],
                    y_size=1,
                    x_size=count * len(self._lines),
                    x_stride=count * len(self._lines),
                ),
                TURNED,
            )

        def choose(at: int) -> Iterator[tuple[Instruction, str]]:
            blocks, columns = self._chunks[at]
            count, slot = len(blocks) * len(columns), 2 + at % 2
            whole = count * len(self._lines)
            yield (
                Load(
                    memory=Memory.WGT,
                    sram_base=wgt[slot],
                    dram_base=begins[at],
                    y_size=1,
                    x_size=whole,
                    x_stride=whole,
                ),
                TURNED,
            )
            groups: dict[tuple[bool, bool], list[tuple[int, int, int]]] = {}
            for n, terms in enumerate(self._terms):
                ordered = sorted(terms.items(), key=lambda term: (term[0] is None, term[0] or 0))
                for position, (line, matrix) in enumerate(ordered):
                    source = fill if line is None else wgt[slot] + self._lines.index(line) * count
                    uop = acc[slot] + n * count, first + numbers[matrix.tobytes()], source
                    groups.setdefault((position == 0, line is None), []).append(uop)
            for (overwrite, filling), wanted in sorted(groups.items(), reverse=True):
                begin, end = uop_range((slot, count, overwrite, filling), wanted)
                yield product(begin, end, count, overwrite=overwrite, filling=filling), UOPS
            for n, line in enumerate(self._filled):
                yield (
                    Store(
                        sram_base=acc[slot] + n * count,
                        dram_base=(blocks.start * self.target.height + line) * width + columns.start,
                        y_size=len(blocks),
                        x_size=len(columns),
                        x_stride=self.target.height * width,
                    ),
                    TARGET,
                )

        sizes = [len(blocks) * len(columns) * len(self._lines) for blocks, columns in self._chunks]
        begins = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        body: list[tuple[Instruction, str]] = [*turn(0)]
        for at in range(len(self._chunks)):
            if at + 1 < len(self._chunks):
                body += turn(at + 1)
            body += choose(at)
        if len(uops) > config.uop_depth:
            raise ScheduleError("the micro-ops of an exchange of rows do not fit")
        base = config.uop_depth - len(uops)
        head: list[tuple[Instruction, str]] = [
            (SetInp(), ""),
            (_whole(Memory.INP, first, len(numbers)), ROWS),
            (_whole(Memory.WGT, fill, 1), FILL),
            (_whole(Memory.UOP, base, len(uops)), UOPS),
        ]
        return [
            *head,
            *((_with_uops(one, base), "" if isinstance(one, Mac) else part) for one, part in body),
        ], uops

    def instructions(self, offsets: Mapping[str, int]) -> list[tuple[Instruction, str]]:
        """The exchange as instructions without tokens, each with the name of what it moves, empty if nothing.

        Args:
            offsets: where these things lie, in bytes from the start of the window.
        """
        sizes = {UOPS: 4}
        found: list[tuple[Instruction, str]] = []
        for one, part in self._plan[0]:
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
        config, columns, count = self.config, self.picture.blocks * self.picture.width, len(self._chunks)
        beats = -(-config.out_element_bytes // config.bus_bytes)
        made = len(self._filled) * columns
        products = self.turned_elements + sum(map(len, self._terms)) * columns
        loads, stores = 2 * self.turned_elements * beats, (self.turned_elements + made) * beats
        latency = 4 * config.read_latency + 2 * config.write_latency
        steady = max(products, loads, stores) * (count - 1)
        return latency + (products + loads + stores + steady) // count


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
