"""Scratchpads: written by beats from the bus or by whole elements, read by element or, for STOREs, by beat.

A scratchpad is split into banks by element index, so that a beat touches each bank at most once; an
element longer than a beat is written in parts by lane enables. Reads take a cycle and see what was
written in earlier cycles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.isa import Memory as MemoryId
from accel.hw.datapath.layouts import bits_for_depth, log2
from accel.hw.datapath.transfer import BeatLayout, Kind, choose, sram_bits


@dataclass(frozen=True)
class Shape:
    """How a scratchpad is laid out."""

    element_bytes: int
    depth: int
    banks: int
    grain: int
    """Bytes of an element that are enabled together."""

    @property
    def bank_depth(self) -> int:
        return -(-self.depth // self.banks)

    @property
    def grains(self) -> int:
        return self.element_bytes // self.grain


def scratchpad_shape(kinds: Sequence[Kind], element_bytes: int, config: Config) -> Shape:
    """Banks and lane enables for beats of some kinds."""
    return Shape(
        element_bytes=element_bytes,
        depth=kinds[0].depth,
        banks=max(kind.lanes for kind in kinds),
        grain=min(element_bytes, config.bus_bytes),
    )


class Write:
    """One bank's write port, before the memories: enables per grain, an address and an element."""

    def __init__(self, shape: Shape, number: int) -> None:
        self.enable = Signal(shape.grains, name=f"write_enable_{number}")
        self.address = Signal(bits_for_depth(shape.bank_depth), name=f"write_address_{number}")
        self.data = Signal(shape.element_bytes * 8, name=f"write_data_{number}")


def bank_of(index: Value, banks: int) -> Value:
    """Bank of an element."""
    return index[: log2(banks)] if banks > 1 else Const(0, 1)


def element_of_lane(kind: Kind, beat: Any, data: Value, lane: Value, shape: Shape) -> Value:
    """The element in one lane of a beat, as the scratchpad holds it."""
    size = kind.element_bytes * 8
    if kind.lanes == 1:
        element = data
    else:
        element = Array(data[n * size : (n + 1) * size] for n in range(kind.lanes))[lane]
    if kind.memory == MemoryId.ACC_8BIT:
        return Cat(_extend(element[n : n + 8]) for n in range(0, len(element), 8))
    return element


def _extend(byte: Value) -> Value:
    """A byte as a 32-bit accumulator."""
    return Cat(byte, byte[7].replicate(24))


