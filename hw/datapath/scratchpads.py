"""Scratchpads: written by beats from the bus or by whole elements, read by element or, for STOREs, by beat.

A scratchpad is split into banks by element index, so that a beat touches each bank at most once; an
element longer than a beat is written in parts by lane enables. Reads take a cycle and see what was
written in earlier cycles.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from accel.core import memories
from accel.core.config import Config
from accel.core.isa import Unit
from accel.core.memories import ACC, bits_of
from accel.hw.datapath.layouts import bits_for_depth, log2, sram_bits
from accel.hw.datapath.transfer import BeatLayout, Kind, choose


@dataclass(frozen=True)
class Shape:
    """How a scratchpad is laid out."""

    element_bits: int
    depth: int
    banks: int
    grain_bits: int
    """Bits of an element that are enabled together."""

    @property
    def bank_depth(self) -> int:
        return -(-self.depth // self.banks)

    @property
    def grains(self) -> int:
        return self.element_bits // self.grain_bits


def scratchpad_shape(
    holds: memories.Scratchpad,
    kinds: Sequence[Kind],
    config: Config,
    *,
    circular: bool = False,
    taps: int = 1,
) -> Shape:
    """Banks and lane enables for beats of some kinds, and for so many banks of ``taps`` at least."""
    element_bytes, element_bits = holds.element_bytes(config), holds.word_bits(config)
    depth, banks = holds.depth(config), max(taps, *(kind.lanes for kind in kinds))
    return Shape(
        element_bits=element_bits,
        depth=depth,
        banks=min(banks, depth) if circular else banks,
        grain_bits=min(element_bytes, config.bus_bytes) * element_bits // element_bytes,
    )


class Write:
    """One bank's write port, before the memories: enables per grain, an address and an element."""

    def __init__(self, shape: Shape, number: int) -> None:
        self.enable = Signal(shape.grains, name=f"write_enable_{number}")
        self.address = Signal(bits_for_depth(shape.bank_depth), name=f"write_address_{number}")
        self.data = Signal(shape.element_bits, name=f"write_data_{number}")


