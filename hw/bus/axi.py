"""AXI4 and AXI4-Lite as signatures, one per channel, and as flat ports such as ``m_axi_araddr``."""

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Cat, Module, Value
from amaranth.hdl._ast import Assign
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member, Out, Signature

from accel.core.config import DRAM_ADDRESS_BITS, Config
from accel.core.registers import ADDRESS_BITS, WORD_BYTES
from accel.hw.datapath.word_layouts import log2

OKAY = 0
SLVERR = 2
_INCREMENTING = 1
_CACHE = 0b0010
"""Normal, non-cacheable, non-bufferable memory: write responses come from the final destination, so
``status.done`` means that the data is in memory."""


class Address(Signature):
    """The channel AR or AW. ``len`` is the number of beats minus one."""

    def __init__(self) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "ready": In(1),
                "id": Out(1),
                "addr": Out(DRAM_ADDRESS_BITS),
                "len": Out(8),
                "size": Out(3),
                "burst": Out(2),
                "cache": Out(4),
                "prot": Out(3),
                "qos": Out(4),
            }
        )


class ReadData(Signature):
    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "ready": In(1),
                "id": Out(1),
                "data": Out(config.bus_bits),
                "resp": Out(2),
                "last": Out(1),
            }
        )


class WriteData(Signature):
    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "ready": In(1),
                "data": Out(config.bus_bits),
                "strb": Out(config.bus_bytes),
                "last": Out(1),
            }
        )


class WriteResponse(Signature):
    def __init__(self) -> None:
        super().__init__({"valid": Out(1), "ready": In(1), "id": Out(1), "resp": Out(2)})


class Axi4Read(Signature):
    def __init__(self, config: Config) -> None:
        super().__init__({"ar": Out(Address()), "r": In(ReadData(config))})


class Axi4Write(Signature):
    def __init__(self, config: Config) -> None:
        super().__init__({"aw": Out(Address()), "w": Out(WriteData(config)), "b": In(WriteResponse())})


class Axi4(Signature):
    def __init__(self, config: Config) -> None:
        super().__init__({**Axi4Read(config).members, **Axi4Write(config).members})


class LiteAddress(Signature):
    def __init__(self) -> None:
        super().__init__({"valid": Out(1), "ready": In(1), "addr": Out(ADDRESS_BITS), "prot": Out(3)})


class AxiLite(Signature):
    def __init__(self) -> None:
        bits = 8 * WORD_BYTES
        hands = {"valid": Out(1), "ready": In(1)}
        super().__init__(
            {
                "aw": Out(LiteAddress()),
                "w": Out(Signature({**hands, "data": Out(bits), "strb": Out(WORD_BYTES)})),
                "b": In(Signature({**hands, "resp": Out(2)})),
                "ar": Out(LiteAddress()),
                "r": In(Signature({**hands, "data": Out(bits), "resp": Out(2)})),
            }
        )


def ports(bus: Signature, prefix: str = "") -> dict[str, Member]:
    """Return a bus's signals as ports: ``prefix`` + channel + signal."""
    return {
        f"{prefix}{channel}{name}": member
        for channel, signature in _channels(bus)
        for name, member in signature.members.items()
    }


def pins(component: Any, bus: Signature, prefix: str = "") -> Any:
    """Return a component's :func:`ports` as an interface for ``wiring.connect``."""
    channels = {}
    for channel, signature in _channels(bus):
        signals = {name: getattr(component, f"{prefix}{channel}{name}") for name in signature.members}
        channels[channel] = SimpleNamespace(signature=signature, **signals)
    return SimpleNamespace(signature=bus, **channels)


def connect_inside(m: Module, part: Any, outside: Any) -> None:
    """Connect channels of a submodule's bus with the component's ports of the same direction."""
    for channel in part.signature.members:
        wiring.connect(m, getattr(part, channel), wiring.flipped(getattr(outside, channel)))


def moves(bus: Any) -> Value:
    channels = [getattr(bus, name) for name in bus.signature.members]
    return Cat(channel.valid & channel.ready for channel in channels).any()


def every_burst(address: Any, config: Config) -> Sequence[Assign]:
    """Set the constant fields of AR and AW: whole beats at consecutive addresses."""
    return [
        address.size.eq(log2(config.bus_bytes)),
        address.burst.eq(_INCREMENTING),
        address.cache.eq(_CACHE),
    ]


def manager_ports(config: Config) -> dict[str, Member]:
    return ports(Axi4(config), MANAGER)


def subordinate_ports() -> dict[str, Member]:
    return ports(AxiLite().flip(), SUBORDINATE)


MANAGER = "m_axi_"
SUBORDINATE = "s_axi_"


def _channels(bus: Signature) -> Iterator[tuple[str, Signature]]:
    for name, member in bus.members.items():
        yield name, member.signature