class Scratchpad(wiring.Component):
    """One scratchpad.

    Args:
        kinds: of transfers that fill it; ``beat.kind`` counts them among ``numbers``, the unit's kinds.
        copies: how many elements can be read at once.

    Ports: ``beat_valid`` writes what ``beat`` describes from ``data``; ``word_valid`` writes element
    ``word_index`` whole. ``read_index_n`` gives ``element_n`` in the next cycle.
    """

    def __init__(
        self,
        kinds: Sequence[Kind],
        unit_kinds: Sequence[Kind],
        element_bytes: int,
        config: Config,
        *,
        copies: int = 1,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self._kinds = kinds
        self._unit_kinds = unit_kinds
        self._copies = copies
        self.layout = scratchpad_shape(kinds, element_bytes, config)
        index = sram_bits(config)
        ports: dict[str, Any] = {
            "beat_valid": In(1),
            "beat": In(BeatLayout(unit_kinds, config)),
            "data": In(config.bus_bits),
            "word_valid": In(1),
            "word_index": In(index),
            "word": In(element_bytes * 8),
            **(extra or {}),
        }
        for n in range(copies):
            ports[f"read_index_{n}"] = In(index)
            ports[f"element_{n}"] = Out(element_bytes * 8)
        super().__init__(ports)

    def writes(self, m: Module) -> list[Write]:
        """The banks' write ports; combinational."""
        shape = self.layout
        banks = shape.banks
        found = []
        for number in range(banks):
            write = Write(shape, number)
            found.append(write)
            with m.If(self.word_valid):
                m.d.comb += [
                    write.address.eq(self.word_index >> log2(banks)),
                    write.data.eq(self.word),
                    write.enable.eq((bank_of(self.word_index, banks) == number).replicate(shape.grains)),
                ]
            with m.If(self.beat_valid):
                self._write_beat(m, write, number)
        return found

    def _write_beat(self, m: Module, write: Write, number: int) -> None:
        shape, beat = self.layout, self.beat
        banks = shape.banks
        distance = Signal(max(1, log2(banks)), name=f"distance_{number}")
        m.d.comb += [
            distance.eq(bank_of(number - beat.index, banks)),
            write.address.eq((beat.index + distance) >> log2(banks)),
        ]
        enables, values = [], []
        for position, kind in enumerate(self._unit_kinds):
            if kind not in self._kinds:
                enables.append(Const(0, 1))
                values.append(Const(0, 1))
                continue
            lane = Signal(max(1, log2(kind.lanes)), name=f"lane_{number}_{position}")
            m.d.comb += lane.eq(beat.lane + distance)
            element = element_of_lane(kind, beat, self.data, lane, shape)
            values.append(element.replicate(max(1, shape.element_bytes * 8 // len(element))))
            enables.append((distance < beat.take).replicate(shape.grains) & _grains(kind, beat.chunk, shape))
        m.d.comb += [
            write.enable.eq(choose(beat.kind, enables)),
            write.data.eq(choose(beat.kind, values)),
        ]

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        writes = self.writes(m)
        for copy in range(self._copies):
            index = getattr(self, f"read_index_{copy}")
            m.d.comb += getattr(self, f"element_{copy}").eq(self._read(m, writes, index, copy))
        self.mirror(m, writes)
        return m

    def mirror(self, m: Module, writes: Sequence[Write]) -> None:
        """Add what else follows the ``writes``."""

    def _read(self, m: Module, writes: list[Write], index: Value, copy: int) -> Value:
        shape = self.layout
        elements = []
        for number, write in enumerate(writes):
            memory = Memory(shape=shape.element_bytes * 8, depth=shape.bank_depth, init=[])
            m.submodules[f"copy_{copy}_bank_{number}"] = memory
            port = memory.write_port(granularity=shape.grain * 8)
            read = memory.read_port()
            m.d.comb += [
                port.addr.eq(write.address),
                port.data.eq(write.data),
                port.en.eq(write.enable),
                read.addr.eq(index >> log2(shape.banks)),
                read.en.eq(1),
            ]
            elements.append(read.data)
        if shape.banks == 1:
            return elements[0]
        bank = Signal(log2(shape.banks), name=f"bank_{copy}")
        m.d.sync += bank.eq(bank_of(index, shape.banks))
        return Array(elements)[bank]


def _grains(kind: Kind, chunk: Value, shape: Shape) -> Value:
    """Which grains of an element a beat writes."""
    if kind.chunks == 1:
        return Const(-1, shape.grains)
    together = shape.grains // kind.chunks
    bits = [chunk == n // together for n in range(shape.grains)]
    return Cat(*bits)


class OutMirror(wiring.Component):
    """The low bytes of the accumulators, read by STOREs a beat at a time.

    Mirrors ``writes``, those of the accumulators' banks. In the cycle after ``advance``, ``data`` and
    ``strobe`` are what ``beat`` asked for: elements in their lanes of the bus. Without ``advance`` they stay.
    """

    def __init__(self, kind: Kind, writes: Sequence[Write], shape: Shape, config: Config) -> None:
        self._kind = kind
        self._writes = writes
        self._shape = shape
        self._config = config
        super().__init__(
            {
                "advance": In(1),
                "beat": In(BeatLayout([kind], config)),
                "data": Out(config.bus_bits),
                "strobe": Out(config.bus_bytes),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        kind, shape, beat = self._kind, self._shape, self.beat
        banks = shape.banks
        bytes_ = kind.element_bytes
        grain = shape.grain // 4
        elements = []
        for number, write in enumerate(self._writes):
            memory = Memory(shape=bytes_ * 8, depth=shape.bank_depth, init=[])
            m.submodules[f"bank_{number}"] = memory
            port = memory.write_port(granularity=grain * 8)
            read = memory.read_port()
            distance = Signal(max(1, log2(banks)), name=f"distance_{number}")
            m.d.comb += [
                port.addr.eq(write.address),
                port.data.eq(Cat(write.data[n : n + 8] for n in range(0, len(write.data), 32))),
                port.en.eq(write.enable),
                distance.eq(bank_of(number - beat.index, banks)),
                read.addr.eq((beat.index + distance) >> log2(banks)),
                read.en.eq(self.advance),
            ]
            elements.append(read.data)
        chosen = Signal(BeatLayout([kind], self._config))
        with m.If(self.advance):
            m.d.sync += chosen.eq(beat)
        if kind.lanes == 1:
            bus = self._config.bus_bits
            element = Array(elements)[bank_of(chosen.index, banks)] if banks > 1 else elements[0]
            parts = [element[n * bus : (n + 1) * bus] for n in range(kind.chunks)]
            m.d.comb += [self.data.eq(choose(chosen.chunk, parts)), self.strobe.eq(-1)]
            return m
        for lane in range(kind.lanes):
            distance = Signal(max(1, log2(banks)), name=f"from_{lane}")
            inside = Signal(name=f"inside_{lane}")
            m.d.comb += [
                distance.eq(lane - chosen.lane),
                inside.eq((lane >= chosen.lane) & (lane - chosen.lane < chosen.take)),
                self.data[lane * bytes_ * 8 : (lane + 1) * bytes_ * 8].eq(
                    Mux(inside, Array(elements)[bank_of(chosen.index + distance, banks)], 0)
                ),
                self.strobe[lane * bytes_ : (lane + 1) * bytes_].eq(inside.replicate(bytes_)),
            ]
        return m


class Accumulators(Scratchpad):
    """The accumulators: two elements can be read at once, and beats of their low bytes for STOREs."""

    def __init__(self, unit_kinds: Sequence[Kind], out: Kind, config: Config) -> None:
        kinds = [kind for kind in unit_kinds if kind.memory in (MemoryId.ACC, MemoryId.ACC_8BIT)]
        self._out = out
        self._config = config
        super().__init__(
            kinds,
            unit_kinds,
            config.acc_element_bytes,
            config,
            copies=2,
            extra={
                "out_advance": In(1),
                "out_beat": In(BeatLayout([out], config)),
                "out_data": Out(config.bus_bits),
                "out_strobe": Out(config.bus_bytes),
            },
        )

    def mirror(self, m: Module, writes: Sequence[Write]) -> None:
        m.submodules.mirror = mirror = OutMirror(self._out, writes, self.layout, self._config)
        m.d.comb += [
            mirror.advance.eq(self.out_advance),
            mirror.beat.eq(self.out_beat),
            self.out_data.eq(mirror.data),
            self.out_strobe.eq(mirror.strobe),
        ]
