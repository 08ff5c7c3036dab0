"""Walking over LOADs and STOREs: which bursts they ask for, and what each beat holds.

A transfer's *kind* is the position of its memory in the unit's list of memories; sizes of elements are
constants of the kind, so all arithmetic on them is shifts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, ValueLike, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import DRAM_ADDRESS_BITS, PAGE_BYTES, Config
from accel.core.isa import SIZE_BITS, Finishing, Transfer, Unit, routes_of
from accel.core.isa.instructions import DRAM_BASE_BITS
from accel.core.memories import Route
from accel.hw.datapath.layouts import BEATS_BITS, GAP_BITS, KIND_BITS, LANE_BITS, log2, minimum, sram_bits


@dataclass(frozen=True)
class Kind:
    """A memory as transfers see it."""

    route: Route
    element_bytes: int
    """Of its DRAM element."""
    lanes: int
    """Elements in a beat; one if an element is as long as a beat or longer."""
    chunks: int
    """Beats in an element; one if an element is as long as a beat or shorter."""
    depth: int

    @property
    def memory(self) -> int:
        """The memory id."""
        return int(self.route.memory)

    @property
    def finished(self) -> bool:
        """Whether values are requantized on their way."""
        return isinstance(self.route.memory, Finishing)


def kind_of(route: Route, config: Config) -> Kind:
    """How a memory meets the bus."""
    size = route.element_bytes(config)
    return Kind(
        route,
        size,
        max(1, config.bus_bytes // size),
        max(1, size // config.bus_bytes),
        route.scratchpad.depth(config),
    )


def kinds_of(cls: type[Transfer], unit: Unit, config: Config) -> list[Kind]:
    """The memories whose LOADs or STOREs a unit executes, in the order of their declaration."""
    return [kind_of(route, config) for route in routes_of(cls, config).values() if route.unit is unit]


def choose(kind: ValueLike, values: Sequence[ValueLike]) -> Value:
    """The value that belongs to a kind."""
    if len(values) == 1:
        return Value.cast(values[0])
    return Array(Value.cast(value) for value in values)[kind]


class RowsLayout(data.StructLayout):
    """The rows of a transfer in DRAM, as BurstWalker takes them."""

    def __init__(self) -> None:
        super().__init__(
            {
                "kind": KIND_BITS,
                "dram_base": DRAM_BASE_BITS,
                "x_size": SIZE_BITS,
                "y_size": SIZE_BITS,
                "x_stride": SIZE_BITS,
            }
        )


class BurstWalker(wiring.Component):
    """The bursts of one transfer after the other: each row split at pages and at the longest burst.

    ``start``, in a cycle in which none is ``valid``, begins a transfer that has at least one row; its first
    burst is ``valid`` in the next cycle, each further one in the cycle after ``accept``. ``last`` marks a
    transfer's last burst. What a burst is like is found out in the cycle before; as long as there is none,
    that of ``rows`` is, since who starts one knows so late. ``free`` is the opposite of ``valid``, in a
    register of its own, for all that loads meanwhile. ``mem_base`` begins a page.
    """

    def __init__(self, kinds: Sequence[Kind], config: Config) -> None:
        self._kinds = kinds
        self._config = config
        super().__init__(
            {
                "flush": In(1),
                "start": In(1),
                "rows": In(RowsLayout()),
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
        """Whether no burst has a whole row."""
        stride = Signal(row_bits)
        ends = Signal()
        """Whether the burst ends its row; if not, it is as long as page and bus allow."""
        left = Signal(beats_bits)
        """Beats of the row behind a burst that does not end it."""
        to_page = Signal(range(page + 1))
        most = Signal(BEATS_BITS)
        """Beats of the page behind such a burst, and of the longest burst there."""
        rows = Signal(SIZE_BITS)
        last_row = Signal()

        new = self.rows
        kind_sizes = [log2(kind.element_bytes) for kind in self._kinds]
        first_address = Signal(DRAM_ADDRESS_BITS)
        first_stride = Signal(row_bits)
        first_place = Signal(log2(PAGE_BYTES))
        """In its page, at whose begin ``mem_base`` is."""
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
    """Beats of the longest burst; none is longer than a page."""
    return min(config.max_burst_beats, PAGE_BYTES // config.bus_bytes)


@dataclass(frozen=True, kw_only=True)
class _Burst:
    """A burst: its beats, whether it ends its row; if it does not, beats of the row and of the page behind
    it."""

    beats: Value
    ends: Value
    left: Value
    to_page: Value


def _row_burst(m: Module, place: Value, length: Value, is_long: Value, config: Config, name: str) -> _Burst:
    """The first burst of a row. What it is like hangs on one sum: where the row ends, seen from the page's
    begin; unless the row is long anyway, few bits of it matter. What is left behind it is one sum, too.

    Args:
        m: where the logic goes.
        place: of the row in its page, in bytes.
        length: of the row in bytes.
        is_long: whether that is more than a burst has.
        config: the machine.
        name: of its signals.
    """
    bus, longest = config.bus_bytes, _longest(config)
    page, shift = PAGE_BYTES // bus, log2(bus)
    bits = len(length) + 1 - shift
    whole, left = Signal(bits, name=f"{name}_whole"), Signal(bits, name=f"{name}_left")
    room, short = Signal(range(page + 1), name=f"{name}_room"), Signal(name=f"{name}_short")
    ends = Signal(name=f"{name}_ends")
    low = length[: (longest * bus).bit_length()]
    behind_page = Cat(place, Const(1, 1)).as_signed()
    behind_longest = Cat(place[:shift], Const(longest, log2(longest) + 1)).as_signed()
    """Where the row begins, seen from the page's end and from that of the longest burst; negative."""
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


