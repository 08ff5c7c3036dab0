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
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from accel.core import memories
from accel.core.config import Config
from accel.core.isa import Unit
from accel.core.memories import bits_of
from accel.hw.datapath.beats import BeatLayout
from accel.hw.datapath.kinds import Kind, choose
from accel.hw.datapath.layouts import bits_for_depth, log2, sram_bits

UNORDERED = {"no_rw_check": 1}
"""Of memories in which no element matters that is read in the cycle in which it is written: tokens, or
what is forwarded, keep both apart. So synthesis need not keep what was there before in registers beside a
block RAM, which does not promise it."""


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


class ElementRead(wiring.Signature):
    """How elements of a scratchpad are read, seen from the reader: ``element`` is the one at the ``index`` of
    the cycle before."""

    def __init__(self, holds: memories.Scratchpad, config: Config) -> None:
        super().__init__({"index": Out(sram_bits(config)), "element": In(holds.word_bits(config))})


class Access(wiring.Signature):
    """How simulation fills a scratchpad and looks into it, seen from simulation.

    In a cycle with ``preload``, ``preload_word`` is written at ``preload_index``. In the cycle after one with
    ``peek``, ``element`` is the one at ``peek_index``. Neither comes while the unit works.
    """

    def __init__(self, holds: memories.Scratchpad, config: Config) -> None:
        index, bits = sram_bits(config), holds.word_bits(config)
        super().__init__(
            {
                "preload": Out(1),
                "preload_index": Out(index),
                "preload_word": Out(bits),
                "peek": Out(1),
                "peek_index": Out(index),
                "element": In(bits),
            }
        )


class Write:
    """One bank's write port, before the memories: enables per grain, an address and an element."""

    def __init__(self, shape: Shape, number: int, name: str = "write") -> None:
        self.enable = Signal(shape.grains, name=f"{name}_enable_{number}")
        self.address = Signal(
            bits_for_depth(shape.bank_depth), name=f"{name}_address_{number}", reset_less=True
        )
        self.data = Signal(shape.element_bits, name=f"{name}_data_{number}", reset_less=True)


def held(m: Module, early: Write, shape: Shape, number: int) -> Write:
    """A bank's write port a cycle later."""
    late = Write(shape, number, "held")
    m.d.sync += [
        late.enable.eq(early.enable),
        late.address.eq(early.address),
        late.data.eq(early.data),
    ]
    return late


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
        late: everything is written a cycle later, from registers in front of the block RAMs; nobody reads it
            so soon.

    Ports: ``beat_valid`` writes what ``beat`` describes from ``data``; ``word_valid`` writes element
    ``word_index`` whole. ``read_n`` reads one of the elements, and the port of a tap's name its; where two
    are in one bank, the later tap is not what its index says. Where SET says how values are read,
    ``unsigned`` does, and ``zero`` is subtracted if there is room for it; both stand still while there are
    beats.
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
        late: bool = False,
    ) -> None:
        self.holds = holds
        self._kinds = kinds = [kind for kind in unit_kinds if kind.route.scratchpad is holds]
        self._unit_kinds = unit_kinds
        self._copies = copies
        self.paced = paced
        self._circular = circular
        self._taps = taps
        self._late = late
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
        reads = [*(f"read_{n}" for n in range(copies)), *taps]
        super().__init__(ports | {name: In(ElementRead(holds, config)) for name in reads})

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
        if self._late:
            writes = [held(m, write, self.layout, number) for number, write in enumerate(writes)]
        for copy in range(self._copies):
            names = () if copy else self._taps
            reads = [getattr(self, name) for name in (f"read_{copy}", *names)]
            elements = self._read(m, writes, [read.index for read in reads], copy)
            m.d.comb += [read.element.eq(element) for read, element in zip(reads, elements, strict=True)]
        self.mirror(m, writes)
        return m

    def mirror(self, m: Module, writes: Sequence[Write]) -> None:
        """Add what else follows the ``writes``."""

    def _read(self, m: Module, writes: list[Write], indices: Sequence[Value], copy: int) -> list[Value]:
        """The elements of some indices; a bank reads for the first one that is in it."""
        shape = self.layout
        elements = []
        for number, write in enumerate(writes):
            memory = Memory(shape=shape.element_bits, depth=shape.bank_depth, init=[], attrs=UNORDERED)
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


def access_ports(unit: Unit, config: Config) -> dict[str, Any]:
    """The ports through which simulation has :class:`Access` to the scratchpads that a unit holds."""
    pads = (pad for pad in memories.SCRATCHPADS.values() if pad.filled_by is unit)
    return {f"{pad}_access": In(Access(pad, config)) for pad in pads}


def connect_access(m: Module, unit: wiring.Component, pad: Scratchpad) -> None:
    """Give simulation access to a scratchpad by the unit's :func:`access_ports`."""
    access = getattr(unit, f"{pad.holds}_access")
    with m.If(access.preload):
        m.d.comb += [
            pad.word_valid.eq(1),
            pad.word_index.eq(access.preload_index),
            pad.word.eq(access.preload_word),
        ]
    m.d.comb += access.element.eq(pad.read_0.element)
    with m.If(access.peek):
        m.d.comb += pad.read_0.index.eq(access.peek_index)
        if pad.paced:
            m.d.comb += pad.advance.eq(1)


def _grains(kind: Kind, chunk: Value, shape: Shape) -> Value:
    """Which grains of an element a beat writes."""
    if kind.chunks == 1:
        return Const(-1, shape.grains)
    together = shape.grains // kind.chunks
    bits = [chunk == n // together for n in range(shape.grains)]
    return Cat(*bits)
