"""Dispatch between fetch and the queues."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import DRAM_ADDRESS_BITS, Config
from accel.core.isa import Load, Opcode, Store, StoreReq, store_operands_of
from accel.core.token_rules import WORKERS
from accel.hw.datapath.instruction_checks import WordLayout, cause_of, is_finished, known_of, operand_end
from accel.hw.datapath.queue import Enqueue
from accel.hw.datapath.transfer_memories import kind_number, kinds_of
from accel.hw.datapath.unit_ports import port_of
from accel.hw.datapath.word_layouts import (
    INDEX_BITS,
    EntryLayout,
    add_up,
    kind_bits,
    measure,
    multiply_out,
    place,
    view,
)
from accel.hw.units.unit_interfaces import Fetched


class _MovingLayout(data.StructLayout):
    def __init__(self, config: Config) -> None:
        super().__init__({"kind": kind_bits(config), "moves": 1, "data": 1, "gaps": 1})


class Dispatch(wiring.Component):
    """Multiplies out and checks instructions: one pushed in cycle t reaches its unit's queue in t +
    ``dispatch_stages``.

    Registers follow the products, their sums with the word's checks, and the final products. ``busy`` shows
    that one holds an instruction, ``oldest`` is the first one's index.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "flush": In(1),
                "mem_size": In(DRAM_ADDRESS_BITS + 1),
                "fetched": In(Fetched()),
                **{unit.label: Out(Enqueue(EntryLayout(config))) for unit in WORKERS},
                "busy": Out(1),
                "oldest": Out(INDEX_BITS),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self._config
        self._held: list[tuple[Signal, Signal]] = []
        """Whether each stage holds an instruction, and its index."""
        stages = config.dispatch_stages
        fetched = self.fetched
        load = view(Load, config, fetched.word)
        padded = load.opcode != Opcode.STORE if config.post else None
        sizes = measure(m, load, padded=padded)
        valid, unit, word, index, held = self._stage(
            m, stages > 2, fetched.push, fetched.unit, fetched.word, fetched.index, sizes
        )
        load = view(Load, config, word)
        padded = load.opcode != Opcode.STORE if config.post else None
        products = multiply_out(m, load, padded=padded, sizes=sizes.shape()(held))
        valid, unit, word, index, held = self._stage(m, stages > 0, valid, unit, word, index, products)
        load = view(Load, config, word)
        padded = load.opcode != Opcode.STORE if config.post else None
        box = add_up(m, load, products.shape()(held), padded=padded)
        end = self._end(load, box)
        known, moving = self._known(m, unit, word), self._moving(m, unit, load)
        valid, unit, word, index, held, end, known, moving = self._stage(
            m, stages > 1, valid, unit, word, index, box, end, known, moving
        )
        box = box.shape()(held)
        entry = Signal(EntryLayout(config))
        m.d.comb += [
            entry.word.eq(word),
            entry.index.eq(index),
            entry.box.eq(place(m, view(Load, config, word), box, config)),
            entry.box.end.eq(end),
            *_moves(entry.moves, _MovingLayout(config)(moving), box),
            entry.cause.eq(cause_of(m, WordLayout(config)(known), box)),
            self.busy.eq(Cat(there for there, _ in self._held).any()),
        ]
        for worker in WORKERS:
            enqueue = port_of(self, worker)
            m.d.comb += [enqueue.push.eq(valid & (unit == worker)), enqueue.data.eq(entry)]
        for there, number in self._held:
            with m.If(there):
                m.d.comb += self.oldest.eq(number)
        return m

    def _known(self, m: Module, unit: Value, word: Value) -> Value:
        known = Signal(WordLayout(self._config))
        for worker in WORKERS:
            its = known_of(m, worker, word, self.mem_size, self._config)
            with m.If(unit == worker):
                m.d.comb += known.eq(its)
        return Value.cast(known)

    def _moving(self, m: Module, unit: Value, transfer: Any) -> Value:
        config = self._config
        moving = Signal(_MovingLayout(config))
        opcode = transfer.opcode
        is_load = opcode == Opcode.LOAD
        moves = (is_load | (opcode == Opcode.STORE)) & (transfer.x_size != 0)
        m.d.comb += [
            moving.moves.eq(moves),
            moving.data.eq(moves & (transfer.y_size != 0)),
            moving.gaps.eq(moves & ((transfer.x_pad_0 | transfer.x_pad_1) != 0) & (transfer.y_size > 1)),
        ]
        for worker in WORKERS:
            loads, stores = (
                kind_number(transfer.memory, kinds_of(cls, worker, config), config) for cls in (Load, Store)
            )
            with m.If(unit == worker):
                m.d.comb += moving.kind.eq(Mux(is_load, loads, stores))
        return Value.cast(moving)

    def _end(self, transfer: Any, box: data.View) -> Value:
        """Return the end of the box, or of a requantizing STORE's first operand range."""
        if not self._config.post:
            return Value.cast(box.end)
        store = view(StoreReq, self._config, Value.cast(transfer))
        finished = (store.opcode == Opcode.STORE) & is_finished(store.memory, self._config)
        return Mux(finished, operand_end(store, store_operands_of(self._config)[0]), box.end)

    def _stage(self, m: Module, there: bool, *values: ValueLike) -> tuple[Value, ...]:
        """Return the values one cycle later if the stage exists: first that there is an instruction, fourth
        its index."""
        given = tuple(Value.cast(value) for value in values)
        if not there:
            return given
        number = len(self._held)
        late = tuple(Signal(len(value), name=f"held_{number}_{n}") for n, value in enumerate(given))
        m.d.sync += [signal.eq(value) for signal, value in zip(late, given, strict=True)]
        with m.If(self.flush):
            m.d.sync += late[0].eq(0)
        self._held.append((late[0], late[3]))
        return late


def _moves(moves: Any, moving: Any, box: data.View) -> list[Any]:
    around = (box.head != 0) | (box.tail != 0)
    return [
        moves.kind.eq(moving.kind),
        moves.data.eq(moving.data),
        moves.pads.eq((moving.moves & around) | moving.gaps),
        moves.some.eq(moving.moves & (box.elements != 0)),
    ]
