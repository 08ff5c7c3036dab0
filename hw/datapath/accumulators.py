"""The accumulators and their mirror."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.scratchpad_specs import ACC, bits_of
from accel.hw.datapath.access_probes import AccessProbes
from accel.hw.datapath.beat_walker import BeatLayout
from accel.hw.datapath.scratchpads import UNORDERED, Scratchpad, Shape, Write, bank_of, held
from accel.hw.datapath.transfer_memories import Kind, choose
from accel.hw.datapath.word_layouts import log2, sram_bits


class SlotLayout(data.StructLayout):
    """A ``part`` of the element ``distance`` after a beat's first. Its values are requantized together.
    ``inside``: the beat contains it."""

    def __init__(self, config: Config) -> None:
        lanes = max(1, config.bus_bytes // config.out_element_bytes)
        parts = config.out_element_bytes // config.lanes
        super().__init__({"part": log2(parts), "distance": signed(log2(lanes) + 1), "inside": 1})


def part_of(word: Value, part: Value, bits: int) -> Value:
    """``part`` wraps around."""
    parts = [word[n : n + bits] for n in range(0, len(word), bits)]
    return parts[0] if len(parts) == 1 else Array(parts)[part[: log2(len(parts))]]


class MirrorRead(wiring.Signature):
    """In the cycle after ``advance``, ``data`` and ``strobe`` are the requested ``beat``, with elements in
    their bus lanes, and ``sums`` the accumulators of ``slot``. Without ``advance`` they hold."""

    def __init__(self, kinds: Sequence[Kind], config: Config) -> None:
        members: dict[str, Any] = {
            "advance": Out(1),
            "beat": Out(BeatLayout(kinds, config)),
            "data": In(config.bus_bits),
            "strobe": In(config.bus_bytes),
        }
        if any(kind.is_requantized for kind in kinds):
            members |= {"slot": Out(SlotLayout(config)), "sums": In(config.lanes * bits_of(ACC.dtype))}
        super().__init__(members)


class AccumulatorMirror(wiring.Component):
    """A copy of the accumulators for STOREs: their low bytes, or all if some ``kinds`` need them. It follows
    ``writes``, the banks' write ports."""

    def __init__(self, kinds: Sequence[Kind], writes: Sequence[Write], shape: Shape, config: Config) -> None:
        self._kinds = kinds
        self._writes = writes
        self._shape = shape
        self._config = config
        super().__init__({"out": In(MirrorRead(kinds, config))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        shape, out = self._shape, self.out
        banks = shape.banks
        bytes_ = max(kind.element_bytes for kind in self._kinds)
        narrow, wide = max(bits_of(kind.route.dtype) for kind in self._kinds), bits_of(ACC.dtype)
        grain = shape.grain_bits * narrow // wide
        elements = []
        for number, write in enumerate(self._writes):
            memory = Memory(shape=bytes_ * 8, depth=shape.bank_depth, init=[], attrs=UNORDERED)
            m.submodules[f"bank_{number}"] = memory
            port = memory.write_port(granularity=grain)
            read = memory.read_port()
            distance = Signal(max(1, log2(banks)), name=f"distance_{number}")
            m.d.comb += [
                port.addr.eq(write.address),
                port.data.eq(Cat(write.data[n : n + narrow] for n in range(0, len(write.data), wide))),
                port.en.eq(write.enable),
                distance.eq(bank_of(number - out.beat.index, banks)),
                read.addr.eq((out.beat.index + distance) >> log2(banks)),
                read.en.eq(out.advance),
            ]
            elements.append(read.data)
        chosen = Signal(BeatLayout(self._kinds, self._config), reset_less=True)
        with m.If(out.advance):
            m.d.sync += chosen.eq(out.beat)
        if any(kind.is_requantized for kind in self._kinds):
            self._sums(m, elements, chosen)
        for number, kind in enumerate(self._kinds):
            if kind.is_requantized:
                continue
            bits = bits_of(kind.route.dtype)
            read = elements
            if bits < narrow:
                read = [Cat(one[n : n + bits] for n in range(0, len(one), narrow)) for one in elements]
            if len(self._kinds) == 1:
                self._beat(m, kind, read, chosen)
            else:
                with m.If(chosen.kind == number):
                    self._beat(m, kind, read, chosen, f"_of_{kind.route.name.lower()}")
        return m

    def _sums(self, m: Module, elements: Sequence[Value], chosen: Any) -> None:
        slot = Signal(SlotLayout(self._config), reset_less=True)
        with m.If(self.out.advance):
            m.d.sync += slot.eq(self.out.slot)
        bank = bank_of(chosen.index + slot.distance, len(elements))
        element = Array(elements)[bank] if len(elements) > 1 else elements[0]
        m.d.comb += self.out.sums.eq(part_of(element, slot.part, len(self.out.sums)))

    def _beat(self, m: Module, kind: Kind, elements: Sequence[Value], chosen: Any, suffix: str = "") -> None:
        banks, bytes_ = self._shape.banks, kind.element_bytes
        if kind.lanes == 1:
            bus = self._config.bus_bits
            element = Array(elements)[bank_of(chosen.index, banks)] if banks > 1 else elements[0]
            parts = [element[n * bus : (n + 1) * bus] for n in range(kind.chunks)]
            m.d.comb += [self.out.data.eq(choose(chosen.chunk, parts)), self.out.strobe.eq(-1)]
            return
        for lane in range(kind.lanes):
            distance = Signal(max(1, log2(banks)), name=f"from_{lane}{suffix}")
            inside = Signal(name=f"inside_{lane}{suffix}")
            m.d.comb += [
                distance.eq(lane - chosen.lane),
                inside.eq((lane >= chosen.lane) & (lane - chosen.lane < chosen.take)),
                self.out.data[lane * bytes_ * 8 : (lane + 1) * bytes_ * 8].eq(
                    Mux(inside, Array(elements)[bank_of(chosen.index + distance, banks)], 0)
                ),
                self.out.strobe[lane * bytes_ : (lane + 1) * bytes_].eq(inside.replicate(bytes_)),
            ]


class Accumulators(Scratchpad):
    """The accumulators: two elements can be read per cycle, and a beat for STOREs through ``out``.

    ``result_valid`` writes ``result`` to element ``result_index``. Beats and pad words are written one cycle
    later than in other scratchpads, for registers in front of the many block RAMs.
    """

    def __init__(
        self,
        unit_kinds: Sequence[Kind],
        out: Sequence[Kind],
        config: Config,
        probes: AccessProbes | None = None,
    ) -> None:
        self._out = out
        self._config = config
        more = {
            "out": In(MirrorRead(out, config)),
            "result_valid": In(1),
            "result_index": In(sram_bits(config)),
            "result": In(config.acc_element_bytes * 8),
        }
        super().__init__(ACC, unit_kinds, config, copies=2, extra=more, probes=probes)

    def writes(self, m: Module) -> list[Write]:
        return [self._final(m, write, number) for number, write in enumerate(super().writes(m))]

    def _final(self, m: Module, early: Write, number: int) -> Write:
        shape = self.layout
        late, write = held(m, early, shape, number), Write(shape, number, "final")
        m.d.comb += [
            write.enable.eq(late.enable),
            write.address.eq(late.address),
            write.data.eq(late.data),
        ]
        with m.If(self.result_valid):
            mine = bank_of(self.result_index, shape.banks) == number
            m.d.comb += [
                write.enable.eq(mine.replicate(shape.grains)),
                write.address.eq(self.result_index >> log2(shape.banks)),
                write.data.eq(self.result),
            ]
        return write

    def mirror(self, m: Module, writes: Sequence[Write]) -> None:
        m.submodules.mirror = mirror = AccumulatorMirror(self._out, writes, self.layout, self._config)
        wiring.connect(m, wiring.flipped(self.out), mirror.out)
