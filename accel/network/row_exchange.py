"""Row exchanges: programs that move values between rows of elements, between two layers.

If blocks are cubes, two products do that. The first, of the unit matrix I with weights X, transposes X. The
second, of a 0/1 matrix S with the transposed elements T, selects rows, also of several elements:

    T = I X'                LOAD.WGT X, MAC, STORE.OUT T
    Y = sum of S T' = S X   LOAD.WGT T, one MAC for each S, STORE.OUT Y

The first product alone fills a transposed layout. The store unit keeps the low bytes, so signedness does not
matter. Halo lines outside of the picture take one more product, with the fill value.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.errors import ScheduleError
from accel.base.records import replace
from accel.core.config import Config
from accel.core.isa import Instruction, Load, Mac, Memory, SetInp, SetWgt, Store, encode_uops
from accel.network.strip_layout import PictureSize, StripLayout

SOURCE, TARGET, TRANSPOSED = "source", "target", "transposed"
"""The two layouts, and the transposed elements between the two products."""
MATRICES, FILL, UOPS = "rows", "fill", "uops"
"""Constants of an exchange. Program files use these names for parts of DRAM."""
_CHUNK_ELEMENTS = 48
"""Elements in flight: enough to hide latencies, few enough that chunks overlap."""
_BUFFERS = 4
"""Double buffers for the first and for the second product."""

_Matrix = npt.NDArray[np.int8]


def supports_row_exchange(config: Config) -> bool:
    return bool(config.post) and config.batch == config.block_in == config.block_out > 1


class RowExchange(Struct, frozen=True, kw_only=True, dict=True):
    """Fills one layout of a tensor from another one.

    Attributes:
        source: a written layout, whose halo is not read.
        is_in_place: whether only the source's halo is filled.
    """

    config: Config
    size: PictureSize
    source: StripLayout
    target: StripLayout
    is_in_place: bool = False

    @cached_property
    def written_lines(self) -> tuple[int, ...]:
        inner = range(self.target.halo_above, self.target.halo_above + self.target.lines)
        return tuple(line for line in range(self.target.height) if not (self.is_in_place and line in inner))

    @cached_property
    def shift_matrix(self) -> _Matrix:
        matrix = np.zeros((self.config.batch, self.config.block_in), dtype=np.int8)
        matrix[:, 0] = 1
        return matrix

    @cached_property
    def terms(self) -> list[dict[int | None, _Matrix]]:
        """For each written line, 0/1 matrices (target rows, source rows) by source line, or None for the fill
        value.
        """
        size = self.config.batch
        all_terms = []
        for line in self.written_lines:
            terms: dict[int | None, _Matrix] = {}
            for picture in range(self.size.pictures):
                for strip in range(self.target.strips):
                    first = 0 if self.target.repeated else strip * self.target.lines
                    pixel = first + line - self.target.halo_above
                    row = picture * self.target.strips + strip
                    if 0 <= pixel < self.size.height:
                        source_strip, inner_line = divmod(pixel, self.source.lines)
                        source_line: int | None = inner_line + self.source.halo_above
                        source_row = picture * self.source.strips + source_strip
                    else:
                        source_line, source_row = None, 0
                    matrix = terms.setdefault(source_line, np.zeros((size, size), dtype=np.int8))
                    matrix[row, source_row] = 1
            all_terms.append(terms)
        return all_terms

    @cached_property
    def read_lines(self) -> list[int]:
        if self.target.transposed:
            return [line + self.source.halo_above for line in self.written_lines]
        return sorted({line for terms in self.terms for line in terms if line is not None})

    @cached_property
    def matrices(self) -> list[_Matrix]:
        unique = {one.tobytes(): one for one in [np.eye(self.config.batch, dtype=np.int8)]}
        if self.target.transposed:
            unique[self.shift_matrix.tobytes()] = self.shift_matrix
        else:
            unique |= {one.tobytes(): one for terms in self.terms for one in terms.values()}
        return list(unique.values())

    @cached_property
    def chunks(self) -> list[tuple[range, range]]:
        strips = (self.source.strips, self.source.lines)
        if self.target.transposed and strips != (self.target.strips, self.target.lines):
            raise ScheduleError("a transposed layout has other strips than its source")
        lines = max(len(self.read_lines), len(self.written_lines))
        most = min((self.config.wgt_depth - 1) // _BUFFERS, self.config.acc_depth // _BUFFERS)
        if lines > most:
            raise ScheduleError(f"an exchange has {lines} lines; {most} fit the scratchpads")
        uops = 2 + 4 * sum(map(len, [] if self.target.transposed else self.terms)) + 2 * lines
        if len(self.matrices) > self.config.inp_depth or uops > self.config.uop_depth:
            raise ScheduleError(
                f"an exchange has {len(self.matrices)} matrices and {uops} micro-ops; "
                f"{self.config.inp_depth} and {self.config.uop_depth} fit the scratchpads"
            )
        elements = min(most, max(_CHUNK_ELEMENTS, lines))
        blocks, width = self.size.blocks, self.size.width
        if lines * width > elements:
            columns = _even_ranges(width, elements // lines)
            return [(range(block, block + 1), one) for block in range(blocks) for one in columns]
        return [(one, range(width)) for one in _even_ranges(blocks, elements // (lines * width))]

    @property
    def _read_elements(self) -> int:
        return len(self.read_lines) * self.size.blocks * self.size.width

    @property
    def scratch_elements(self) -> int:
        return 0 if self.target.transposed else self._read_elements

    @cached_property
    def constants(self) -> dict[str, bytes]:
        fill = np.zeros((self.config.block_out, self.config.block_in), dtype=np.uint8)
        fill[:, 0] = (self.target.shift if self.target.transposed else self.target.fill) % 256
        words = encode_uops(self._program.uops, self.config)
        return {
            MATRICES: np.stack(self.matrices).tobytes(),
            FILL: fill.tobytes(),
            UOPS: words.astype("<u4").tobytes(),
        }

    @cached_property
    def _program(self) -> "_ExchangeProgram":
        return _ExchangeProgram(self)

    def instructions(self, offsets: Mapping[str, int]) -> list[tuple[Instruction, str]]:
        """Return instructions without tokens, each with its buffer or constant, or an empty name.

        Args:
            offsets: byte offsets of buffers and constants in the window.
        """
        element_bytes = {UOPS: 4}
        found: list[tuple[Instruction, str]] = []
        for instruction, name in self._program.steps:
            if isinstance(instruction, Load | Store):
                base = offsets[name] // element_bytes.get(name, self.config.out_element_bytes)
                found.append((replace(instruction, dram_base=base + instruction.dram_base), name))
            else:
                found.append((instruction, name))
        return found

    @cached_property
    def cycles(self) -> int:
        """Predicted: all phases of the first chunk, then the slowest phase of each further one."""
        config, columns, count = self.config, self.size.blocks * self.size.width, len(self.chunks)
        beats = -(-config.out_element_bytes // config.bus_bytes)
        written = len(self.written_lines) * columns
        if self.target.transposed:
            products = self._read_elements * (2 if self.target.shift else 1)
            loads = stores = self._read_elements * beats
            latency = 3 * config.read_latency + config.write_latency
        else:
            products = self._read_elements + sum(map(len, self.terms)) * columns
            loads, stores = 2 * self._read_elements * beats, (self._read_elements + written) * beats
            latency = 4 * config.read_latency + 2 * config.write_latency
        steady = max(products, loads, stores) * (count - 1)
        return latency + (products + loads + stores + steady) // count


class _ExchangeProgram:
    """The instructions and micro-ops of an exchange, with addresses relative to each buffer.

    They use the ends of the scratchpads. A layer's first data can stay at the beginnings.
    """

    def __init__(self, exchange: RowExchange) -> None:
        self._source, self._target = exchange.source, exchange.target
        self._blocks, self._width = exchange.size.blocks, exchange.size.width
        self._read_lines, self._written_lines = exchange.read_lines, exchange.written_lines
        self._terms, self._chunks = exchange.terms, exchange.chunks
        config, matrices = exchange.config, exchange.matrices
        self._unit_matrix = config.inp_depth - len(matrices)
        self._matrix_index = {one.tobytes(): self._unit_matrix + n for n, one in enumerate(matrices)}
        self._shift_index = self._matrix_index.get(exchange.shift_matrix.tobytes(), 0)
        most = max(len(blocks) * len(columns) for blocks, columns in self._chunks)
        read = most * len(self._read_lines)
        written = most * max(len(self._read_lines), len(self._written_lines))
        self._fill_index = config.wgt_depth - 1
        self._wgt = [self._fill_index - (buffer + 1) * read for buffer in range(_BUFFERS)]
        self._acc = [config.acc_depth - (buffer + 1) * written for buffer in range(_BUFFERS)]
        sizes = [len(blocks) * len(columns) * len(self._read_lines) for blocks, columns in self._chunks]
        self._scratch_starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        self._uop_ranges: dict[tuple[object, ...], tuple[int, int]] = {}
        self.uops: list[tuple[int, int, int]] = []
        body = list(self._transpose_only() if self._target.transposed else self._exchange())
        first_uop = config.uop_depth - len(self.uops)
        self.steps: list[tuple[Instruction, str]] = [
            (SetInp(), ""),
            *([(SetWgt(), "")] if config.wgt_zero else []),
            (_load(Memory.INP, self._unit_matrix, len(matrices)), MATRICES),
            (_load(Memory.WGT, self._fill_index, 1), FILL),
            (_load(Memory.UOP, first_uop, len(self.uops)), UOPS),
            *((_with_first_uop(one, first_uop), name) for one, name in body),
        ]

    def _transpose_only(self) -> Iterator[tuple[Instruction, str]]:
        for chunk, (blocks, columns) in enumerate(self._chunks):
            count, buffer = len(blocks) * len(columns), chunk % 2
            yield from self._load_source(chunk)
            uops = [
                (self._acc[buffer] + n * count, self._unit_matrix, self._wgt[buffer] + n * count)
                for n in range(len(self._read_lines))
            ]
            product = self._mac(("transpose", buffer, count), uops, len(columns), overwrite=True)
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
                uops = [(self._acc[buffer], self._shift_index, self._fill_index)]
                shift = self._mac(("shift", buffer), uops, count * len(self._read_lines), overwrite=False)
                yield replace(shift, wgt_factor_in=0), ""
            for n in range(len(self._read_lines)):
                yield (
                    Store(
                        sram_base=self._acc[buffer] + n * count,
                        dram_base=(n * self._width + columns.start) * self._blocks + blocks.start,
                        y_size=len(columns),
                        x_size=len(blocks),
                        x_stride=self._blocks,
                    ),
                    TARGET,
                )

    def _exchange(self) -> Iterator[tuple[Instruction, str]]:
        """Yield a software pipeline: transpose chunk n + 1, then select rows of chunk n."""
        yield from self._transpose(0)
        for chunk in range(len(self._chunks)):
            if chunk + 1 < len(self._chunks):
                yield from self._transpose(chunk + 1)
            yield from self._select(chunk)

    def _load_source(self, chunk: int) -> Iterator[tuple[Instruction, str]]:
        blocks, columns = self._chunks[chunk]
        for n, line in enumerate(self._read_lines):
            yield (
                Load(
                    memory=Memory.WGT,
                    sram_base=self._wgt[chunk % 2] + n * len(blocks) * len(columns),
                    dram_base=(blocks.start * self._source.height + line) * self._width + columns.start,
                    y_size=len(blocks),
                    x_size=len(columns),
                    x_stride=self._source.height * self._width,
                ),
                SOURCE,
            )

    def _transpose(self, chunk: int) -> Iterator[tuple[Instruction, str]]:
        blocks, columns = self._chunks[chunk]
        buffer, elements = chunk % 2, len(blocks) * len(columns) * len(self._read_lines)
        yield from self._load_source(chunk)
        uops = [(self._acc[buffer], self._unit_matrix, self._wgt[buffer])]
        yield self._mac(("transpose", buffer), uops, elements, overwrite=True), ""
        yield (
            Store(
                sram_base=self._acc[buffer],
                dram_base=self._scratch_starts[chunk],
                y_size=1,
                x_size=elements,
                x_stride=elements,
            ),
            TRANSPOSED,
        )

    def _select(self, chunk: int) -> Iterator[tuple[Instruction, str]]:
        blocks, columns = self._chunks[chunk]
        count, buffer = len(blocks) * len(columns), 2 + chunk % 2
        load = _load(Memory.WGT, self._wgt[buffer], count * len(self._read_lines))
        yield replace(load, dram_base=self._scratch_starts[chunk]), TRANSPOSED
        # the first term of each line overwrites, and terms of the fill value all read one element
        groups: dict[tuple[bool, bool], list[tuple[int, int, int]]] = {}
        for n, terms in enumerate(self._terms):
            ordered = sorted(terms.items(), key=lambda term: (term[0] is None, term[0] or 0))
            for position, (line, matrix) in enumerate(ordered):
                if line is None:
                    source = self._fill_index
                else:
                    source = self._wgt[buffer] + self._read_lines.index(line) * count
                uop = self._acc[buffer] + n * count, self._matrix_index[matrix.tobytes()], source
                groups.setdefault((position == 0, line is None), []).append(uop)
        for (overwrite, is_fill), uops in sorted(groups.items(), reverse=True):
            product = self._mac((buffer, count, overwrite, is_fill), uops, count, overwrite=overwrite)
            yield replace(product, wgt_factor_in=0) if is_fill else product, ""
        for n, line in enumerate(self._written_lines):
            yield (
                Store(
                    sram_base=self._acc[buffer] + n * count,
                    dram_base=(blocks.start * self._target.height + line) * self._width + columns.start,
                    y_size=len(blocks),
                    x_size=len(columns),
                    x_stride=self._target.height * self._width,
                ),
                TARGET,
            )

    def _mac(
        self, key: tuple[object, ...], uops: list[tuple[int, int, int]], count: int, *, overwrite: bool
    ) -> Mac:
        """Equal keys share micro-ops."""
        if key not in self._uop_ranges:
            self._uop_ranges[key] = len(self.uops), len(self.uops) + len(uops)
            self.uops += uops
        begin, end = self._uop_ranges[key]
        return Mac(
            overwrite=overwrite,
            uop_begin=begin,
            uop_end=end,
            iter_in=count,
            dst_factor_in=1,
            wgt_factor_in=1,
        )


def row_exchanges(
    config: Config, size: PictureSize, written: StripLayout, others: Sequence[StripLayout]
) -> list[RowExchange]:
    found = []
    if written.halo_above or written.halo_below:
        found.append(RowExchange(config=config, size=size, source=written, target=written, is_in_place=True))
    for other in others:
        found.append(RowExchange(config=config, size=size, source=written, target=other))
    return found


def _even_ranges(count: int, most: int) -> list[range]:
    size = -(-count // -(-count // most))
    return [range(begin, min(begin + size, count)) for begin in range(0, count, size)]


def _load(memory: Memory, first: int, count: int) -> Load:
    return Load(memory=memory, sram_base=first, dram_base=0, y_size=1, x_size=count, x_stride=count)


def _with_first_uop(instruction: Instruction, first: int) -> Instruction:
    if not isinstance(instruction, Mac):
        return instruction
    return replace(instruction, uop_begin=first + instruction.uop_begin, uop_end=first + instruction.uop_end)
