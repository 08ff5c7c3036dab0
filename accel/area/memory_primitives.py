"""The ECP5 primitives that Yosys maps a machine's memories to."""

from msgspec import Struct

from accel.core.config import Config
from accel.core.isa import MicroOp, class_slots
from accel.core.memory_banks import memory_banks
from accel.core.scratchpad_specs import UOP

_BLOCK_RAM_WORDS = {1: 16384, 2: 8192, 4: 4096, 9: 2048, 18: 1024, 36: 512}
"""Words of a block RAM of 18 Kbit by their width in bits."""
_ENABLED_BITS = 9
"""Bits per write enable of a block RAM with words of at least 9 bits."""
_BLOCK_RAM_COST, _DISTRIBUTED_COST = 128, 4
"""Yosys's costs to choose between a block RAM and distributed RAMs of 16x4 bits."""


class Primitives(Struct, frozen=True, kw_only=True):
    """Block RAMs of 18 Kbit, and distributed RAMs of 16x4 bits."""

    block_ram: int = 0
    distributed: int = 0

    def __add__(self, other: "Primitives") -> "Primitives":
        return Primitives(
            block_ram=self.block_ram + other.block_ram, distributed=self.distributed + other.distributed
        )

    def __mul__(self, count: int) -> "Primitives":
        return Primitives(block_ram=count * self.block_ram, distributed=count * self.distributed)


def mapped(bits: int, depth: int, lane_bits: int, used_bits: int | None = None) -> Primitives:
    """Return the primitives of a memory with one write port and one clocked read port.

    Args:
        bits: of a word.
        depth: words.
        lane_bits: bits per write enable.
        used_bits: number of low bits that are read, or None for all. Primitives without a used bit are
            removed after the choice. Such words have one write enable.

    For example, 512 words of 64 bits take two block RAMs of 512x36, and 16 words of 32 bits take eight
    distributed RAMs.
    """
    lanes = bits // lane_bits

    def blocks(width: int, lane: int) -> int:
        return -(-depth // _BLOCK_RAM_WORDS[width]) * _block_rams(width, lane, lanes)

    def distributed(lane: int) -> int:
        return -(-depth // 16) * lanes * -(-lane // 4)

    width = min(_BLOCK_RAM_WORDS, key=lambda one: blocks(one, lane_bits))
    kept = lane_bits if used_bits is None else used_bits
    if _DISTRIBUTED_COST * distributed(lane_bits) < _BLOCK_RAM_COST * blocks(width, lane_bits):
        return Primitives(distributed=distributed(kept))
    return Primitives(block_ram=blocks(width, kept))


def _block_rams(width: int, lane_bits: int, lanes: int) -> int:
    unit = min(width, _ENABLED_BITS)
    return -(-lanes * -(-lane_bits // unit) // (width // unit))


def scratchpad_primitives(config: Config) -> Primitives:
    """Return the primitives of all scratchpads and of the mirror of the accumulators."""
    found = Primitives()
    for name, memory in memory_banks(config).items():
        used = None
        if name == UOP.name:  # the fields of a micro-op do not fill its word
            used = sum(slot.width for slot in class_slots(MicroOp, config))
        one = mapped(memory.word_bits, memory.bank_depth, memory.lane_bits, used)
        found += one * (memory.banks * memory.copies)
    return found
