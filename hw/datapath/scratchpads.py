"""Scratchpads: written by beats or whole elements, read by element or, for STOREs, by beat.

A beat touches each bank at most once. A read takes a cycle and returns the data of earlier cycles.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from msgspec import Struct

from accel.core import scratchpad_specs
from accel.core.access_names import write_names
from accel.core.config import Config
from accel.core.isa import Unit, setting_of
from accel.core.scratchpad_specs import bits_of
from accel.hw.datapath.access_probes import AccessProbes
from accel.hw.datapath.beat_walker import BeatLayout
from accel.hw.datapath.transfer_memories import Kind, choose
from accel.hw.datapath.word_layouts import bits_for_depth, log2, sram_bits

UNORDERED = {"no_rw_check": 1}
"""Attribute of memories whose elements nobody reads while they are written, so synthesis omits logic that
would return the old word."""


class Shape(Struct, frozen=True):
    element_bits: int
    depth: int
    banks: int
    grain_bits: int
    """Bits with a common write enable."""

    @property
    def bank_depth(self) -> int:
        return -(-self.depth // self.banks)

    @property
    def grains(self) -> int:
        return self.element_bits // self.grain_bits


def scratchpad_shape(
    holds: scratchpad_specs.Scratchpad,
    kinds: Sequence[Kind],
    config: Config,
    *,
    circular: bool = False,
    taps: int = 1,
) -> Shape:
    """Return banks and lane enables for beats of some kinds, with at least ``taps`` banks."""
    if holds.is_table:
        depth, _ = words_of(holds, config)
        return Shape(element_bits=config.bus_bits, depth=depth, banks=1, grain_bits=config.bus_bits)
    element_bytes, element_bits = holds.element_bytes(config), holds.word_bits(config)
    depth, banks = holds.depth(config), max(taps, *(kind.lanes for kind in kinds))
    return Shape(
        element_bits=element_bits,
        depth=depth,
        banks=min(banks, depth) if circular else banks,
        grain_bits=min(element_bytes, config.bus_bytes) * element_bits // element_bytes,
    )


def words_of(holds: scratchpad_specs.Scratchpad, config: Config) -> tuple[int, int]:
    """Return a scratchpad's number of words, and the bytes of a word in software's format. A word is an
    element, or a beat of a table."""
    depth, size = holds.depth(config), holds.held_bytes(config)
    if not holds.is_table:
        return depth, size
    return depth * size // config.bus_bytes, config.bus_bytes


def _word_bits(holds: scratchpad_specs.Scratchpad, config: Config) -> int:
    return config.bus_bits if holds.is_table else holds.word_bits(config)


def _index_bits(holds: scratchpad_specs.Scratchpad, config: Config) -> int:
    return log2(words_of(holds, config)[0]) if holds.is_table else sram_bits(config)


class ElementRead(wiring.Signature):
    """Reads of a scratchpad: ``element`` is the one at the previous cycle's ``index``. For tables, see
    :func:`words_of`."""

    def __init__(self, holds: scratchpad_specs.Scratchpad, config: Config) -> None:
        index, bits = _index_bits(holds, config), _word_bits(holds, config)
        super().__init__({"index": Out(index), "element": In(bits)})


class Access(wiring.Signature):
    """Access to a scratchpad, seen from simulation.

    ``preload`` writes ``preload_word`` to ``preload_index``. In the cycle after ``peek``, ``element`` is the
    one at ``peek_index``. Neither occurs while the unit works. Indices count words (:func:`words_of`).
    """

    def __init__(self, holds: scratchpad_specs.Scratchpad, config: Config) -> None:
        index, bits = _index_bits(holds, config), _word_bits(holds, config)
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
    """One bank's write port."""

    def __init__(self, shape: Shape, number: int, name: str = "write") -> None:
        self.enable = Signal(shape.grains, name=f"{name}_enable_{number}")
        self.address = Signal(
            bits_for_depth(shape.bank_depth), name=f"{name}_address_{number}", reset_less=True
        )
        self.data = Signal(shape.element_bits, name=f"{name}_data_{number}", reset_less=True)


def held(m: Module, early: Write, shape: Shape, number: int) -> Write:
    """Delay a bank's write port by one cycle."""
    late = Write(shape, number, "held")
    m.d.sync += [
        late.enable.eq(early.enable),
        late.address.eq(early.address),
        late.data.eq(early.data),
    ]
    return late