def bank_of(index: Value, banks: int) -> Value:
    """Bank of an element."""
    return index[: log2(banks)] if banks > 1 else Const(0, 1)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How values from DRAM are read, as SET has left it: whether unsigned, and what is subtracted, if there
    is room for it."""

    unsigned: Value
    zero: Value | None

    def value(self, read: Value, bits: int) -> Value:
        """A value from DRAM with as many ``bits`` as the scratchpad has."""
        value = Cat(read, (read[-1] & ~self.unsigned).replicate(bits - len(read)))
        return value if self.zero is None else (value.as_signed() - self.zero)[:bits]


def element_of_lane(kind: Kind, data: Value, lane: Value, config: Config, reading: Reading | None) -> Value:
    """The element in one lane of a beat, as the scratchpad holds it."""
    size = kind.element_bytes * 8
    if kind.lanes == 1:
        element = data
    else:
        element = Array(data[n * size : (n + 1) * size] for n in range(kind.lanes))[lane]
    narrow, wide = bits_of(kind.route.dtype), kind.route.scratchpad.lane_bits(config)
    if narrow < wide:
        values = [element[n : n + narrow] for n in range(0, len(element), narrow)]
        return Cat(_extend(one, wide) if reading is None else reading.value(one, wide) for one in values)
    return element


def as_held(word: Value, pad: memories.Scratchpad, config: Config) -> Value:
    """An element as the scratchpad holds it, from how software does."""
    wide, narrow = bits_of(pad.held_dtype(config)), pad.lane_bits(config)
    if wide == narrow:
        return word
    return Cat(word[n : n + narrow] for n in range(0, len(word), wide))


def as_read(word: Value, pad: memories.Scratchpad, config: Config) -> Value:
    """The inverse of :func:`as_held`."""
    wide, narrow = bits_of(pad.held_dtype(config)), pad.lane_bits(config)
    if wide == narrow:
        return word
    return Cat(_extend(word[n : n + narrow], wide) for n in range(0, len(word), narrow))


def _extend(value: Value, bits: int) -> Value:
    """A signed value with more bits."""
    return Cat(value, value[-1].replicate(bits - len(value)))


class Scratchpad(wiring.Component):
    """One scratchpad.

    Args:
        holds: which one it is.
        unit_kinds: the kinds of transfers that its unit executes, as ``beat.kind`` counts them.
        copies: how many elements can be read at once.
        paced: with a port ``advance``, without which no element is read and those that were read stay.
        circular: behind the last element comes the first; nothing writes more elements than there are.
        taps: names of the elements that can be read at once with element 0, each in a bank of its own, of
            which there are ``tap_banks`` at least.

    Ports: ``beat_valid`` writes what ``beat`` describes from ``data``; ``word_valid`` writes element
    ``word_index`` whole. ``read_index_n`` gives ``element_n`` in the next cycle, and so does the index of a
    tap; where two are in one bank, the later tap is not what its index says. Where SET says how values are
    read, ``unsigned`` does, and ``zero`` is subtracted if there is room for it; both stand still while there
    are beats.
    """

    def __init__(
        self,
        holds: memories.Scratchpad,
        unit_kinds: Sequence[Kind],
        config: Config,
        *,
        copies: int = 1,
        paced: bool = False,
        circular: bool = False,
        extra: Mapping[str, Any] | None = None,
        taps: Sequence[str] = (),
    ) -> None:
        self.holds = holds
        self._kinds = kinds = [kind for kind in unit_kinds if kind.route.scratchpad is holds]
        self._unit_kinds = unit_kinds
        self._copies = copies
        self.paced = paced
        self._circular = circular
        self._taps = taps
        banks = config.tap_banks if taps else 1
        self.layout = scratchpad_shape(holds, kinds, config, circular=circular, taps=banks)
        bits = self.layout.element_bits
        self._config = config
        self.is_set = bool(config.post) and any(kind.route.set_by is not None for kind in kinds)
        self.shifted = self.is_set and holds.lane_bits(config) != bits_of(holds.dtype)
        index = sram_bits(config)
        ports: dict[str, Any] = {
            "beat_valid": In(1),
            "beat": In(BeatLayout(unit_kinds, config)),
            "data": In(config.bus_bits),
            "word_valid": In(1),
            "word_index": In(index),
            "word": In(bits),
            **(extra or {}),
            **({"unsigned": In(1)} if self.is_set else {}),
            **({"zero": In(signed(holds.lane_bits(config)))} if self.shifted else {}),
            **({"advance": In(1)} if paced else {}),
        }
        for n in range(copies):
            ports[f"read_index_{n}"] = In(index)
            ports[f"element_{n}"] = Out(bits)
        for name in taps:
            ports[f"{name}_index"] = In(index)
            ports[name] = Out(bits)
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
        index = beat.index + distance
        if self._circular:
            index = index[: log2(shape.depth)]
        m.d.comb += [
            distance.eq(bank_of(number - beat.index, banks)),
            write.address.eq(index >> log2(banks)),
        ]
        enables, values = [], []
        for position, kind in enumerate(self._unit_kinds):
            if kind not in self._kinds:
                enables.append(Const(0, 1))
                values.append(Const(0, 1))
                continue
            lane = Signal(max(1, log2(kind.lanes)), name=f"lane_{number}_{position}")
            m.d.comb += lane.eq(beat.lane + distance)
            reading = None
            if self.is_set and kind.route.set_by is not None:
                reading = Reading(unsigned=self.unsigned, zero=self.zero if self.shifted else None)
            element = element_of_lane(kind, self.data, lane, self._config, reading)
            values.append(element.replicate(max(1, shape.element_bits // len(element))))
            enables.append((distance < beat.take).replicate(shape.grains) & _grains(kind, beat.chunk, shape))
        m.d.comb += [
            write.enable.eq(choose(beat.kind, enables)),
            write.data.eq(choose(beat.kind, values)),
        ]

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        writes = self.writes(m)
        for copy in range(self._copies):
            names = () if copy else self._taps
            indices = [getattr(self, f"read_index_{copy}"), *(getattr(self, f"{tap}_index") for tap in names)]
            found = [getattr(self, f"element_{copy}"), *(getattr(self, tap) for tap in names)]
            elements = self._read(m, writes, indices, copy)
            m.d.comb += [one.eq(element) for one, element in zip(found, elements, strict=True)]
        self.mirror(m, writes)
        return m

    def mirror(self, m: Module, writes: Sequence[Write]) -> None:
        """Add what else follows the ``writes``."""

    def _read(self, m: Module, writes: list[Write], indices: Sequence[Value], copy: int) -> list[Value]:
        """The elements of some indices; a bank reads for the first one that is in it."""
        shape = self.layout
        elements = []
        for number, write in enumerate(writes):
            memory = Memory(shape=shape.element_bits, depth=shape.bank_depth, init=[])
            m.submodules[f"copy_{copy}_bank_{number}"] = memory
            port = memory.write_port(granularity=shape.grain_bits)
            read = memory.read_port()
            *first, address = (index >> log2(shape.banks) for index in indices)
            for index, own in zip(indices[-2::-1], first[::-1], strict=True):
                address = Mux(bank_of(index, shape.banks) == number, own, address)
            m.d.comb += [
                port.addr.eq(write.address),
                port.data.eq(write.data),
                port.en.eq(write.enable),
                read.addr.eq(address),
                read.en.eq(self.advance if self.paced else 1),
            ]
            elements.append(read.data)
        if shape.banks == 1:
            return elements
        found: list[Value] = []
        for position, index in enumerate(indices):
            bank = Signal(log2(shape.banks), name=f"bank_{copy}" + (f"_{position}" if position else ""))
            with m.If(self.advance) if self.paced else nullcontext():
                m.d.sync += bank.eq(bank_of(index, shape.banks))
            found.append(Array(elements)[bank])
        return found


class SlotLayout(data.StructLayout):
    """A part of a beat whose values are requantized together: the ``part``-th of an element's, ``distance``
    elements behind the beat's first; ``inside`` if the beat has that one."""

    def __init__(self, config: Config) -> None:
        lanes = max(1, config.bus_bytes // config.out_element_bytes)
        parts = config.out_element_bytes // config.lanes
        super().__init__({"part": log2(parts), "distance": signed(log2(lanes) + 1), "inside": 1})


def part_of(word: Value, part: Value, bits: int) -> Value:
    """One of the parts of so many ``bits`` that a word consists of; with fewer parts than ``part`` counts,
    again from the first on."""
    parts = [word[n : n + bits] for n in range(0, len(word), bits)]
    return parts[0] if len(parts) == 1 else Array(parts)[part[: log2(len(parts))]]


def access_ports(unit: Unit, config: Config) -> dict[str, Any]:
    """The ports through which simulation fills and looks into the scratchpads that a unit holds: in the cycle
    after ``peek_<name>`` the element at ``peek_<name>_index`` is on the port of the scratchpad's name."""
    ports: dict[str, Any] = {}
    for pad in memories.SCRATCHPADS.values():
        if pad.filled_by is unit:
            ports |= {
                f"preload_{pad}": In(1),
                f"preload_{pad}_index": In(sram_bits(config)),
                f"preload_{pad}_word": In(pad.word_bits(config)),
                f"peek_{pad}": In(1),
                f"peek_{pad}_index": In(sram_bits(config)),
                f"{pad}": Out(pad.word_bits(config)),
            }
    return ports


def connect_access(m: Module, unit: wiring.Component, pad: Scratchpad) -> None:
    """Give simulation access to a scratchpad by the unit's :func:`access_ports`."""
    name = pad.holds.name
    with m.If(getattr(unit, f"preload_{name}")):
        m.d.comb += [
            pad.word_valid.eq(1),
            pad.word_index.eq(getattr(unit, f"preload_{name}_index")),
            pad.word.eq(getattr(unit, f"preload_{name}_word")),
        ]
    m.d.comb += getattr(unit, name).eq(pad.element_0)
    with m.If(getattr(unit, f"peek_{name}")):
        m.d.comb += pad.read_index_0.eq(getattr(unit, f"peek_{name}_index"))
        if pad.paced:
            m.d.comb += pad.advance.eq(1)


def _grains(kind: Kind, chunk: Value, shape: Shape) -> Value:
    """Which grains of an element a beat writes."""
    if kind.chunks == 1:
        return Const(-1, shape.grains)
    together = shape.grains // kind.chunks
    bits = [chunk == n // together for n in range(shape.grains)]
    return Cat(*bits)


def mirror_ports(kinds: Sequence[Kind], config: Config) -> dict[str, Any]:
    """The ports of :class:`OutMirror`."""
    ports: dict[str, Any] = {
        "advance": In(1),
        "beat": In(BeatLayout(kinds, config)),
        "data": Out(config.bus_bits),
        "strobe": Out(config.bus_bytes),
    }
    if any(kind.finished for kind in kinds):
        ports |= {"slot": In(SlotLayout(config)), "sums": Out(config.lanes * bits_of(ACC.dtype))}
    return ports


class OutMirror(wiring.Component):
    """What STOREs write of the accumulators, read a beat at a time: the low bytes, or all where some of the
    ``kinds`` of STOREs need that.

    Mirrors ``writes``, those of the accumulators' banks. In the cycle after ``advance``, ``data`` and
    ``strobe`` are what ``beat`` asked for: elements in their lanes of the bus. Without ``advance`` they stay.
    Of kinds that are finished it is ``sums``: the accumulators that ``slot`` says.
    """

    def __init__(self, kinds: Sequence[Kind], writes: Sequence[Write], shape: Shape, config: Config) -> None:
        self._kinds = kinds
        self._writes = writes
        self._shape = shape
        self._config = config
        super().__init__(mirror_ports(kinds, config))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        shape, beat = self._shape, self.beat
        banks = shape.banks
        bytes_ = max(kind.element_bytes for kind in self._kinds)
        narrow, wide = max(bits_of(kind.route.dtype) for kind in self._kinds), bits_of(ACC.dtype)
        grain = shape.grain_bits * narrow // wide
        elements = []
        for number, write in enumerate(self._writes):
            memory = Memory(shape=bytes_ * 8, depth=shape.bank_depth, init=[])
            m.submodules[f"bank_{number}"] = memory
            port = memory.write_port(granularity=grain)
            read = memory.read_port()
            distance = Signal(max(1, log2(banks)), name=f"distance_{number}")
            m.d.comb += [
                port.addr.eq(write.address),
                port.data.eq(Cat(write.data[n : n + narrow] for n in range(0, len(write.data), wide))),
                port.en.eq(write.enable),
                distance.eq(bank_of(number - beat.index, banks)),
                read.addr.eq((beat.index + distance) >> log2(banks)),
                read.en.eq(self.advance),
            ]
            elements.append(read.data)
        chosen = Signal(BeatLayout(self._kinds, self._config))
        with m.If(self.advance):
            m.d.sync += chosen.eq(beat)
        if any(kind.finished for kind in self._kinds):
            self._sums(m, elements, chosen)
        for number, kind in enumerate(self._kinds):
            if kind.finished:
                continue
            bits = bits_of(kind.route.dtype)
            held = elements
            if bits < narrow:
                held = [Cat(one[n : n + bits] for n in range(0, len(one), narrow)) for one in elements]
            if len(self._kinds) == 1:
                self._beat(m, kind, held, chosen)
            else:
                with m.If(chosen.kind == number):
                    self._beat(m, kind, held, chosen, f"_of_{kind.route.name.lower()}")
        return m

    def _sums(self, m: Module, elements: Sequence[Value], chosen: Any) -> None:
        """The accumulators of a slot, from the elements that the banks have read."""
        slot = Signal(SlotLayout(self._config))
        with m.If(self.advance):
            m.d.sync += slot.eq(self.slot)
        bank = bank_of(chosen.index + slot.distance, len(elements))
        element = Array(elements)[bank] if len(elements) > 1 else elements[0]
        m.d.comb += self.sums.eq(part_of(element, slot.part, len(self.sums)))

    def _beat(self, m: Module, kind: Kind, elements: Sequence[Value], chosen: Any, suffix: str = "") -> None:
        """A beat of one kind, from the elements that the banks have read."""
        banks, bytes_ = self._shape.banks, kind.element_bytes
        if kind.lanes == 1:
            bus = self._config.bus_bits
            element = Array(elements)[bank_of(chosen.index, banks)] if banks > 1 else elements[0]
            parts = [element[n * bus : (n + 1) * bus] for n in range(kind.chunks)]
            m.d.comb += [self.data.eq(choose(chosen.chunk, parts)), self.strobe.eq(-1)]
            return
        for lane in range(kind.lanes):
            distance = Signal(max(1, log2(banks)), name=f"from_{lane}{suffix}")
            inside = Signal(name=f"inside_{lane}{suffix}")
            m.d.comb += [
                distance.eq(lane - chosen.lane),
                inside.eq((lane >= chosen.lane) & (lane - chosen.lane < chosen.take)),
                self.data[lane * bytes_ * 8 : (lane + 1) * bytes_ * 8].eq(
                    Mux(inside, Array(elements)[bank_of(chosen.index + distance, banks)], 0)
                ),
                self.strobe[lane * bytes_ : (lane + 1) * bytes_].eq(inside.replicate(bytes_)),
            ]


def out_ports(kinds: Sequence[Kind], config: Config) -> dict[str, Any]:
    """The ports of :class:`OutMirror` as whoever passes them on calls them."""
    return {f"out_{name}": member for name, member in mirror_ports(kinds, config).items()}


class Accumulators(Scratchpad):
    """The accumulators: two elements can be read at once, and beats for the kinds of STOREs in ``out``."""

    def __init__(self, unit_kinds: Sequence[Kind], out: Sequence[Kind], config: Config) -> None:
        self._out = out
        self._config = config
        super().__init__(
            ACC,
            unit_kinds,
            config,
            copies=2,
            extra=out_ports(out, config),
        )

    def mirror(self, m: Module, writes: Sequence[Write]) -> None:
        m.submodules.mirror = mirror = OutMirror(self._out, writes, self.layout, self._config)
        for name, member in mirror_ports(self._out, self._config).items():
            ours, theirs = getattr(self, f"out_{name}"), getattr(mirror, name)
            m.d.comb += theirs.eq(ours) if member.flow is In else ours.eq(theirs)
