"""The requantization lanes, and the walk through PAR and RES.

A *slot* is a cycle in which the lanes requantize bytes of one element of a beat (docs/explain/hardware.md).
"""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.isa import Finishing
from accel.core.requantize import EXPONENT_BITS, MULTIPLIER_BITS
from accel.core.scratchpad_specs import ACC, PAR, PAR_INDEX_BITS, RES, TAB, TABLE_FIELD_BITS, bits_of
from accel.hw.datapath.accumulators import SlotLayout, part_of
from accel.hw.datapath.beat_walker import BeatLayout
from accel.hw.datapath.requantize import AddLayout, RangeLayout, RequantizeLane, stages_before_look_up
from accel.hw.datapath.scratchpads import ElementRead
from accel.hw.datapath.transfer_memories import RESIDUAL_STORES, Kind
from accel.hw.datapath.word_layouts import log2

_SUM_BITS = bits_of(ACC.dtype)
_BYTE_BITS = 8


def slots_per_beat(config: Config) -> int:
    return config.bus_bytes // config.lanes


class ParLayout(data.StructLayout):
    """A STORE's elements of PAR start at ``par``, and advance by one per row if ``par_y``, and per element of
    a row if ``par_x``."""

    def __init__(self) -> None:
        super().__init__({"par": PAR_INDEX_BITS, "par_y": 1, "par_x": 1})


class SettingLayout(data.StructLayout):
    """The registers of SET.OUT and SET.SUM."""

    def __init__(self, config: Config) -> None:
        table = {"table_unsigned": 1} if TAB.exists(config) else {}
        super().__init__({"range": RangeLayout(), "addition": AddLayout(), "unsigned": 1, **table})


