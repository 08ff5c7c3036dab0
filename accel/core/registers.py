"""The control registers, declared once: decoder, drivers, reference and C header come from here."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from accel.core.config import DRAM_ADDRESS_BITS, PAGE_BYTES, RUN_FIELDS, SPECS, Config
from accel.core.faults import CAUSE_BITS
from accel.core.units import Unit

ID = 0x6C656361
"""What the register ``id`` holds: the letters ``acel``, lowest byte first."""
MAP_VERSION = 2
"""What the register ``version`` holds; grows whenever an address or a meaning changes."""
WORD_BYTES = 4
ADDRESS_BITS = 12
"""Width of an address on the AXI4-Lite port."""


class Access(Enum):
    """What software can do with a register."""

    CONSTANT = "constant"
    """Read; what the hardware was built with."""
    STATUS = "read"
    """Read; changes with the run."""
    COUNTER = "counter"
    """Read; reading the low word keeps the high word that belongs to it for the next read of it."""
    SETTING = "setting"
    """Read; written only while no run is going on."""
    CONTROL = "read, write"
    """Read and written at any time."""
    COMMAND = "command"
    """Writing ones does something, as the bits say; reads as zero."""
    CLEARED_BY_ONES = "ones clear"
    """Read; writing a one clears the bit."""

    @property
    def writable(self) -> bool:
        """Whether writes are answered with OKAY."""
        return self not in (Access.CONSTANT, Access.STATUS, Access.COUNTER)


@dataclass(frozen=True, kw_only=True)
class Bit:
    """A bit of a register with a name of its own."""

    name: str
    position: int
    doc: str


@dataclass(frozen=True, kw_only=True)
class Register:
    """One register of one or two 32-bit words, the low one first.

    Attributes:
        offset: byte address of its (low) word.
        width: bits that can be other than zero.
        reset: value after a reset.
        post: whether only machines with ``post=1`` have it.
    """

    name: str
    offset: int
    width: int
    access: Access
    doc: str
    reset: int = 0
    bits: tuple[Bit, ...] = ()
    post: bool = False

    @property
    def words(self) -> int:
        """32-bit words that it takes."""
        return 1 if self.width <= 8 * WORD_BYTES else 2

    def bit(self, name: str) -> int:
        """The mask of a named bit."""
        return next(1 << bit.position for bit in self.bits if bit.name == name)


UNIT_COUNTERS = {
    "busy": "cycles in which it works",
    "memory_stall": "cycles in which it waits for memory",
    "token_stall": "cycles in which it waits for tokens; fetch: for room in a queue",
}
"""The counters that each unit has, as in :class:`~accel.core.events.UnitCycles`."""

_EVER = (1 << 64) - 1
_BEFORE_START = "a multiple of 16; the program must lie within the DRAM window"


def _of_configuration(*, post: bool) -> Iterator[tuple[str, int, Access, str]]:
    """The fields of all machines, or those that only machines with ``post=1`` have."""
    for name, spec in SPECS.items():
        if name not in RUN_FIELDS and spec.post == post:
            only = "; only where post=1" if post else ""
            yield name, 32, Access.CONSTANT, f"{spec.doc} ({spec.unit}){only}"


def _of_counters() -> Iterator[tuple[str, int, Access, str]]:
    yield "cycles", 64, Access.COUNTER, "length of the run so far, or of the last one"
    for unit in Unit:
        for name, doc in UNIT_COUNTERS.items():
            yield f"{unit.label}_{name}", 64, Access.COUNTER, f"{unit.label}: {doc}"
    yield "read_bytes", 64, Access.COUNTER, "read beats of the bus, times its bytes"
    yield "written_bytes", 64, Access.COUNTER, "write beats of the bus, times its bytes"


def _placed(
    offset: int, rows: Iterable[tuple[str, int, Access, str]], *, post: bool = False
) -> Iterator[Register]:
    """Registers one behind the other; those of two words at multiples of eight."""
    for name, width, access, doc in rows:
        step = 2 * WORD_BYTES if width > 8 * WORD_BYTES else WORD_BYTES
        offset = -(-offset // step) * step
        yield Register(name=name, offset=offset, width=width, access=access, doc=doc, post=post)
        offset += step


REGISTERS: Mapping[str, Register] = MappingProxyType(
    {
        register.name: register
        for register in (
            Register(
                name="id", offset=0x000, width=32, access=Access.CONSTANT, doc="`acel`, lowest byte first"
            ),
            Register(
                name="version",
                offset=0x004,
                width=32,
                access=Access.CONSTANT,
                doc=f"of this register map: {MAP_VERSION}",
            ),
            Register(
                name="control",
                offset=0x008,
                width=3,
                access=Access.COMMAND,
                doc="each bit has its own conditions; if one is refused, all are",
                bits=(
                    Bit(
                        name="start",
                        position=0,
                        doc="start a run; refused while one goes on, while `offering`, and with bad settings",
                    ),
                    Bit(
                        name="clear",
                        position=1,
                        doc="forget tokens, status and interrupt; before `start` if both are set; gives up a "
                        "run that is `draining`; refused while another one goes on, and while `offering`",
                    ),
                    Bit(
                        name="stop",
                        position=2,
                        doc="end the run that is going on with the cause `stopped`; nothing if there is none",
                    ),
                ),
            ),
            Register(
                name="status",
                offset=0x00C,
                width=6,
                access=Access.STATUS,
                doc="of the run that is going on, or of the last one",
                bits=(
                    Bit(name="running", position=0, doc="a run is going on"),
                    Bit(
                        name="done",
                        position=1,
                        doc="a run has ended; all its writes are in memory, but where `unanswered`",
                    ),
                    Bit(name="error", position=2, doc="it ended with an error"),
                    Bit(
                        name="draining",
                        position=3,
                        doc="the run that is going on had an error, and waits for the bus to take and to "
                        "answer what it was asked for; `cause` is valid",
                    ),
                    Bit(
                        name="offering",
                        position=4,
                        doc="of a run that has ended or drains, the bus has not taken an address or a beat",
                    ),
                    Bit(
                        name="unanswered",
                        position=5,
                        doc="the bus still owes answers to bursts of a run that was given up",
                    ),
                ),
            ),
            Register(
                name="cause",
                offset=0x010,
                width=CAUSE_BITS,
                access=Access.STATUS,
                doc="why the run ended, see below; valid with `done` and `draining`",
            ),
            Register(
                name="fault_index",
                offset=0x014,
                width=32,
                access=Access.STATUS,
                doc="the instruction at fault, counted from zero; valid with `error`",
            ),
            Register(
                name="interrupt",
                offset=0x018,
                width=1,
                access=Access.CLEARED_BY_ONES,
                doc="a run has ended since this bit was cleared",
            ),
            Register(
                name="interrupt_enable",
                offset=0x01C,
                width=1,
                access=Access.CONTROL,
                doc="whether `interrupt` is seen on the pin `irq`",
            ),
            *_placed(0x040, _of_configuration(post=False)),
            Register(
                name="program_address",
                offset=0x100,
                width=DRAM_ADDRESS_BITS,
                access=Access.SETTING,
                doc=f"byte address of the first instruction; {_BEFORE_START}",
            ),
            Register(
                name="program_length", offset=0x108, width=32, access=Access.SETTING, doc="instructions"
            ),
            Register(
                name="serial",
                offset=0x10C,
                width=1,
                access=Access.SETTING,
                doc=SPECS["serial"].doc,
            ),
            Register(
                name="mem_base",
                offset=0x110,
                width=DRAM_ADDRESS_BITS,
                access=Access.SETTING,
                doc=f"{SPECS['mem_base'].doc}; a multiple of {PAGE_BYTES}",
                reset=Config().mem_base,
            ),
            Register(
                name="mem_size",
                offset=0x118,
                width=DRAM_ADDRESS_BITS + 1,
                access=Access.SETTING,
                doc=f"{SPECS['mem_size'].doc} (bytes); with mem_base at most 2^{DRAM_ADDRESS_BITS}",
                reset=Config().mem_size,
            ),
            Register(
                name="max_cycles",
                offset=0x120,
                width=64,
                access=Access.SETTING,
                doc="a run that has not ended in this cycle ends there with the cause `limit`",
                reset=_EVER,
            ),
            Register(
                name="bus_timeout",
                offset=0x128,
                width=32,
                access=Access.SETTING,
                doc="so many cycles in which the bus owes something and does nothing end a run with the "
                "cause `timeout`, and so many more its `draining`; 0: never (cycles)",
            ),
            *_placed(0x200, _of_counters()),
            *_placed(0x300, _of_configuration(post=True), post=True),
        )
    }
)
"""All registers by name, in order of their addresses."""


def registers_of(config: Config) -> dict[str, Register]:
    """The registers that a machine has."""
    return {name: register for name, register in REGISTERS.items() if config.post or not register.post}


def constants(config: Config) -> dict[str, int]:
    """What the constant registers of a machine hold."""
    values = {"id": ID, "version": MAP_VERSION}
    return values | {
        name: getattr(config.hardware, name)
        for name, register in registers_of(config).items()
        if register.access is Access.CONSTANT and name not in values
    }


def word_writes(values: Mapping[str, int]) -> list[tuple[int, int]]:
    """Address and word of each write that gives registers these values."""
    writes = []
    for name, value in values.items():
        register = REGISTERS[name]
        for word in range(register.words):
            writes.append((register.offset + WORD_BYTES * word, value >> 32 * word & 0xFFFFFFFF))
    return writes


def word_addresses(names: Iterable[str]) -> list[int]:
    """The addresses to read, in order, to know the values of registers."""
    return [
        REGISTERS[name].offset + WORD_BYTES * word for name in names for word in range(REGISTERS[name].words)
    ]


def joined(names: Iterable[str], words: Sequence[int]) -> dict[str, int]:
    """The registers' values from the words read at their :func:`word_addresses`."""
    rest = iter(words)
    values = {}
    for name in names:
        values[name] = sum(next(rest) << 32 * word for word in range(REGISTERS[name].words))
    return values