class BeatLayout(data.StructLayout):
    """What one beat of a transfer holds: ``take`` elements from ``lane`` on, to go to or come from
    consecutive scratchpad elements from ``index`` on; or the ``chunk``-th part of element ``index``."""

    def __init__(self, kinds: Sequence[Kind], config: Config) -> None:
        lanes = max(kind.lanes for kind in kinds)
        chunks = max(kind.chunks for kind in kinds)
        super().__init__(
            {
                "kind": KIND_BITS,
                "index": sram_bits(config),
                "lane": unsigned(log2(lanes)),
                "take": unsigned(log2(lanes) + 1),
                "chunk": unsigned(log2(chunks)),
            }
        )


class PlacesLayout(data.StructLayout):
    """The places of a transfer's elements, as BeatWalker takes them."""

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "kind": KIND_BITS,
                "sram": sram_bits(config),  # scratchpad element of the first data element
                "gap": GAP_BITS,  # scratchpad elements between two rows of data
                "lane": LANE_BITS,  # DRAM element of the first one, in its beat
                "stride": LANE_BITS,  # DRAM elements from row to row, modulo those of a beat
                "x_size": SIZE_BITS,
                "y_size": SIZE_BITS,
            }
        )


class BeatWalker(wiring.Component):
    """What the beats of one transfer after the other hold, rows split nowhere.

    ``start`` loads a transfer that has at least one row; ``beat`` describes its first beat from the next
    cycle on, the following one after each ``step``. ``last`` marks a transfer's last beat; stepping over it,
    or ``idle``, is when it is ``free`` and the next one may be loaded. ``rows`` adds ``row_last``, a row's
    last beat. What a beat is like is found out in the cycle before.
    """

    def __init__(self, kinds: Sequence[Kind], config: Config, *, rows: bool = False) -> None:
        self._kinds = kinds
        self._config = config
        self._rows = rows
        super().__init__(
            {
                "flush": In(1),
                "start": In(1),
                "places": In(PlacesLayout(config)),
                "step": In(1),
                "idle": Out(1),
                "free": Out(1),
                "beat": Out(BeatLayout(kinds, config)),
                "last": Out(1),
                **({"row_last": Out(1)} if rows else {}),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        kinds = self._kinds
        kind = Signal(KIND_BITS)
        index = Signal(sram_bits(self._config))
        lane = Signal(LANE_BITS)
        row_lane = Signal(LANE_BITS)
        stride = Signal(LANE_BITS)
        chunk = Signal(max(1, *(log2(k.chunks) for k in kinds)))
        left = Signal(SIZE_BITS)
        x_size = Signal(SIZE_BITS)
        gap = Signal(GAP_BITS)
        rows = Signal(SIZE_BITS)
        active = Signal()

        most = max(k.lanes for k in kinds)
        lanes = Signal(range(most + 1))
        take = Signal(range(most + 1))
        ends = Signal()
        """Whether it holds the last elements of its row."""
        chunk_last = Signal()
        row_last = Signal()
        element_done, row_done = Signal(), Signal()
        next_lane, next_left = Signal(LANE_BITS), Signal(SIZE_BITS)
        row_next = Signal(LANE_BITS)

        def shared(left: Value, room: Value) -> tuple[Value, Value]:
            """Of elements that are left, how many are in the beat with so much room, and whether all are."""
            whole = left <= room
            return Mux(whole, left, room), whole

        m.d.comb += [
            lanes.eq(choose(kind, [Const(k.lanes) for k in kinds])),
            element_done.eq(chunk_last),
            row_done.eq(chunk_last & ends),
            row_next.eq((row_lane + stride) & (lanes - 1)),
            next_lane.eq(Mux(row_done, row_next, Mux(element_done, 0, lane))),
            next_left.eq(Mux(row_done, x_size, Mux(element_done, left - take, left))),
            self.beat.kind.eq(kind),
            self.beat.index.eq(index),
            self.beat.lane.eq(lane),
            self.beat.take.eq(take),
            self.beat.chunk.eq(chunk),
            self.last.eq(row_done & row_last),
            self.idle.eq(~active),
            self.free.eq(~active | (self.step & self.last)),
        ]
        if self._rows:
            m.d.comb += self.row_last.eq(row_done)
        next_take, next_ends = shared(next_left, lanes - next_lane)
        with m.If(self.step):
            m.d.sync += [
                lane.eq(next_lane),
                left.eq(next_left),
                take.eq(next_take),
                ends.eq(next_ends),
                chunk.eq(Mux(element_done, 0, chunk + 1)),
                chunk_last.eq(
                    Mux(
                        element_done,
                        choose(kind, [Const(int(k.chunks == 1), 1) for k in kinds]),
                        chunk + 2 == choose(kind, [Const(k.chunks) for k in kinds]),
                    )
                ),
            ]
            with m.If(element_done):
                m.d.sync += index.eq(index + take)
            with m.If(row_done):
                m.d.sync += [
                    rows.eq(rows - 1),
                    row_last.eq(rows == 1),
                    index.eq(index + take + gap),
                    row_lane.eq(row_next),
                ]
        new = self.places
        new_lanes = choose(new.kind, [Const(k.lanes) for k in kinds])
        new_take, new_ends = shared(new.x_size, new_lanes - new.lane)
        with m.If(self.free):
            m.d.sync += [
                active.eq(self.start),
                kind.eq(new.kind),
                index.eq(new.sram),
                lane.eq(new.lane),
                row_lane.eq(new.lane),
                stride.eq(new.stride),
                chunk.eq(0),
                chunk_last.eq(choose(new.kind, [Const(int(k.chunks == 1), 1) for k in kinds])),
                left.eq(new.x_size),
                take.eq(new_take),
                ends.eq(new_ends),
                x_size.eq(new.x_size),
                gap.eq(new.gap),
                rows.eq(new.y_size - 1),
                row_last.eq(new.y_size == 1),
            ]
        with m.If(self.flush):
            m.d.sync += active.eq(0)
        return m


def dram_lane(kind: ValueLike, elements: Value, kinds: Sequence[Kind]) -> Value:
    """Place within a beat of a DRAM element, by its number."""
    return choose(kind, [elements[: log2(k.lanes)] if k.lanes > 1 else Const(0, 1) for k in kinds])


def kind_number(memory: Value, kinds: Sequence[Kind]) -> Value:
    """Kind of a memory id; nobody's id gives any."""
    number: Value = Const(0, KIND_BITS)
    for position, kind in enumerate(kinds):
        number = Mux(memory == kind.memory, Const(position, KIND_BITS), number)
    return number