def _ones(value: Value) -> Value:
    total: Value = sum(value)
    return total


def bank_of(index: Value, banks: int) -> Value:
    return index[: log2(banks)] if banks > 1 else Const(0, 1)


class Reading(Struct, frozen=True, kw_only=True):
    """Conversion of DRAM values. ``zero`` is the zero point to subtract if lanes are wide enough."""

    unsigned: Value
    zero: Value | None

    def value(self, read: Value, bits: int) -> Value:
        value = Cat(read, (read[-1] & ~self.unsigned).replicate(bits - len(read)))
        return value if self.zero is None else (value.as_signed() - self.zero)[:bits]


def element_of_lane(kind: Kind, data: Value, lane: Value, config: Config, reading: Reading | None) -> Value:
    """Return the element in one lane of a beat in the scratchpad's format."""
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


def as_held(word: Value, pad: scratchpad_specs.Scratchpad, config: Config) -> Value:
    """Convert an element from software's format to the scratchpad's."""
    wide, narrow = bits_of(pad.held_dtype(config)), pad.lane_bits(config)
    if wide == narrow:
        return word
    return Cat(word[n : n + narrow] for n in range(0, len(word), wide))


def as_read(word: Value, pad: scratchpad_specs.Scratchpad, config: Config) -> Value:
    """The inverse of :func:`as_held`."""
    wide, narrow = bits_of(pad.held_dtype(config)), pad.lane_bits(config)
    if wide == narrow:
        return word
    return Cat(_extend(word[n : n + narrow], wide) for n in range(0, len(word), narrow))


def _extend(value: Value, bits: int) -> Value:
    return Cat(value, value[-1].replicate(bits - len(value)))


class Scratchpad(wiring.Component):
    """``beat_valid`` writes the elements of ``beat`` from ``data``, ``word_valid`` the whole element
    ``word_index``. ``read_n`` and a tap's port read one element each. If two of them are in one bank, the
    later tap's result is undefined. ``unsigned`` and ``zero``, where SET defines them, are constant while
    beats arrive.

    Args:
        unit_kinds: as numbered by ``beat.kind``.
        copies: elements that can be read per cycle.
        paced: adds ``advance``, without which no element is read and read elements hold.
        circular: the first element follows the last. A transfer writes at most all elements.
        taps: names of elements that can be read together with ``read_0``, from other banks.
        late: delays writes by a cycle.
    """

    def __init__(
        self,
        holds: scratchpad_specs.Scratchpad,
        unit_kinds: Sequence[Kind],
        config: Config,
        *,
        copies: int = 1,
        paced: bool = False,
        circular: bool = False,
        extra: Mapping[str, Any] | None = None,
        taps: Sequence[str] = (),
        late: bool = False,
        probes: AccessProbes | None = None,
    ) -> None:
        self.holds = holds
        self._probes = probes
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
        self.is_set = any(setting_of(kind.route, config) is not None for kind in kinds)
        self.shifted = self.is_set and holds.lane_bits(config) != bits_of(holds.dtype)
        index = _index_bits(holds, config)
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
        if self.holds.is_table:
            index = Cat(beat.chunk[: log2(self._kinds[0].chunks)], beat.index)
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
            if setting_of(kind.route, self._config) is not None:
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
        if self._probes is not None:
            words, lanes = write_names(self._config)[self.holds.name]
            enables = [write.enable for write in writes]
            amounts = {words: sum(enable.any() for enable in enables), lanes: sum(map(_ones, enables))}
            self._probes.drive(m, **amounts)
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
        """Register a follower of the write ports."""

    def _read(self, m: Module, writes: list[Write], indices: Sequence[Value], copy: int) -> list[Value]:
        """Read from each bank the first index that lies in it."""
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
    pads = (pad for pad in scratchpad_specs.scratchpads_of(config).values() if pad.filled_by is unit)
    return {f"{pad}_access": In(Access(pad, config)) for pad in pads}


def connect_access(m: Module, unit: wiring.Component, pad: Scratchpad) -> None:
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
    if kind.chunks == 1 or shape.grains == 1:
        return Const(-1, shape.grains)
    together = shape.grains // kind.chunks
    bits = [chunk == n // together for n in range(shape.grains)]
    return Cat(*bits)