class SlotWalker(wiring.Component):
    """Walks through the slots of beats.

    ``start`` loads the range of PAR in the cycle in which the STORE's first beat enters the beat walker. Each
    ``step`` leads to the next slot, up to the beat's ``last``. ``par_index`` and ``res_index`` are the slot's
    operands. A plain STORE's beat is one slot. With tables, ``table`` is the STORE's field, and
    ``slot_table`` the slot's.

    ``adds`` shows that the slot's result depends on the residual, ``multiplies`` that it is a product. With
    STORE.MUL, ``start`` also loads ``hold``, and ``store_last`` marks a STORE's last beat.
    """

    def __init__(self, kinds: Sequence[Kind], config: Config) -> None:
        self._kinds = kinds
        self._config = config
        products = {"hold": In(1), "store_last": In(1), "multiplies": Out(1)} if config.res_mul else {}
        table = {"table": In(TABLE_FIELD_BITS), "slot_table": Out(TABLE_FIELD_BITS)}
        super().__init__(
            {
                "flush": In(1),
                "start": In(1),
                "par": In(ParLayout()),
                "beat": In(BeatLayout(kinds, config)),
                "row_last": In(1),
                "step": In(1),
                "finished": Out(1),
                "adds": Out(1),
                **products,
                "last": Out(1),
                "number": Out(log2(slots_per_beat(config))),
                "slot": Out(SlotLayout(config)),
                "par_index": Out(PAR.address_bits(config)),
                "res_index": Out(RES.address_bits(config)),
                **(table if TAB.exists(config) else {}),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config, beat, slot = self._config, self.beat, self.slot
        slots = slots_per_beat(config)
        kinds = [(number, kind) for number, kind in enumerate(self._kinds) if kind.is_requantized]
        lanes, chunks = kinds[0][1].lanes, kinds[0][1].chunks
        parts = config.out_element_bytes // config.lanes
        number = self.number
        element_last = Signal()
        m.d.comb += [
            self.finished.eq(Cat(beat.kind == n for n, _ in kinds).any()),
            self.adds.eq(Cat(beat.kind == n for n, kind in kinds if kind.memory in RESIDUAL_STORES).any()),
            self.last.eq(~self.finished | (number == slots - 1)),
        ]
        if lanes == 1:
            m.d.comb += [
                slot.part.eq(Cat(number, beat.chunk[: log2(chunks)])),
                slot.inside.eq(1),
                element_last.eq(slot.part == parts - 1),
            ]
        else:
            lane = number >> log2(parts)
            m.d.comb += [
                slot.part.eq(number[: log2(parts)]),
                slot.distance.eq(lane - beat.lane),
                slot.inside.eq((lane >= beat.lane) & (lane - beat.lane < beat.take)),
                element_last.eq(slot.part == parts - 1),
            ]

        held = Signal(ParLayout())
        following, next_row = Signal(PAR_INDEX_BITS), Signal(PAR_INDEX_BITS)
        """The next PAR elements in this row and the next. ``step`` is known too late to compute them."""
        m.d.comb += self.par_index.eq(held.par)
        done = Signal()
        m.d.comb += done.eq(self.step & self.finished & slot.inside & element_last)
        with m.If(self.step & self.finished):
            m.d.sync += number.eq(number + 1)
        with m.If(done):
            m.d.sync += [held.par.eq(following), following.eq(following + held.par_x)]
        with m.If(self._takes(m, done)):
            m.d.sync += self.res_index.eq(self.res_index + 1)
        with m.If(self.step & self.finished & self.last & self.row_last):
            m.d.sync += [
                held.par.eq(next_row),
                following.eq(next_row + held.par_x),
                next_row.eq(next_row + held.par_y),
            ]
        with m.If(self.start):
            m.d.sync += [
                held.eq(self.par),
                following.eq(self.par.par + self.par.par_x),
                next_row.eq(self.par.par + self.par.par_y),
                *([self.slot_table.eq(self.table)] if TAB.exists(config) else []),
            ]
        with m.If(self.flush):
            m.d.sync += self.res_index.eq(0)
        return m

    def _takes(self, m: Module, done: Value) -> Value:
        """Return whether the STORE has used its residual: after each element, or after the last beat if it
        holds it."""
        if not self._config.res_mul:
            return done & self.adds
        (product,) = (number for number, kind in enumerate(self._kinds) if kind.memory == Finishing.MUL)
        m.d.comb += self.multiplies.eq(self.beat.kind == product)
        holds = Signal()
        with m.If(self.start):
            m.d.sync += holds.eq(self.hold)
        return self.adds & Mux(holds, self.step & self.last & self.store_last, done)


class RequantizeLanes(wiring.Component):
    """A cycle with ``advance`` requests a ``slot``. In the next such cycle ``sums``, ``par`` and ``res`` are
    its operands. ``post_depth`` such cycles later, ``result`` holds its bytes, with residuals if ``adds`` is
    set then. With ``multiplies`` at the request, they are products. ``setting`` is constant meanwhile.

    With tables, the results pass through element ``table - 1`` of TAB, unless ``table`` is 0. Lane ``n``
    reads its own copy through ``tab_n``.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        copies = config.lanes if TAB.exists(config) else 0
        self._tables = {f"tab_{number}": Out(ElementRead(TAB, config)) for number in range(copies)}
        super().__init__(
            {
                "advance": In(1),
                "slot": In(SlotLayout(config)),
                **({"multiplies": In(1)} if config.res_mul else {}),
                "sums": In(config.lanes * _SUM_BITS),
                "par": In(PAR.word_bits(config)),
                "res": In(RES.word_bits(config)),
                "setting": In(SettingLayout(config)),
                "adds": In(1),
                "result": Out(config.lanes * _BYTE_BITS),
                **({"table": In(TABLE_FIELD_BITS)} if self._tables else {}),
                **self._tables,
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config, setting = self._config, self.setting
        channel_bits = 2 * _SUM_BITS
        slot = Signal(SlotLayout(config), reset_less=True)
        with m.If(self.advance):
            m.d.sync += slot.eq(self.slot)
            if config.res_mul:
                multiplies = Signal(reset_less=True)
                m.d.sync += multiplies.eq(self.multiplies)
        channels = Signal(min(config.lanes, config.block_out) * channel_bits)
        residuals = Signal(config.lanes * _BYTE_BITS)
        m.d.comb += [
            channels.eq(part_of(self.par, slot.part, len(channels))),
            residuals.eq(part_of(self.res, slot.part, len(residuals))),
        ]
        lanes = []
        for number in range(config.lanes):
            m.submodules[f"lane_{number}"] = lane = RequantizeLane(
                config.post_stages,
                multiplies=bool(config.res_mul),
                word_bits=config.bus_bits if self._tables else 0,
            )
            lanes.append(lane)
            if config.res_mul:
                m.d.comb += lane.multiplies.eq(multiplies)
            channel = channels.word_select(number % (len(channels) // channel_bits), channel_bits)
            byte = residuals.word_select(number, _BYTE_BITS)
            scale = channel[_SUM_BITS:]
            m.d.comb += [
                lane.advance.eq(self.advance),
                lane.range.eq(setting.range),
                lane.addition.eq(setting.addition),
                lane.adds.eq(self.adds),
                lane.acc.eq(self.sums.word_select(number, _SUM_BITS)),
                lane.bias.eq(channel[:_SUM_BITS]),
                lane.multiplier.eq(scale[:MULTIPLIER_BITS]),
                lane.exponent.eq(scale[MULTIPLIER_BITS : MULTIPLIER_BITS + EXPONENT_BITS]),
                lane.residual.eq(Cat(byte, byte[-1] & ~setting.unsigned).as_signed()),
                self.result.word_select(number, _BYTE_BITS).eq(lane.result[:_BYTE_BITS]),
            ]
        if self._tables:
            self._look_up(m, lanes)
        return m

    def _look_up(self, m: Module, lanes: Sequence[RequantizeLane]) -> None:
        config = self._config
        table: Value = self.table
        before = stages_before_look_up(config.post_stages, multiplies=bool(config.res_mul))
        for stage in range(before + 1):
            later = Signal(TABLE_FIELD_BITS, name=f"table_{stage}", reset_less=True)
            with m.If(self.advance):
                m.d.sync += later.eq(table)
            table = later
        looks_up = Signal()
        with m.If(self.advance):
            m.d.sync += looks_up.eq(table != 0)
        element = (table - 1)[: TAB.address_bits(config)]
        for number, lane in enumerate(lanes):
            read = getattr(self, f"tab_{number}")
            m.d.comb += [
                read.index.eq(Cat(lane.byte[log2(config.bus_bytes) :], element)),
                lane.word.eq(read.element),
                lane.looks_up.eq(looks_up),
                lane.table_unsigned.eq(self.setting.table_unsigned),
            ]
