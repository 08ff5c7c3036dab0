"""The control registers. Decoder, drivers, manual and C header follow from them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import MappingProxyType

from msgspec import Struct

from accel.core.config import DRAM_ADDRESS_BITS, PAGE_BYTES, RUN_FIELDS, SPECS, Config
from accel.core.fault_causes import CAUSE_BITS
from accel.core.units import Unit

ID = 0x6C656361
"""The letters ``acel``, lowest byte first."""
MAP_VERSION = 2
"""It grows whenever an address or a meaning changes."""
WORD_BYTES = 4
ADDRESS_BITS = 12
"""4 KiB of registers on the AXI4-Lite port."""


class Access(Enum):
    """Access of software."""

    CONSTANT = "constant"
    """Read only. Fixed when the hardware is built."""
    STATUS = "read"
    """Read only. Changes during a run."""
    COUNTER = "counter"
    """Read only. Reading the low word latches the high word, which the next read of it returns."""
    SETTING = "setting"
    """Read at any time. Written only while no run is in progress."""
    CONTROL = "read, write"
    """Read and written at any time."""
    COMMAND = "command"
    """Writing a one executes a command. Reads as zero."""
    CLEARED_BY_ONES = "ones clear"
    """Read at any time. Writing a one clears the bit."""

    @property
    def writable(self) -> bool:
        """Whether the answer to a write is OKAY."""
        return self not in (Access.CONSTANT, Access.STATUS, Access.COUNTER)


class Bit(Struct, frozen=True, kw_only=True):
    """A named bit of a register."""

    name: str
    position: int
    doc: str


class Register(Struct, frozen=True, kw_only=True):
    """One register of one or two 32-bit words, low word first.

    Attributes:
        offset: byte address of the low word.
        width: bits that can be non-zero.
        post: whether only machines with ``post=1`` have the register.
        feature: whether only machines where the field of the same name is not 0 have it.
    """

    name: str
    offset: int
    width: int
    access: Access
    doc: str
    reset: int = 0
    bits: tuple[Bit, ...] = ()
    post: bool = False
    feature: bool = False

    def exists(self, config: Config) -> bool:
        """Whether a machine has the register."""
        return bool(config.post or not self.post) and (not self.feature or bool(getattr(config, self.name)))

    @property
    def words(self) -> int:
        """Number of 32-bit words."""
        return 1 if self.width <= 8 * WORD_BYTES else 2

    def bit(self, name: str) -> int:
        """Return the mask of a named bit."""
        return next(1 << bit.position for bit in self.bits if bit.name == name)


UNIT_COUNTERS = {
    "busy": "cycles in which it is busy",
    "memory_stall": "cycles in which it has work and waits for memory",
    "token_stall": "cycles in which its next instruction lacks a token; fetch: lacks room in a queue",
}
"""See :class:`~accel.core.events.UnitCycles`."""

_NO_LIMIT_CYCLES = (1 << 64) - 1
_ADDRESS_CONDITION = "a multiple of 16, and the whole program must lie in the DRAM window"


_FEATURES = frozenset(name for name, spec in SPECS.items() if spec.feature)


def _configuration_rows(*, post: bool) -> Iterator[tuple[str, int, Access, str]]:
    for name, spec in SPECS.items():
        if name not in RUN_FIELDS and spec.post == post:
            only = "; only where it is not 0" if spec.feature else "; only where post=1" if post else ""
            yield name, 32, Access.CONSTANT, f"{spec.doc} ({spec.unit}){only}"


def _counter_rows() -> Iterator[tuple[str, int, Access, str]]:
    yield "cycles", 64, Access.COUNTER, "length of the current run so far, or of the last run"
    for unit in Unit:
        for name, doc in UNIT_COUNTERS.items():
            yield f"{unit.label}_{name}", 64, Access.COUNTER, f"{unit.label}: {doc}"
    yield "read_bytes", 64, Access.COUNTER, "read beats on the bus, times bytes per beat"
    yield "written_bytes", 64, Access.COUNTER, "write beats on the bus, times bytes per beat"


def _assign_addresses(
    offset: int, rows: Iterable[tuple[str, int, Access, str]], *, post: bool = False
) -> Iterator[Register]:
    """Assign consecutive addresses, two words at multiples of eight."""
    for name, width, access, doc in rows:
        step = 2 * WORD_BYTES if width > 8 * WORD_BYTES else WORD_BYTES
        offset = -(-offset // step) * step
        yield Register(
            name=name,
            offset=offset,
            width=width,
            access=access,
            doc=doc,
            post=post,
            feature=name in _FEATURES,
        )
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
                doc=f"version of this register map: {MAP_VERSION}",
            ),
            Register(
                name="control",
                offset=0x008,
                width=3,
                access=Access.COMMAND,
                doc="commands; if one of the written ones is refused, none is executed",
                bits=(
                    Bit(
                        name="start",
                        position=0,
                        doc="start a run; refused during a run, while `offering`, and with bad settings",
                    ),
                    Bit(
                        name="clear",
                        position=1,
                        doc="reset tokens, status and interrupt, before `start` if both are "
                        "written; abandons a "
                        "run that is `draining`; refused during any other run, and while `offering`",
                    ),
                    Bit(
                        name="stop",
                        position=2,
                        doc="end the current run with the cause `stopped`; no effect if there is none",
                    ),
                ),
            ),
            Register(
                name="status",
                offset=0x00C,
                width=6,
                access=Access.STATUS,
                doc="state of the current run, or of the last run",
                bits=(
                    Bit(name="running", position=0, doc="a run is in progress"),
                    Bit(
                        name="done",
                        position=1,
                        doc="a run has ended; all its writes are in memory, unless `unanswered`",
                    ),
                    Bit(name="error", position=2, doc="the run ended with an error"),
                    Bit(
                        name="draining",
                        position=3,
                        doc="the current run has had an error and waits until the bus has accepted "
                        "and answered "
                        "all its bursts; `cause` is valid",
                    ),
                    Bit(
                        name="offering",
                        position=4,
                        doc="the bus has not accepted an address or a beat of a run that has ended "
                        "or is `draining`",
                    ),
                    Bit(
                        name="unanswered",
                        position=5,
                        doc="the bus has not answered all bursts of an abandoned run",
                    ),
                ),
            ),
            Register(
                name="cause",
                offset=0x010,
                width=CAUSE_BITS,
                access=Access.STATUS,
                doc="cause of the end of the run, see below; valid with `done` and `draining`",
            ),
            Register(
                name="fault_index",
                offset=0x014,
                width=32,
                access=Access.STATUS,
                doc="index of the instruction with the error, from 0; valid with `error`",
            ),
            Register(
                name="interrupt",
                offset=0x018,
                width=1,
                access=Access.CLEARED_BY_ONES,
                doc="1 if a run has ended since this bit was cleared",
            ),
            Register(
                name="interrupt_enable",
                offset=0x01C,
                width=1,
                access=Access.CONTROL,
                doc="1: the pin `irq` shows `interrupt`",
            ),
            *_assign_addresses(0x040, _configuration_rows(post=False)),
            Register(
                name="program_address",
                offset=0x100,
                width=DRAM_ADDRESS_BITS,
                access=Access.SETTING,
                doc=f"byte address of the first instruction; {_ADDRESS_CONDITION}",
            ),
            Register(
                name="program_length",
                offset=0x108,
                width=32,
                access=Access.SETTING,
                doc="number of instructions",
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
                doc=f"{SPECS['mem_base'].doc} (byte address), a multiple of {PAGE_BYTES}",
                reset=Config().mem_base,
            ),
            Register(
                name="mem_size",
                offset=0x118,
                width=DRAM_ADDRESS_BITS + 1,
                access=Access.SETTING,
                doc=f"{SPECS['mem_size'].doc} (bytes); `mem_base + mem_size` is at most "
                f"2^{DRAM_ADDRESS_BITS}",
                reset=Config().mem_size,
            ),
            Register(
                name="max_cycles",
                offset=0x120,
                width=64,
                access=Access.SETTING,
                doc="cycle in which a run that has not ended ends with the cause `limit` (cycles)",
                reset=_NO_LIMIT_CYCLES,
            ),
            Register(
                name="bus_timeout",
                offset=0x128,
                width=32,
                access=Access.SETTING,
                doc="consecutive cycles without progress on the bus, while a burst is in flight, that end a "
                "run with the cause `timeout`; the same number again ends its `draining`; 0: no limit "
                "(cycles)",
            ),
            *_assign_addresses(0x200, _counter_rows()),
            *_assign_addresses(0x300, _configuration_rows(post=True), post=True),
        )
    }
)
"""By name, in order of addresses."""


def registers_of(config: Config) -> dict[str, Register]:
    """Return a machine's registers."""
    return {name: register for name, register in REGISTERS.items() if register.exists(config)}


def constants(config: Config) -> dict[str, int]:
    """Return the values of constant registers."""
    values = {"id": ID, "version": MAP_VERSION}
    return values | {
        name: getattr(config.hardware, name)
        for name, register in registers_of(config).items()
        if register.access is Access.CONSTANT and name not in values
    }


def word_writes(values: Mapping[str, int]) -> list[tuple[int, int]]:
    """Return address and word of each write."""
    writes = []
    for name, value in values.items():
        register = REGISTERS[name]
        for word in range(register.words):
            writes.append((register.offset + WORD_BYTES * word, value >> 32 * word & 0xFFFFFFFF))
    return writes


def word_addresses(names: Iterable[str]) -> list[int]:
    """Return the addresses of words."""
    return [
        REGISTERS[name].offset + WORD_BYTES * word for name in names for word in range(REGISTERS[name].words)
    ]


def joined(names: Iterable[str], words: Sequence[int]) -> dict[str, int]:
    """Combine the words at :func:`word_addresses`."""
    rest = iter(words)
    values = {}
    for name in names:
        values[name] = sum(next(rest) << 32 * word for word in range(REGISTERS[name].words))
    return values
