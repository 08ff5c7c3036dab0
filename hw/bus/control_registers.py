"""The control registers, and the interrupt."""

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import DRAM_ADDRESS_BITS, INSTRUCTION_BYTES, PAGE_BYTES, Config
from accel.core.fault_causes import CAUSE_BITS
from accel.core.registers import (
    ADDRESS_BITS,
    REGISTERS,
    WORD_BYTES,
    Access,
    Register,
    constants,
    registers_of,
)
from accel.hw.bus.axi import OKAY, SLVERR, subordinate_ports
from accel.hw.datapath.register_copies import COPIES, copies
from accel.hw.datapath.word_layouts import log2

WORD_BITS = 8 * WORD_BYTES
_GROUP = 8
"""Register words per first-level multiplexer."""


class Control(wiring.Component):
    """Software's view of the core.

    - ``start``: a pulse. The core sets ``running`` from the next cycle to the run's last, in which it sets
      ``ended``.
    - ``clear``: a pulse while no run is active, also with ``start``, or while a run is ``draining``, which
      then ends.
    - ``flush``: set with ``start`` and ``clear``, in several copies because of its fan-out.
    - ``stop``: a pulse at any time.

    ``start`` and ``clear`` never come while ``offering``. Settings are constant from ``start`` to ``ended``.
    ``cause`` and ``fault_index`` are valid from ``ended`` on and while ``draining``, counters always.

    Address and data of a write may arrive in any order. At most one write and one read are in progress.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        ports = subordinate_ports() | {
            "irq": Out(1),
            "start": Out(1),
            "clear": Out(1),
            "flush": Out(COPIES),
            "stop": Out(1),
            "running": In(1),
            "draining": In(1),
            "offering": In(1),
            "unanswered": In(1),
            "ended": In(1),
            "cause": In(CAUSE_BITS),
            "fault_index": In(REGISTERS["fault_index"].width),
        }
        for register in REGISTERS.values():
            if register.access is Access.SETTING:
                ports[register.name] = Out(register.width, init=register.reset)
            elif register.access is Access.COUNTER:
                ports[register.name] = In(register.width)
        super().__init__(ports)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        running, enable = Signal(), Signal()
        done = Signal()
        interrupt = Signal()
        m.d.comb += [running.eq(self.running | self.start), self.irq.eq(interrupt & enable)]
        held = {"interrupt_enable": enable} | {
            register.name: getattr(self, register.name)
            for register in REGISTERS.values()
            if register.access is Access.SETTING
        }
        ones = self._write(m, held, running)
        command = {bit.name: ones["control"][bit.position] for bit in REGISTERS["control"].bits}
        begins = command["start"] | command["clear"]
        forgotten = command["clear"] | self.clear
        ended = self.ended & ~forgotten
        m.d.sync += [
            self.start.eq(command["start"]),
            self.clear.eq(command["clear"]),
            self.stop.eq(command["stop"]),
            interrupt.eq(ended | (interrupt & ~ones["interrupt"][0] & ~command["clear"])),
        ]
        m.d.comb += self.flush.eq(Cat(copies(m, begins, "flush")))
        with m.If(ended):
            m.d.sync += done.eq(1)
        with m.Elif(begins):
            m.d.sync += done.eq(0)

        values: dict[str, Value] = {name: Const(n, WORD_BITS) for name, n in constants(self._config).items()}
        values |= held
        values |= {
            "control": Const(0),
            "status": Cat(
                running, done, done & (self.cause != 0), self.draining, self.offering, self.unanswered
            ),
            "interrupt": interrupt,
        }
        here = registers_of(self._config)
        self._read(m, {name: values.get(name, getattr(self, name, None)) for name in here})
        return m

    def _write(self, m: Module, held: dict[str, Signal], running: Value) -> dict[str, Signal]:
        address, data, strobe = Signal(ADDRESS_BITS), Signal(WORD_BITS), Signal(WORD_BYTES)
        address_there = Signal()
        data_there = Signal()
        write = Signal()
        m.d.comb += [
            self.s_axi_awready.eq(~address_there),
            self.s_axi_wready.eq(~data_there),
            write.eq(address_there & data_there & ~self.s_axi_bvalid),
        ]
        with m.If(write):
            m.d.sync += [address_there.eq(0), data_there.eq(0), self.s_axi_bvalid.eq(1)]
        with m.If(self.s_axi_awvalid & self.s_axi_awready):
            m.d.sync += [address_there.eq(1), address.eq(self.s_axi_awaddr)]
        with m.If(self.s_axi_wvalid & self.s_axi_wready):
            m.d.sync += [data_there.eq(1), data.eq(self.s_axi_wdata), strobe.eq(self.s_axi_wstrb)]
        with m.If(self.s_axi_bvalid & self.s_axi_bready):
            m.d.sync += self.s_axi_bvalid.eq(0)

        mask, okay = Signal(WORD_BITS), Signal()
        ones = {
            register.name: Signal(register.width, name=f"{register.name}_ones")
            for register in REGISTERS.values()
            if register.access in (Access.COMMAND, Access.CLEARED_BY_ONES)
        }
        good = self._good_settings(m)
        may = {
            "start": good & ~running & ~self.offering,
            "clear": (~running | self.draining) & ~self.offering,
            "stop": Const(1),
        }
        bits = REGISTERS["control"].bits
        refused = Cat((data & mask)[bit.position] & ~may[bit.name] for bit in bits).any()
        m.d.comb += mask.eq(Cat(bit.replicate(8) for bit in strobe))
        with m.Switch(address[2:]):
            for register, word in _words(self._config):
                if not register.access.writable:
                    continue
                with m.Case((register.offset >> 2) + word):
                    allowed = {Access.SETTING: ~running, Access.COMMAND: ~refused}.get(
                        register.access, Const(1)
                    )
                    m.d.comb += okay.eq(allowed)
                    with m.If(write & allowed):
                        if register.name in ones:
                            m.d.comb += ones[register.name].eq(data & mask)
                        else:
                            part = held[register.name][WORD_BITS * word : WORD_BITS * (word + 1)]
                            m.d.sync += part.eq((part & ~mask) | (data & mask))
        with m.If(write):
            m.d.sync += self.s_axi_bresp.eq(Mux(okay, OKAY, SLVERR))
        return ones

    def _good_settings(self, m: Module) -> Signal:
        good = Signal()
        end = self.program_address + self.program_length * INSTRUCTION_BYTES
        window = self.mem_base + self.mem_size
        m.d.sync += good.eq(
            (self.program_address % INSTRUCTION_BYTES == 0)
            & (self.mem_base % PAGE_BYTES == 0)
            & (window <= 1 << DRAM_ADDRESS_BITS)
            & (self.program_address >= self.mem_base)
            & (end <= window)
        )
        return good

    def _read(self, m: Module, values: dict[str, Value]) -> None:
        address = Signal(ADDRESS_BITS)
        asked = Signal()
        kept, kept_of = Signal(WORD_BITS), Signal(ADDRESS_BITS - 2)
        """High word of the counter whose low word was read last, and its address, or 0 for none."""
        m.d.comb += self.s_axi_arready.eq(~asked & ~self.s_axi_rvalid)
        with m.If(self.s_axi_arvalid & self.s_axi_arready):
            m.d.sync += [asked.eq(1), address.eq(self.s_axi_araddr)]
        with m.If(self.s_axi_rvalid & self.s_axi_rready):
            m.d.sync += self.s_axi_rvalid.eq(0)
        place = address[2:]
        found, known, low_of = Signal(WORD_BITS), Signal(), Signal()
        """The word, whether it exists, and whether it is a counter's low word."""
        high = Signal(WORD_BITS)
        self._look_up(m, place, values, (found, known, low_of, high))
        takes_kept = (kept_of == place) & (kept_of != 0)
        with m.If(asked):
            m.d.sync += [
                asked.eq(0),
                self.s_axi_rvalid.eq(1),
                self.s_axi_rdata.eq(Mux(takes_kept, kept, found)),
                self.s_axi_rresp.eq(Mux(known, OKAY, SLVERR)),
            ]
            with m.If(low_of):
                m.d.sync += [kept.eq(high), kept_of.eq(place + 1)]
            with m.Elif(takes_kept):
                m.d.sync += kept_of.eq(0)

    def _look_up(self, m: Module, place: Value, values: dict[str, Value], found: tuple[Signal, ...]) -> None:
        """Two levels of multiplexers are faster than one."""
        groups: dict[int, dict[int, tuple[Value, ...]]] = {}
        for register, word in _words(self._config):
            low, group = (number := (register.offset >> 2) + word) % _GROUP, number // _GROUP
            value = values[register.name]
            is_low = register.access is Access.COUNTER and word == 0
            entry = (
                value[WORD_BITS * word : WORD_BITS * (word + 1)],
                Const(1, 1),
                Const(is_low, 1),
                value[WORD_BITS:] if is_low else Const(0, WORD_BITS),
            )
            groups.setdefault(group, {})[low] = entry
        bits = log2(_GROUP)
        heads: dict[int, list[Signal]] = {}
        for group, cases in groups.items():
            heads[group] = [Signal(len(one), name=f"group_{group}_{n}") for n, one in enumerate(found)]
            with m.Switch(place[:bits]):
                for low, entry in cases.items():
                    with m.Case(low):
                        m.d.comb += [one.eq(value) for one, value in zip(heads[group], entry, strict=True)]
        with m.Switch(place[bits:]):
            for group, head in heads.items():
                with m.Case(group):
                    m.d.comb += [one.eq(value) for one, value in zip(found, head, strict=True)]


def _words(config: Config) -> Iterator[tuple[Register, int]]:
    for register in registers_of(config).values():
        for word in range(register.words):
            yield register, word
