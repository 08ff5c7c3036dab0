"""The beats of LOADs and STOREs."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.isa import SIZE_BITS
from accel.hw.datapath.transfer_memories import Kind, choose
from accel.hw.datapath.word_layouts import GAP_BITS, LANE_BITS, kind_bits, log2, sram_bits


class BeatLayout(data.StructLayout):
    """One beat: ``take`` elements from bus lane ``lane`` and scratchpad element ``index`` on, or part
    ``chunk`` of the longer element ``index``."""

    def __init__(self, kinds: Sequence[Kind], config: Config) -> None:
        lanes = max(kind.lanes for kind in kinds)
        chunks = max(kind.chunks for kind in kinds)
        super().__init__(
            {
                "kind": kind_bits(config),
                "index": sram_bits(config),
                "lane": unsigned(log2(lanes)),
                "take": unsigned(log2(lanes) + 1),
                "chunk": unsigned(log2(chunks)),
            }
        )


class PlacesLayout(data.StructLayout):
    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "kind": kind_bits(config),
                "sram": sram_bits(config),  # scratchpad element of the first data element
                "gap": GAP_BITS,  # scratchpad elements between rows of data
                "lane": LANE_BITS,  # position of the first DRAM element in its beat
                "stride": LANE_BITS,  # DRAM elements from row to row, modulo those of a beat
                "x_size": SIZE_BITS,
                "y_size": SIZE_BITS,
            }
        )


class BeatWalker(wiring.Component):
    """Walks through the beats of transfers, computed one cycle ahead.

    ``start`` loads a transfer with at least one row. From the next cycle on ``beat`` is its first beat, and
    after each ``step`` the next. While stepping over the ``last`` beat, or while ``idle``, the walker is
    ``free`` for the next transfer. ``rows`` adds ``row_last``, the last beat of a row.
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
        kind = Signal(kind_bits(self._config))
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
        """The beat has the last elements of its row."""
        chunk_last = Signal()
        row_last = Signal()
        element_done, row_done = Signal(), Signal()
        next_lane, next_left = Signal(LANE_BITS), Signal(SIZE_BITS)
        row_next = Signal(LANE_BITS)

        def shared(left: Value, room: Value) -> tuple[Value, Value]:
            """Return how many remaining elements fit into a beat, and whether all do."""
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
