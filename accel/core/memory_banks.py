"""The physical memories of scratchpads."""

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from accel.core.config import Config
from accel.core.isa import Load, Store, routes_of
from accel.core.scratchpad_specs import ACC, INP, RES, Route, Scratchpad, bits_of, scratchpads_of

MIRROR = "out"
"""The mirror of the accumulators, from which STOREs read."""


class MemoryBanks(Struct, frozen=True, kw_only=True):
    """The memories of one scratchpad, or of :data:`MIRROR`.

    Attributes:
        word_bits: bits of one read or write of a bank.
        bank_depth: words of a bank.
        banks: of a copy. A read accesses all, because the bank is selected after the read.
        copies: memories with equal contents, each with its own read port. Writes go to all.
        lane_bits: bits of a word with a common write enable.
    """

    word_bits: int
    bank_depth: int
    banks: int
    copies: int
    lane_bits: int

    @property
    def lanes(self) -> int:
        return self.word_bits // self.lane_bits

    @property
    def bank_bytes(self) -> float:
        return self.word_bits * self.bank_depth / 8


@lru_cache(maxsize=1 << 10)
def memory_banks(config: Config) -> Mapping[str, MemoryBanks]:
    """Return a machine's memories by scratchpad, with :data:`MIRROR`."""
    found = {name: _banks_of(pad, config) for name, pad in scratchpads_of(config).items()}
    acc = found[ACC.name]
    routes = routes_of(Store, config).values()
    widest = max(bits_of(route.dtype) for route in routes)
    found[MIRROR] = MemoryBanks(
        word_bits=max(route.element_bytes(config) for route in routes) * 8,
        bank_depth=acc.bank_depth,
        banks=acc.banks,
        copies=1,
        lane_bits=acc.lane_bits * widest // bits_of(ACC.dtype),
    )
    return found


def _banks_of(pad: Scratchpad, config: Config) -> MemoryBanks:
    if pad.is_table:
        words = pad.depth(config) * pad.element_bytes(config) // config.bus_bytes
        bits = config.bus_bits
        return MemoryBanks(word_bits=bits, bank_depth=words, banks=1, copies=config.lanes, lane_bits=bits)
    element_bytes, depth = pad.element_bytes(config), pad.depth(config)
    banks = max(elements_per_beat(route.element_bytes(config), config) for route in _loads_into(pad, config))
    if pad is INP:
        banks = max(banks, config.tap_banks)
    if pad is RES:
        banks = min(banks, depth)
    bits = pad.word_bits(config)
    return MemoryBanks(
        word_bits=bits,
        bank_depth=-(-depth // banks),
        banks=banks,
        copies=2 if pad is ACC else 1,
        lane_bits=min(element_bytes, config.bus_bytes) * bits // element_bytes,
    )


def _loads_into(pad: Scratchpad, config: Config) -> list[Route]:
    return [route for route in routes_of(Load, config).values() if route.scratchpad is pad]


def elements_per_beat(element_bytes: int, config: Config) -> int:
    return max(1, config.bus_bytes // element_bytes)


def beats_per_element(element_bytes: int, config: Config) -> int:
    return max(1, element_bytes // config.bus_bytes)
