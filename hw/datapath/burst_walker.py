"""The bursts of LOADs and STOREs."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from msgspec import Struct

from accel.core.config import DRAM_ADDRESS_BITS, PAGE_BYTES, Config
from accel.core.isa import SIZE_BITS
from accel.core.isa.field_widths import DRAM_BASE_BITS
from accel.hw.datapath.transfer_memories import Kind, choose
from accel.hw.datapath.word_layouts import BEATS_BITS, kind_bits, log2, minimum


class RowsLayout(data.StructLayout):
    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "kind": kind_bits(config),
                "dram_base": DRAM_BASE_BITS,
                "x_size": SIZE_BITS,
                "y_size": SIZE_BITS,
                "x_stride": SIZE_BITS,
            }
        )


class BurstWalker(wiring.Component):
    """Walks through the bursts of transfers, computed one cycle ahead.

    ``start``, in a cycle without a ``valid`` burst, begins a transfer with at least one row. Its first burst
    is ``valid`` in the next cycle, each further one in the cycle after ``accept``, up to the ``last``. While
    none is valid (``free``), the first burst of ``rows`` is computed in every cycle, because ``start`` is
    known late. ``mem_base`` starts a page.
    """

    def __init__(self, kinds: Sequence[Kind], config: Config) -> None:
        self._kinds = kinds
        self._config = config
        super().__init__(
            {
                "flush": In(1),
                "start": In(1),
                "rows": In(RowsLayout(config)),
                "mem_base": In(DRAM_ADDRESS_BITS),
                "valid": Out(1),
                "free": Out(1, init=1),
                "address": Out(DRAM_ADDRESS_BITS),
                "beats": Out(BEATS_BITS),
                "last": Out(1),
                "accept": In(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        bus = self._config.bus_bytes
        shift = log2(bus)
        row_bits = SIZE_BITS + max(log2(kind.element_bytes) for kind in self._kinds) + 1
        beats_bits = row_bits + 1

        page = PAGE_BYTES // bus
        longest = _longest(self._config)
        address = Signal(DRAM_ADDRESS_BITS)
        next_row = Signal(DRAM_ADDRESS_BITS)
        row_bytes = Signal(row_bits)
        is_long = Signal()
        """Rows are longer than any burst."""
        stride = Signal(row_bits)
        ends = Signal()
        """The burst ends its row. Otherwise it is as long as page and bus allow."""
        left = Signal(beats_bits)
        to_page = Signal(range(page + 1))
        most = Signal(BEATS_BITS)
        """Beats of the page after the burst, at most a longest burst."""
        rows = Signal(SIZE_BITS)
        last_row = Signal()

        new = self.rows
        kind_sizes = [log2(kind.element_bytes) for kind in self._kinds]
        first_address = Signal(DRAM_ADDRESS_BITS)
        first_stride = Signal(row_bits)
        first_place = Signal(log2(PAGE_BYTES))
        first_bytes = Signal(row_bits)
        m.d.comb += [
            first_address.eq(self.mem_base + choose(new.kind, [new.dram_base << s for s in kind_sizes])),
            first_bytes.eq(choose(new.kind, [new.x_size << s for s in kind_sizes])),
            first_stride.eq(choose(new.kind, [new.x_stride << s for s in kind_sizes])),
            first_place.eq(choose(new.kind, [(new.dram_base << s)[: log2(PAGE_BYTES)] for s in kind_sizes])),
        ]

        first_long = first_bytes > longest * bus
        first = _row_burst(m, first_place, first_bytes, first_long, self._config, "first")
        after = _row_burst(m, next_row[: log2(PAGE_BYTES)], row_bytes, is_long, self._config, "row")
        goes_on = _Burst(
            beats=Mux(left <= most, left, most),
            ends=left <= most,
            left=left - most,
            to_page=Mux(to_page == most, page, to_page - most),
        )
        m.d.comb += [self.address.eq(address), self.last.eq(last_row & ends)]

        def take(burst: _Burst) -> list[Any]:
            return [
                self.beats.eq(burst.beats),
                ends.eq(burst.ends),
                left.eq(burst.left),
                to_page.eq(burst.to_page),
                most.eq(minimum(burst.to_page, Const(longest, BEATS_BITS))),
            ]

        with m.If(self.accept):
            with m.If(ends):
                m.d.sync += [
                    *take(after),
                    rows.eq(rows - 1),
                    last_row.eq(rows == 1),
                    next_row.eq(next_row + stride),
                    address.eq(next_row),
                ]
            with m.Else():
                m.d.sync += [*take(goes_on), address.eq((address[shift:] + self.beats) << shift)]
            with m.If(self.last):
                m.d.sync += [self.valid.eq(0), self.free.eq(1)]
        with m.If(self.free):
            m.d.sync += [
                *take(first),
                self.valid.eq(self.start),
                self.free.eq(~self.start),
                address.eq(first_address),
                next_row.eq(first_address + first_stride),
                row_bytes.eq(first_bytes),
                is_long.eq(first_long),
                stride.eq(first_stride),
                rows.eq(new.y_size - 1),
                last_row.eq(new.y_size == 1),
            ]
        with m.If(self.flush):
            m.d.sync += [self.valid.eq(0), self.free.eq(1)]
        return m


def _longest(config: Config) -> int:
    return min(config.max_burst_beats, PAGE_BYTES // config.bus_bytes)


class _Burst(Struct, frozen=True, kw_only=True):
    """``left`` and ``to_page``, the remaining beats of row and page, matter if the burst does not end its
    row."""

    beats: Value
    ends: Value
    left: Value
    to_page: Value


def _row_burst(m: Module, place: Value, length: Value, is_long: Value, config: Config, name: str) -> _Burst:
    """Compute a row's first burst from one sum: the row's end relative to the page's start, of which few bits
    matter for a short row. ``place`` is the row's byte in its page."""
    bus, longest = config.bus_bytes, _longest(config)
    page, shift = PAGE_BYTES // bus, log2(bus)
    bits = len(length) + 1 - shift
    whole, left = Signal(bits, name=f"{name}_whole"), Signal(bits, name=f"{name}_left")
    room, short = Signal(range(page + 1), name=f"{name}_room"), Signal(name=f"{name}_short")
    ends = Signal(name=f"{name}_ends")
    low = length[: (longest * bus).bit_length()]
    behind_page = Cat(place, Const(1, 1)).as_signed()
    behind_longest = Cat(place[:shift], Const(longest, log2(longest) + 1)).as_signed()
    """The row's start minus the end of the page, and of the longest burst."""
    near, part = ((start + low + (bus - 1)) >> shift for start in (place, place[:shift]))
    m.d.comb += [
        whole.eq((place[:shift] + length + (bus - 1)) >> shift),
        left.eq((length + Mux(short, behind_page, behind_longest) + (bus - 1)) >> shift),
        room.eq(page - place[shift:]),
        short.eq(place[shift:] > page - longest),
        ends.eq(~is_long & (near <= page) & (part <= longest)),
    ]
    return _Burst(
        beats=Mux(ends, whole, Mux(short, room, longest)),
        ends=ends,
        left=left,
        to_page=Mux(place[shift:] >= page - longest, page, page - longest - place[shift:]),
    )
